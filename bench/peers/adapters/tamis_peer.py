"""Tamis, event by event, as a Python program uses it."""

from typing import Any

from common import Match, drive

import tamis


def build(rules: list[Any]) -> Match:
    """Index the rules."""
    index = tamis.Index()
    index.add_many([number for number, _ in rules], [text for _, text in rules])
    return lambda event: len(index.match(event))


if __name__ == "__main__":
    drive(build)
