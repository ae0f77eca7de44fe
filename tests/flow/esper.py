"""Esper as a judge of flows: rules in both languages, and what Esper finds.

A sequence is written as MATCH_RECOGNIZE. A skipped row is a row of the variable `G`, which takes any, or of
`N` before a step that something must not precede, which takes those for which that is not true. Of sequences
that skip rows Esper gives all matches there are, and `preferred` chooses: Esper's own choice among patterns
with gaps is not that of SQL. The window only bounds what Esper keeps: that the last row is WITHIN the first
is part of its condition.
"""

import random
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from flow.sequences import Row, Sequence, Step
from tamis_lab.benchmark.java import class_path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
KINDS = ["a", "b", "c"]
COMPARISONS = {
    "!=": lambda here, there: here != there,
    ">": lambda here, there: here > there,
    "<=": lambda here, there: here <= there,
}


@dataclass
class Condition:
    """What a row must be: in the language of flows, in that of Esper, and as a function of Python."""

    kinds: list[str] = field(default_factory=list)
    least: int | None = None
    compared: tuple[str, int] | None = None
    """A comparison with the value of the row that a step took last."""

    def text(self) -> str:
        parts = []
        if self.kinds:
            parts.append(f"kind IN ({', '.join(map(repr, self.kinds))})")
        if self.least is not None:
            parts.append(f"v >= {self.least}")
        if self.compared:
            parts.append(f"v {self.compared[0]} s{self.compared[1]}.v")
        return " AND ".join(parts)

    def esper(self, row: str, repeated: list[bool]) -> str:
        """`repeated` says which steps may take several rows: Esper reads those as arrays."""
        parts = []
        if self.kinds:
            parts.append(f"{row}.kind in ({', '.join(map(repr, self.kinds))})")
        if self.least is not None:
            parts.append(f"{row}.v >= {self.least}")
        if self.compared:
            operator, step = self.compared
            last = f"S{step}.lastOf().v" if repeated[step] else f"S{step}.v"
            parts.append(f"{row}.v {operator} {last}")
        return " and ".join(parts)

    def __call__(self, row: Row, last: dict[int, Row]) -> bool:
        here = row.get("v")
        if self.kinds and row.get("kind") not in self.kinds:
            return False
        if self.least is not None and (here is None or here < self.least):
            return False
        if self.compared:
            there = last[self.compared[1]].get("v")
            return here is not None and there is not None and COMPARISONS[self.compared[0]](here, there)
        return True


def condition(random_: random.Random, earlier: int) -> Condition:
    """A random condition of the step after so many."""
    drawn = Condition()
    if random_.random() < 0.8:
        drawn.kinds = random_.sample(KINDS, random_.choice([1, 1, 2]))
    else:
        drawn.least = random_.choice([1, 2])
    if earlier and random_.random() < 0.5:
        drawn.compared = (random_.choice(list(COMPARISONS)), random_.randrange(earlier))
    return drawn


Match = list[list[int]]
"""The numbers of the rows that each step took."""


@dataclass
class Rule:
    """A rule for the flow and as a statement of Esper; a sequence also for the reference evaluator."""

    text: str
    statement: str
    sequence: Sequence | None = None


def sequence_rule(random_: random.Random, *, strict: bool) -> Rule:
    """A random sequence."""
    steps: list[Step] = []
    count_ = random_.choice([1, 2, 2, 3, 3])
    for number in range(count_):
        step = Step(condition(random_, number))
        step.least, step.most = random_.choice([(1, 1), (1, 1), (2, 2), (1, 2), (2, 3), (1, None), (2, None)])
        if number and random_.random() < 0.3:
            step.absent = condition(random_, number)
        steps.append(step)
    if count_ == 1:
        steps[0].least = 1  # the first of several rows has no name in Esper's condition of the same step
    within = random_.choice([3, 8, 20])
    by = random_.choice([(), ("k",)])
    skip_to_next = not strict and random_.random() < 0.4
    sequence = Sequence(steps, within, strict, skip_to_next, by)
    return Rule(sequence_text(sequence), sequence_statement(sequence), sequence)


def sequence_text(sequence: Sequence) -> str:
    """In the language of flows."""
    written = []
    for number, step in enumerate(sequence.steps):
        if step.absent:
            written.append(f"NOT ({step.absent.text()})")  # type: ignore[attr-defined]
        most = "" if step.most is None else step.most
        times = "" if (step.least, step.most) == (1, 1) else f"{{{step.least},{most}}}"
        written.append(f"(s{number}: {step.condition.text()}){times}")  # type: ignore[attr-defined]
    strict = "STRICT " if sequence.strict else ""
    by = " BY k" if sequence.by else ""
    after = " AFTER MATCH SKIP TO NEXT ROW" if sequence.skip_to_next else ""
    return f"SEQUENCE {strict}{' THEN '.join(written)} WITHIN {sequence.within}s{by}{after}"


