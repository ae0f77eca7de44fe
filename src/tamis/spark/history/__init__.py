"""Rules tested on past events and compared with one another."""
