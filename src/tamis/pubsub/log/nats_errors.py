"""What a NATS server says went wrong, as the errors of a log."""

from typing import Any

from tamis.pubsub.log.contract import (
    BusyError,
    FencedError,
    LogError,
    LogFullError,
    LogUnavailableError,
    StreamLostError,
)

_WRONG_LAST_SEQUENCE = (10071, 10164)
_FULL = (10077, 10047, 10122, 10023, 10002, 10028)
"""The stream, the disk, the account or the server has no room."""
_BUSY = (10176, 10210, 10211)
"""A part of a batch is missing; too many of them are under way. Then a part is missing, too: that the first
message was refused is told to nobody."""
PASSING = (10008, 10009, 10074, *_BUSY)
"""Starting, choosing a leader, busy: worth another attempt."""
_IN_USE = 10058
_NOT_FOUND = 10059
_NO_MESSAGE = 10037


def unreached(error: Exception) -> LogUnavailableError:
    """The client library has no connection, or no answer."""
    return LogUnavailableError(f"NATS does not answer: {str(error) or type(error).__name__}")


class MissingError(StreamLostError):
    """There is no such stream, though `open` has found or made it."""


class InUseError(LogError):
    """There is such a stream already."""


class NoMessageError(LogError):
    """There is no such message."""


def explained(error: dict[str, Any], where: str) -> LogError:
    """An error of the server."""
    code, text = error.get("err_code"), f"{where}: {error.get('description')}"
    if code in _WRONG_LAST_SEQUENCE:
        return FencedError(text)
    if code in _FULL:
        return LogFullError(f"{text}: make room, or raise the limit")
    if code in _BUSY:
        return BusyError(text)
    if code in PASSING:
        return LogUnavailableError(text)
    if code == _NOT_FOUND:
        return MissingError(text)
    if code == _IN_USE:
        return InUseError(text)
    if code == _NO_MESSAGE:
        return NoMessageError(text)
    return LogError(text)
