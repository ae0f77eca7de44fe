"""Two sides take turns: the rounds in which they are measured, and the ratios that come out.

The speed of a shared machine varies from moment to moment by more than the differences to be measured. So
both processes run at the same time and take turns on one core, in rounds of some hundredths of a second, and
the ratio of two adjacent rounds is recorded. The median of these is the ratio of one pair of processes. Then
both start again, because the position of a process in memory also makes a difference of some percent. The
sides alternate in starting a pair.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

from comparison.builds import Build
from comparison.figures import GROUPS, Figure
from comparison.golden import differences
from comparison.inputs import EVENTS, Inputs
from comparison.side import Side

ROUND_NS = 20e6
"""How long a round should take on the base side."""
ROUNDS = 7
FEWER_ROUNDS = 5
LONG_ROUND_NS = 150e6
"""Rounds that cannot be made shorter than this are fewer."""

FEWEST_EVENTS = 16
BATCH_ROWS = 1_024
KERNEL_REPEATS = 3
"""Of which the least counts, for each event."""

SHORT_BUILD_NS = 0.3e9
SHORT_BUILDS = 3
CHANGED_ROWS = 1_000
CHANGES = 10

Say = Callable[[str], None]


@dataclass(frozen=True)
class Round:
    """How much is asked in one round of a figure, and how often."""

    events: int
    repeats: int
    rounds: int


@dataclass
class Comparison:
    """What was found on one workload at one size."""

    figures: list[Figure]
    different: list[str]
    """The kinds of queries that the sides answered differently."""


def compare(
    base: Build, head: Build, inputs: Inputs, groups: list[str], *, pairs: int, say: Say = lambda step: None
) -> Comparison:
    """Measure one workload with some pairs of processes."""
    run = _Run(inputs, groups)
    for number in range(pairs):
        say(f"pair {number + 1} of {pairs}")
        run.pair(number, base, head)
    return Comparison(list(run.figures.values()), run.different)


class _Run:
    def __init__(self, inputs: Inputs, groups: list[str]) -> None:
        self._inputs = inputs
        self._groups = groups
        self._plans: dict[str, Round] = {}
        self._cores = sorted(os.sched_getaffinity(0))
        self.figures: dict[str, Figure] = {}
        self.different: list[str] = []

    def pair(self, number: int, base: Build, head: Build) -> None:
        with ExitStack() as stack:
            sides = [stack.enter_context(Side(build.folder, self._inputs.folder)) for build in (base, head)]
            for side in sides:
                side.wait_until_ready()
            turns = Turns(*sides, first=number % 2)
            if any(self._of(group) for group in GROUPS if group != "topk"):
                self._build(turns)
                asked = self._of("single") + self._of("batch")
                self._ask_figures(turns, number, asked)
                if number == 0:
                    self._compare_answers(turns, "as built", ranked=False)
                if self._of("insert"):
                    self._change(turns)
                    if number == 0:
                        self._compare_answers(turns, "after changes", ranked=False)
            if ranked := self._of("topk"):
                turns.once("build", column="boosted")
                turns.once("learn")
                self._ask_figures(turns, number, ranked)
                if number == 0:
                    self._compare_answers(turns, "with boosts", ranked=True)

    def _of(self, group: str) -> list[str]:
        return list(GROUPS[group]) if group in self._groups else []

    def _figure(self, name: str, unit: str) -> Figure:
        made = Figure(name, self._inputs.workload, self._inputs.size, unit)
        return self.figures.setdefault(name, made)

    def _build(self, turns: "Turns") -> None:
        built = [turns.once("build", column="expression")]
        first_base, first_head = built[0]
        if self._of("memory"):
            for name, key in (("memory", "bytes"), ("memory peak", "peak")):
                both = (first_base[key] / self._inputs.size, first_head[key] / self._inputs.size)
                self._figure(name, "B").add([both])
        if self._of("build"):
            if first_base["processor"] < SHORT_BUILD_NS:
                built += [turns.once("build", column="expression") for _ in range(SHORT_BUILDS - 1)]
            for name, key in (("build", "processor"), ("build elapsed", "elapsed")):
                self._figure(name, "s").add([(base[key] / 1e9, head[key] / 1e9) for base, head in built])

    def _ask_figures(self, turns: "Turns", number: int, names: list[str]) -> None:
        if not names:
            return
        turns.once("pin", core=self._cores[number % len(self._cores)])
        for name in names:
            plan = self._plans.get(name) or self._plans.setdefault(name, self._plan(turns, name))
            # Both sides are asked about the same events in a round, and about others in the next.
            offset = number * plan.rounds
            turns.once("round", figure=name, first=0, count=plan.events, repeats=1)
            rounds = []
            for at in range(plan.rounds):
                first = (offset + at) * plan.events % (EVENTS - plan.events + 1)
                times = turns.once("round", figure=name, first=first, count=plan.events, repeats=plan.repeats)
                rounds.append((times[0] / plan.events / 1e3, times[1] / plan.events / 1e3))
            self._figure(name, "µs").add(rounds)

    @staticmethod
    def _plan(turns: "Turns", name: str) -> Round:
        """Find out how many events make a round of the wanted length."""
        batch = name.startswith("batch")
        kernel = not batch and name != "dict"
        sample = BATCH_ROWS if batch else FEWEST_EVENTS
        took = [turns.base.ask("round", figure=name, first=0, count=sample, repeats=1) for _ in range(3)]
        each = max(1.0, median(took) / sample)
        if batch:
            events, repeats = sample, max(1, round(ROUND_NS / (each * sample)))
        else:
            repeats = KERNEL_REPEATS if kernel else 1
            events = min(EVENTS, max(FEWEST_EVENTS, round(ROUND_NS / (each * repeats))))
        long = each * events * repeats > LONG_ROUND_NS
        return Round(events, repeats, FEWER_ROUNDS if long else ROUNDS)

    def _change(self, turns: "Turns") -> None:
        rows = min(CHANGED_ROWS, self._inputs.size // CHANGES)
        end = self._inputs.size
        changed = [turns.once("change", first=end - (at + 1) * rows, count=rows) for at in range(CHANGES)]
        for name in GROUPS["insert"]:
            # Merges fall into one round or the other: only the sums can be compared.
            each = [
                (base[name] / rows / CHANGES / 1e3, head[name] / rows / CHANGES / 1e3)
                for base, head in changed
            ]
            self._figure(name, "µs").add(each, summed=True)

    def _compare_answers(self, turns: "Turns", state: str, *, ranked: bool) -> None:
        ours, theirs = turns.once("answers", ranked=ranked)
        self.different += [f"{kind}, {state}" for kind in differences(ours, theirs)]


class Turns:
    """Two sides, of which the other one is asked first each time."""

    def __init__(self, base: Side, head: Side, first: int) -> None:
        self.base = base
        self._head = head
        self._order: Iterator[int] = count(first)

    def once(self, request: str, **arguments: Any) -> tuple[Any, Any]:
        """Ask both sides the same, one after the other. Returns the answers of base and head."""
        if next(self._order) % 2:
            of_head = self._head.ask(request, **arguments)
            return self.base.ask(request, **arguments), of_head
        of_base = self.base.ask(request, **arguments)
        return of_base, self._head.ask(request, **arguments)
