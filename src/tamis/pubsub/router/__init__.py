"""Routers take events from a log, find who wants them, and write deliveries. A site may have any number of
them."""
