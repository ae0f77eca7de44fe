"""Structured logs: one JSON object per line."""

import json
import logging
from typing import Any

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record as JSON, with whatever was passed as `extra`.

    >>> details = {"msg": "link up", "levelname": "INFO", "created": 0, "neighbour": "b2"}
    >>> record = logging.makeLogRecord(details)
    >>> JsonFormatter().format(record)
    '{"time": 0, "level": "info", "event": "link up", "neighbour": "b2"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update({name: value for name, value in vars(record).items() if name not in _STANDARD})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
