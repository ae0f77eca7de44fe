"""Fixtures of the tests of delivery."""

from pubsub.logs import log_url  # noqa: F401
