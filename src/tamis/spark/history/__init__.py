"""What rules would have done: against past events, and against one another."""
