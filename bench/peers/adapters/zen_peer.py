"""`zen-engine`: every rule is a compiled expression, evaluated for every event."""

import zen
from common import Match, drive


def build(_ids: list[int], rules: list[str]) -> Match:
    """Compile the rules; an absent attribute is null."""
    compiled = [zen.compile_expression(text) for text in rules]
    return lambda event: sum(1 for rule in compiled if rule.evaluate(event) is True)


if __name__ == "__main__":
    drive(build)
