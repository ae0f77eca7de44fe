"""The events of the benchmark, the same as those of java/Traffic.java."""

from collections.abc import Iterator

USERS = 10_000
_WORD = (1 << 64) - 1


def traffic(rules: int) -> Iterator[tuple[int, int]]:
    """Users and kinds, without end. A user has three kinds, whatever the number of rules."""
    state = 42

    def draw(bound: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & _WORD
        return (state >> 33) % bound

    while True:
        user = draw(USERS)
        yield user, (user * 7919 + draw(3)) % rules
