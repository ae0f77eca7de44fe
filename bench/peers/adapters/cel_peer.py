"""CEL (`common-expression-language`): every rule is a compiled program, executed for every event."""

from typing import Any

import cel
from common import Match, drive


def build(_ids: list[int], rules: list[str]) -> Match:
    """Compile the rules; an event is the map `e`."""
    compiled = [cel.compile(text) for text in rules]

    def match(event: dict[str, Any]) -> int:
        context = {"e": event}
        return sum(1 for rule in compiled if rule.execute(context) is True)

    return match


if __name__ == "__main__":
    drive(build)
