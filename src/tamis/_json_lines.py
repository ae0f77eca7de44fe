"""JSON lines in memory, taken apart as the kernel does it."""

from typing import Any


def json_lines(text: Any) -> list[Any]:
    """The lines of a text that are not blank.

    Only a line feed ends a line: JSON strings may hold other separators of lines as they are.

    >>> json_lines('{"x": "a\u2028b"}\\n\\n{"x": "c"}')
    ['{"x": "a\\u2028b"}', '{"x": "c"}']
    """
    feed, blank = ("\n", " \t\r\f") if isinstance(text, str) else (b"\n", b" \t\r\f")
    return [line for line in text.split(feed) if line.strip(blank)]
