"""What a task computes for a batch of events."""
