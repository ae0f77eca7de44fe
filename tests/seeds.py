"""How many random histories a default run plays: a few; `make test-slow` plays the others."""

from collections.abc import Sequence
from typing import Any

import pytest


def few(seeds: Sequence[Any]) -> list[Any]:
    """The seeds. All but the first third, and no fewer than three, are marked as slow."""
    first = max(3, -(-len(seeds) // 3))
    return [*seeds[:first], *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[first:])]
