"""A broker as a state machine, and its parts."""
