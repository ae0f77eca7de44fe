"""Finds the attributes by which queries can be split, so that events with different values never meet.

The kernel says by which terms windows and sequences are partitioned, and prints the equalities of joins. If
this module does not understand a query, the query runs in one task, which is always correct.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamis.flow.flow import Flow

Key = tuple[str, ...]
"""Attributes whose values, together, tell which task an event goes to."""

_EQUALITY = re.compile(r"s(\d+)\((.+)\) = s(\d+)\((.+)\)", re.DOTALL)
_PART = r"(?:`(?:[^`]|``)+`|\w+)"
_ATTRIBUTE = re.compile(rf"{_PART}(?:\.{_PART})*")


@dataclass(frozen=True)
class Split:
    """What can split a query: any attribute (None), or these only; and why not more."""

    attributes: frozenset[str] | None
    why: str
    streams: tuple[str, ...]
    """The streams that the query reads."""

    def allows(self, key: Sequence[str]) -> bool:
        """Whether events with different values of this key never meet in the query."""
        return bool(key) and (self.attributes is None or set(key) <= self.attributes)


def split_of(flow: Flow, name: str) -> Split:
    """What can split a query of a flow.

    >>> flow = Flow()
    >>> flow.stream("hits", time="ts")
    >>> flow.add("by user", "count(* BY user, ip LAST 1m) > 3 AND sum(n BY user LAST 5 ROWS) > 1")
    >>> flow.add("all", "count(* LAST 1m) > 3")
    >>> flow.add("each", "n > 3")
    >>> flow.add("steps", "SEQUENCE (a: n > 1) THEN (b: n > a.n) WITHIN 1m BY user, lower(ip)")
    >>> for name in flow:
    ...     split = split_of(flow, name)
    ...     print(name, None if split.attributes is None else sorted(split.attributes), split.why)
    by user ['user'] its windows are partitioned by user
    all [] count(*) OVER (RANGE INTERVAL 1 MINUTE) has no PARTITION BY
    each None it looks at one event at a time
    steps ['user'] its sequence goes BY user
    """
    explained = flow.explain(name)
    if "join" in explained:
        return _split_of_join(explained)
    streams = (explained["stream"],)
    if "sequence" in explained:
        attributes = _attributes(explained["sequence"]["by"])
        why = (
            f"its sequence goes BY {_listed(attributes)}"
            if attributes
            else "its sequence has no BY attribute"
        )
        return Split(attributes, why, streams)
    if not explained["windows"]:
        return Split(None, "it looks at one event at a time", streams)
    partitions = []
    for window in explained["windows"]:
        partitions.append(_attributes(window["partition_by"]))
        if not partitions[-1]:
            why = "is partitioned by no attribute" if window["partition_by"] else "has no PARTITION BY"
            return Split(frozenset(), f"{window['term']} {why}", streams)
    common = frozenset.intersection(*partitions)
    if not common:
        return Split(common, "its windows are partitioned by different attributes", streams)
    return Split(common, f"its windows are partitioned by {_listed(common)}", streams)


def _split_of_join(explained: Mapping[str, object]) -> Split:
    join = explained["join"]
    assert isinstance(join, Mapping)
    windows = join["windows"]
    streams = tuple(dict.fromkeys(window["stream"] for window in windows))
    if re.search(r"\bDISTINCT\b", str(explained["text"]), re.IGNORECASE):
        return Split(frozenset(), "DISTINCT compares the rows of all keys", streams)
    for window in windows:
        if not window["frame"].startswith("RANGE "):
            frame = f"{window['stream']} {window['frame']}"
            return Split(frozenset(), f"the window {frame} counts the rows of all keys", streams)
    if len(windows) == 1:
        return Split(None, "it looks at one window by time", streams)
    pairs: dict[str, list[tuple[int, int]]] = {}
    for equality in join["equalities"]:
        found = _EQUALITY.fullmatch(equality)
        if found and found[2] == found[4] and (name := attribute_name(found[2])) is not None:
            pairs.setdefault(name, []).append((int(found[1]), int(found[3])))
    joined = frozenset(name for name, edges in pairs.items() if _connects(edges, len(windows)))
    if not joined:
        return Split(joined, "its streams are not all joined on one attribute of the same name", streams)
    return Split(joined, f"its streams are joined on {_listed(joined)}", streams)


def _connects(edges: Iterable[tuple[int, int]], nodes: int) -> bool:
    group = list(range(nodes))
    for one, other in edges:
        gone, kept = group[one], group[other]
        group = [kept if of == gone else of for of in group]
    return len(set(group)) == 1


def choose_key(splits: Mapping[str, Split], possible: Iterable[str]) -> Key:
    """The key that most queries can be split by, among those that are possible.

    All the attributes that those queries have in common: more values are more evenly spread.

    >>> splits = {"a": Split(frozenset("xy"), "", ()), "b": Split(frozenset("x"), "", ())}
    >>> choose_key(splits, "xy"), choose_key({"a": splits["a"]}, "xy")
    (('x',), ('x', 'y'))
    """
    known = frozenset(possible)
    limited = [split.attributes & known for split in splits.values() if split.attributes is not None]
    counts = {name: sum(name in each for each in limited) for each in limited for name in each}
    if not counts:
        return ()
    best = min(counts, key=lambda name: (-counts[name], name))
    return tuple(sorted(frozenset.intersection(*(each for each in limited if best in each))))


def _attributes(terms: Iterable[str]) -> frozenset[str]:
    """Those of several terms, as they are printed, that are plain attributes."""
    names = map(attribute_name, terms)
    return frozenset(name for name in names if name is not None)


def attribute_name(term: str) -> str | None:
    """The attribute that a printed term is, as a dotted path; None if it is something else.

    >>> attribute_name("user.`first name`"), attribute_name("lower(user)")
    ('user.first name', None)
    """
    if _ATTRIBUTE.fullmatch(term) is None:
        return None
    parts = re.findall(_PART, term)
    return ".".join(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
