"""Routers take events from a log, find who wants them, and write deliveries; any number per site."""
