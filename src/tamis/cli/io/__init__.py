"""Rules and events in, matches out: files, pipes, formats and progress."""
