"""Tamis, event by event, as a Python program uses it."""

from common import Match, drive

import tamis


def build(ids: list[int], rules: list[str]) -> Match:
    """Index the rules."""
    index = tamis.Index()
    index.add_many(ids, rules)
    return lambda event: len(index.match(event))


if __name__ == "__main__":
    drive(build)
