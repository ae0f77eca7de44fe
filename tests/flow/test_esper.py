"""Flows against Esper, match by match: the rows that each match took, and those at which a rule was true."""

import random
import shutil
from typing import Any

import pytest

import tamis
from flow.esper import Rule, judged, preferred, rows, sequence_rule, window_rule
from flow.sequences import Row, Sequence, matches

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="needs mvn and javac"),
]
CASES = 60


def told(rules: list[Rule], events: list[Row]) -> list[list[list[int]]]:
    """What a flow tells of each rule: the rows of each match."""
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for number, rule in enumerate(rules):
        flow.add(str(number), rule.text)
    outs = [*flow.push_batch("s", events), *flow.advance(to=10**6)]
    found: list[list[list[int]]] = [[] for _ in rules]
    for out in outs:
        found[int(out.query)].append([event["at"] for event in out.events])
    return found


def sequence_of(rule: Rule) -> Sequence:
    assert rule.sequence is not None
    return rule.sequence


def flat(match: list[list[int]]) -> list[int]:
    return [at for step in match for at in step]


def numbers(found: list[list[Row]]) -> list[list[int]]:
    return [[row["at"] for row in match] for match in found]


def test_sequences_with_gaps_tell_the_preferred_of_all_matches_that_esper_finds() -> None:
    cases = []
    for seed in range(CASES):
        random_ = random.Random(seed)
        rules = [sequence_rule(random_, strict=False) for _ in range(5)]
        cases.append((rules, rows(random_, 15)))
    compared = 0
    for (rules, events), answers in zip(cases, judged(cases), strict=True):
        for rule, answer, found in zip(rules, answers, told(rules, events), strict=True):
            sequence = sequence_of(rule)
            expected = sorted(map(flat, preferred(sequence, events, answer)))
            assert sorted(found) == expected, rule.text
            assert sorted(numbers(matches(sequence, events))) == expected, rule.text
            compared += len(expected)
    assert compared > CASES


def is_settled_at_once(sequence: Sequence, events: list[Row]) -> bool:
    """Whether no later row changes which matches there are: Esper does not wait for such a row."""
    final = matches(sequence, events)
    return all(match in final for end in range(len(events)) for match in matches(sequence, events[:end]))


def test_strict_sequences_tell_the_matches_that_esper_tells() -> None:
    cases = []
    for seed in range(CASES):
        random_ = random.Random(seed)
        rules = [sequence_rule(random_, strict=True) for _ in range(5)]
        cases.append((rules, rows(random_, 40)))
    compared = left_out = 0
    for (rules, events), answers in zip(cases, judged(cases), strict=True):
        for rule, answer, found in zip(rules, answers, told(rules, events), strict=True):
            if not is_settled_at_once(sequence_of(rule), events):
                left_out += 1
                continue
            assert sorted(found) == sorted(map(flat, answer)), rule.text
            compared += len(found)
    assert compared > CASES
    assert left_out < CASES / 2


def test_rules_about_windows_are_true_at_the_rows_that_esper_tells() -> None:
    cases: list[Any] = []
    for seed in range(CASES):
        random_ = random.Random(seed)
        cases.append(([window_rule(random_) for _ in range(5)], rows(random_, 40)))
    compared = 0
    for (rules, events), answers in zip(cases, judged(cases), strict=True):
        for rule, answer, found in zip(rules, answers, told(rules, events), strict=True):
            assert sorted(found) == sorted(map(flat, answer)), rule.text
            compared += len(found)
    assert compared > CASES
