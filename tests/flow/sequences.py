"""A reference evaluator of sequences: backtracking over all rows of a partition, as `docs/flows.md` reads.

It shares nothing with the flow, which never looks back. Conditions are Python functions of the row and of
the rows that earlier steps took last.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Condition = Callable[[Row, dict[int, Row]], bool]


@dataclass
class Step:
    condition: Condition
    least: int = 1
    most: int | None = 1
    absent: Condition | None = None


@dataclass
class Sequence:
    steps: list[Step]
    within: int
    strict: bool = False
    skip_to_next: bool = False
    by: tuple[str, ...] = ()


@dataclass
class Partial:
    step: int
    count: int
    blocked: bool
    last: dict[int, Row]
    taken: list[int] = field(default_factory=list)


def matches(sequence: Sequence, rows: list[Row]) -> list[list[Row]]:
    """All matches of all partitions, each as the rows it takes."""
    partitions: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in sequence.by)
        if None not in key:
            partitions.setdefault(key, []).append(row)
    found = []
    for partition in partitions.values():
        start = 0
        while start < len(partition):
            taken = preferred(sequence, partition, start)
            if taken is None:
                start += 1
                continue
            found.append([partition[at] for at in taken])
            start = taken[0] + 1 if sequence.skip_to_next else taken[-1] + 1
    return found


def preferred(sequence: Sequence, rows: list[Row], start: int) -> list[int] | None:
    """The preferred match that starts at a row."""
    if not sequence.steps[0].condition(rows[start], {}):
        return None
    return go_on(sequence, rows, start + 1, Partial(0, 1, False, {0: rows[start]}, [start]))


def go_on(sequence: Sequence, rows: list[Row], at: int, partial: Partial) -> list[int] | None:
    """What becomes of a partial match from a row on: the first choice that leads to a match."""
    step = sequence.steps[partial.step]
    if partial.step == len(sequence.steps) - 1 and partial.count >= step.least:
        return partial.taken
    if at == len(rows) or rows[at]["ts"] > rows[partial.taken[0]]["ts"] + sequence.within:
        return None
    row = rows[at]

    def take(number: int, count: int) -> list[int] | None:
        last = {**partial.last, number: row}
        return go_on(sequence, rows, at + 1, Partial(number, count, False, last, [*partial.taken, at]))

    if (step.most is None or partial.count < step.most) and step.condition(row, partial.last):
        found = take(partial.step, partial.count + 1)
        if found is not None:
            return found
    following = sequence.steps[partial.step + 1] if partial.step + 1 < len(sequence.steps) else None
    if (
        following is not None
        and partial.count >= step.least
        and not partial.blocked
        and following.condition(row, partial.last)
    ):
        found = take(partial.step + 1, 1)
        if found is not None:
            return found
    if sequence.strict:
        return None
    seen = following is not None and following.absent is not None and following.absent(row, partial.last)
    skipping = Partial(partial.step, partial.count, partial.blocked or seen, partial.last, partial.taken)
    return go_on(sequence, rows, at + 1, skipping)
