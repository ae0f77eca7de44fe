"""A history that fails, made shorter: what happens in a history does not depend on how long it goes on."""

from collections.abc import Callable


def fewest_steps(fails: Callable[[int], bool], steps: int) -> int:
    """The fewest steps after which a history still fails, found by halving; `steps` are known to."""
    good = 0
    while good + 1 < steps:
        middle = (good + steps) // 2
        if fails(middle):
            steps = middle
        else:
            good = middle
    return steps
