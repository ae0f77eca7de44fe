"""A router as a process: its config file, health, metrics and logs."""
