"""Who takes events from a log, finds who wants them, and writes deliveries: any number of these per site."""
