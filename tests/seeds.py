"""How many cases of one test a default run takes: a few. The other runs take the rest."""

from collections.abc import Sequence
from typing import Any

import pytest


def few(seeds: Sequence[Any]) -> list[Any]:
    """The seeds. By default a ninth of them run; the rest of the first third is thorough, all others slow."""
    third = max(3, -(-len(seeds) // 3))
    ninth = third // 3
    return [
        *seeds[:ninth],
        *(pytest.param(seed, marks=pytest.mark.thorough) for seed in seeds[ninth:third]),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[third:]),
    ]


def first_of(cases: Sequence[Any], count: int) -> list[Any]:
    """The cases, a tuple for several arguments. All but the first `count` are marked as thorough."""
    rest = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*case, marks=pytest.mark.thorough) for case in rest)]