def sequence_statement(sequence: Sequence) -> str:
    """In the language of Esper: the matches it prefers if they are strict, otherwise all there are."""
    steps = sequence.steps
    repeated = [step.most != 1 for step in steps]
    repeated[-1] = steps[-1].least > 1
    pattern, define = [], []
    for number, step in enumerate(steps):
        is_last = number + 1 == len(steps)
        # A repetition at the end stops at its minimum.
        least, most = step.least, step.least if is_last else step.most
        taken = step.condition.esper(f"S{number}", repeated)  # type: ignore[attr-defined]
        if is_last and number:
            first = "S0.firstOf().ts" if repeated[0] else "S0.ts"
            taken += f" and S{number}.ts - {first} <= {sequence.within}"
        define.append(f"S{number} as {taken}")
        if sequence.strict:
            pattern.append(f"S{number}{count(least, most)}")
            continue
        absent = None if is_last else steps[number + 1].absent
        if absent:
            seen = absent.esper(f"N{number}", repeated)  # type: ignore[attr-defined]
            define.append(f"N{number} as coalesce(not ({seen}), true)")
        if absent or is_last:
            before = count(least - 1, None if most is None else most - 1)
            pattern.append(f"(S{number} G{number}*){before}" if before != "{0}" else "")
            pattern.append(f"S{number} N{number}*" if absent else f"S{number}")
        else:
            pattern.append(f"(S{number} G{number}*){count(least, most)}")
    measures = ", ".join(f"S{number} as s{number}" for number in range(len(steps)))
    by = "partition by k " if sequence.by else ""
    source = "Row(k is not null)" if sequence.by else "Row"
    which = (
        "after match skip past last row" if sequence.strict else "all matches after match skip to current row"
    )
    return (
        f"select * from {source}#time({sequence.within * 1000 + 500} milliseconds) match_recognize ("
        f"{by}measures {measures} {which} "
        f"pattern ({' '.join(filter(None, pattern))}) define {', '.join(define)})"
    )


def preferred(sequence: Sequence, rows: list[Row], all_matches: list[Match]) -> list[Match]:
    """Those of all matches that a sequence tells: the leftmost and, of one start, the preferred one."""
    partition_of = {row["at"]: tuple(row.get(name) for name in sequence.by) for row in rows}
    by_start: dict[int, list[Match]] = {}
    for match in all_matches:
        by_start.setdefault(match[0][0], []).append(match)
    told: list[Match] = []
    passed: dict[tuple[Any, ...], int] = {}
    for start in sorted(by_start):
        partition = partition_of[start]
        if start > passed.get(partition, -1):
            after = [at for at, other in partition_of.items() if other == partition and at > start]
            told.append(min(by_start[start], key=partial(choices, after)))
            passed[partition] = start if sequence.skip_to_next else told[-1][-1][-1]
    return told


def choices(after: list[int], match: Match) -> list[int]:
    """What became of each row after the first: taken for the same step, for the next one, or skipped."""
    step_of = {at: step for step, taken in enumerate(match) for at in taken}
    made, step = [], 0
    for at in after:
        taken = step_of.get(at)
        made.append(2 if taken is None else taken - step)
        step = step if taken is None else taken
        if at == match[-1][-1]:
            break
    return made


def count(least: int, most: int | None) -> str:
    """How often, as Esper writes it."""
    match (least, most):
        case (1, 1):
            return ""
        case (0, None):
            return "*"
        case (0, 1):
            return "?"
        case (1, None):
            return "+"
        case (_, None):
            return f"{{{least},}}"
        case _ if least == most:
            return f"{{{least}}}"
        case _:
            return f"{{{least},{most}}}"


def window_rule(random_: random.Random) -> Rule:
    """A random rule about what a window holds. In Esper that is a subquery, which sees the row itself."""
    size = random_.choice([1, 2, 5])
    by_key = random_.random() < 0.7
    chosen = condition(random_, 0)
    aggregate, value = random_.choice([("count(*", "count(*)"), ("sum(v", "sum(w.v)"), ("max(v", "max(w.v)")])
    tested = random_.choice([">= 1", ">= 2", "= 2", "< 2"])
    by, same = (" BY k", "w.k is r.k") if by_key else ("", "true")
    if random_.random() < 0.6:
        period, view = f"LAST {size}s", f"#time({size * 1000 + 500} milliseconds)"
    else:
        period, view = f"LAST {size} ROWS", f"{'#groupwin(k)' if by_key else ''}#length({size})"
    where = f"{same} and {chosen.esper('w', [])}"
    return Rule(
        f"{aggregate} WHERE {chosen.text()}{by} {period}) {tested}",
        f"select r.at as at from Row as r where (select {value} from Row{view} as w where {where}) {tested}",
    )


def rows(random_: random.Random, number: int) -> list[Row]:
    """Random rows, some at the same time."""
    drawn = []
    now = 0
    for at in range(number):
        now += random_.choice([0, 1, 1, 2, 5])
        row: Row = {"at": at, "ts": now, "k": random_.choice(["x", "y", None])}
        row |= {"kind": random_.choice(["a", "a", "b", "c", None]), "v": random_.choice([0, 1, 2, None])}
        drawn.append({name: value for name, value in row.items() if value is not None})
    return drawn


Case = tuple[list[Rule], list[Row]]


def judged(cases: Iterable[Case]) -> list[list[list[Match]]]:
    """What Esper finds: for each case, the matches of each of its rules."""
    cases = list(cases)
    lines = []
    for rules, rows_ in cases:
        lines += [f"rule\t{rule.statement}" for rule in rules]
        lines += ["row\t" + "\t".join(map(str, _fields(row))) for row in rows_]
        lines.append("end")
    path = class_path(
        ROOT / ".tools" / "flow-peers" / "esper",
        ROOT / "bench" / "flow" / "java" / "esper" / "pom.xml",
        HERE / "EsperJudge.java",
    )
    command = ["java", "-cp", path, "EsperJudge"]
    ran = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    answers: list[list[list[Match]]] = [[[] for _ in rules] for rules, _ in cases]
    case = 0
    for line in ran.stdout.splitlines():
        if line == "end":
            case += 1
            continue
        rule, *columns = line.split("|")
        answers[case][int(rule)].append([[int(at) for at in column.split()] for column in columns])
    assert case == len(cases)
    return answers


def _fields(row: Row) -> list[Any]:
    return [row.get(name, "") for name in ("at", "ts", "k", "kind", "v")]
