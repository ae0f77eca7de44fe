"""The index: holds subscriptions and finds, for each event, those that it satisfies.

This is a thin layer over the compiled kernel: it gives arguments their names and defaults, and results their
types. Matching runs on an immutable version of the index, so readers never wait for writers.
`tamis._changing` has the methods that change an index, `tamis._matching` the queries. The rest is here:
creation, inspection, explanations, statistics, and saving.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import FunctionType
from typing import Any, Literal, TypeVar

import pyarrow as pa

from tamis import _kernel
from tamis._changing import Changing
from tamis._columns import DETAILS
from tamis._kernel import Query
from tamis._matching import EventLike, Match, Matching
from tamis._on_device import OnDevice
from tamis._saving import FileState, only_writer, state_of
from tamis.errors import StaleSnapshotError, UnknownIdError
from tamis.explain import Explanation, WhyNot
from tamis.subscription import Id, Moment, RefusedRow, Subscription

__all__ = ["ALGORITHMS", "Index", "Match", "RefusedRow", "Subscription"]

T = TypeVar("T")

ALGORITHMS: tuple[str, ...] = tuple(_kernel.algorithms())
"""The names that `Index(algorithm=...)` takes. "auto" is the production index."""


class Index(Changing, Matching, OnDevice):
    """Holds subscriptions and finds those that an event satisfies.

    With a `schema` (attribute -> name of a type), the index refuses predicates that do not fit the types, and
    reads ISO strings and epoch numbers as timestamps where these are declared. Without one, attributes are
    learnt from the subscriptions, and values are used as they are. A value that the language cannot represent
    (an integer of more than 64 bits, a list of mixed kinds) makes its attribute absent; with `strict`, it
    raises `tamis.EventError`.

    `algorithm` is one of `tamis.ALGORITHMS`, and `options` are that algorithm's. Ids are strings or 64-bit
    integers; the first id decides which.

    An index learns from the events it sees. With `optimize="auto"`, an index of 10,000 subscriptions or more
    is reorganized in the background if events have many more candidates than its layout was chosen for, or if
    the layout was chosen without any events. Small segments are merged once they have cost more than merging
    them takes. Both take at most a twentieth of the time, and never change an answer. With `"manual"`, only
    `optimize()` does this. An index that was opened from a file is not reorganized.

    >>> import tamis
    >>> from tamis import col
    >>> index = tamis.Index()
    >>> index.add("ad-7", "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')", priority=3.5, tags=["q4"])
    >>> index.add("ad-8", (col("age") > 20) & ~col("opted_out"))
    >>> index.match({"age": 27, "country": "CA", "opted_out": False})
    ['ad-7', 'ad-8']
    >>> index.match('{"age": 27, "country": "CA"}', tags=["q4"])
    ['ad-7']
    """

    __slots__ = ("__weakref__", "_kernel", "_opened_from", "_seen_rankings")

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        options: Mapping[str, bool | int | float | str] | None = None,
        *,
        optimize: Literal["auto", "manual"] = "auto",
        strict: bool = False,
    ) -> None:
        """Create an empty index."""
        declared = None if schema is None else json.dumps(plain_schema(schema))
        self._kernel = _kernel.Index(algorithm, declared, list((options or {}).items()), optimize, strict)
        self._answer_from(self._kernel)
        self._seen_rankings = set()
        self._opened_from: FileState | None = None

    @classmethod
    def _around(cls, kernel: _kernel.Index) -> "Index":
        index = cls.__new__(cls)
        index._kernel = kernel
        index._answer_from(kernel)
        index._seen_rankings = set()
        index._opened_from = None
        return index

    def _empty_like(self) -> "Index":
        """An empty index with the same restrictions as this one."""
        return Index(self.schema, self.algorithm, self.options, optimize="manual", strict=self.strict)

    # --- looking up --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._kernel)

    def __contains__(self, id: object) -> bool:
        """Whether there is a subscription with this id."""
        return self._kernel.contains(id)

    def __getitem__(self, id: Id) -> Subscription:
        """The subscription with this id; `tamis.UnknownIdError`, a `KeyError`, when there is none."""
        return Subscription(*self._kernel.get(id))

    def get(self, id: Id, default: T | None = None) -> Subscription | T | None:
        """The subscription with this id, or `default` when there is none.

        >>> Index().get("a") is None
        True
        """
        try:
            return self[id]
        except UnknownIdError:
            return default

    def __iter__(self) -> Iterator[Id]:
        """The sorted ids of the current version; changes during the iteration are not visible."""
        return self._kernel.ids()

    def items(self) -> Iterator[tuple[Id, Subscription]]:
        """Ids and subscriptions, sorted by id; those removed during the iteration are left out.

        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> [(id, str(subscription.expression)) for id, subscription in index.items()]
        [('a', 'x > 1')]
        """
        for id in self:
            if (subscription := self.get(id)) is not None:
                yield id, subscription

    def to_arrow(self) -> pa.Table:
        """All subscriptions as a table, sorted by id, with the columns that `add_table` reads.

        >>> index = Index()
        >>> index.add("a", "x > 1", priority=2.0, tags=["q4"])
        >>> index.to_arrow().select(["id", "expression", "priority", "tags"]).to_pylist()
        [{'id': 'a', 'expression': 'x > 1', 'priority': 2.0, 'tags': ['q4']}]
        >>> copy = Index()
        >>> copy.add_table(index.to_arrow())
        []
        """
        held = [subscription for _, subscription in self.items()]
        ids = [subscription.id for subscription in held]
        columns = {
            "id": pa.array(ids, pa.int64() if ids and isinstance(ids[0], int) else pa.string()),
            "expression": pa.array([str(subscription.expression) for subscription in held], pa.string()),
        }
        for name, kind in DETAILS.items():
            values = [getattr(subscription, name) for subscription in held]
            if name == "weights":
                values = [list(weights.items()) for weights in values]
            columns[name] = pa.array([list(value) if name == "tags" else value for value in values], kind)
        return pa.table(columns)

    def __repr__(self) -> str:
        """What it is and how many subscriptions it holds.

        >>> Index(schema={"age": "int", "at": "timestamp_ms"})
        <tamis.Index schema={'age': 'int', 'at': 'timestamp_ms'} with 0 subscriptions>
        """
        named = "" if self.algorithm == "auto" else f" algorithm={self.algorithm!r}"
        declared = "" if self.schema is None else f" schema={_shortened(self.schema)}"
        strict = " strict" if self.strict else ""
        return f"<tamis.Index{named}{declared}{strict} with {len(self):,} subscriptions>"

    def _repr_html_(self) -> str:
        """What it is and its first subscriptions, for a notebook."""
        from tamis import notebook  # noqa: PLC0415

        return notebook.of_index(self)

    @property
    def generation(self) -> int:
        """The number of the current version; every published change increments it.

        >>> index = Index()
        >>> before = index.generation
        >>> index.add("a", "x > 1")
        >>> index.generation > before
        True
        """
        return self._kernel.generation

    @property
    def algorithm(self) -> str:
        """The algorithm of the index.

        >>> Index(algorithm="scan").algorithm
        'scan'
        """
        return self._kernel.algorithm

    @property
    def options(self) -> dict[str, bool | int | float | str]:
        """The options of the algorithm.

        >>> Index(algorithm="a-tree", options={"zero_suppression": False}).options
        {'zero_suppression': False}
        """
        return dict(self._kernel.options)

    @property
    def schema(self) -> dict[str, str] | None:
        """The declared types by attribute, or None.

        >>> Index(schema={"age": "int"}).schema
        {'age': 'int'}
        """
        declared = self._kernel.schema
        return None if declared is None else json.loads(declared)

    @property
    def strict(self) -> bool:
        """Whether an unreadable value raises an error instead of making its attribute absent.

        >>> index = Index(strict=True)
        >>> index.add("a", "n > 1")
        >>> index.match({"n": 2**70})
        Traceback (most recent call last):
        ...
        tamis.errors.EventError: attribute `n`: the integer 1180591620717411303424 does not fit in 64 bits
        ...
        """
        return self._kernel.strict

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The attributes that subscriptions use, with the kinds of values that predicates expect.

        An empty list means any kind, as for `IS NULL`.

        >>> index = Index()
        >>> index.add("a", "age > 21 AND (name LIKE 'A%' OR name IS NULL)")
        >>> index.attributes
        {'age': ('number',), 'name': ('string',)}
        """
        return {name: tuple(kinds) for name, kinds in self._kernel.attributes()}

    @property
    def tags(self) -> dict[str, int]:
        """The tags that subscriptions have, with the number of subscriptions that have each.

        Selecting an unknown tag is not an error: nothing matches.

        >>> index = Index()
        >>> index.add("a", "x > 1", tags=["q4", "north"])
        >>> index.add("b", "x > 2", tags=["q4"])
        >>> index.tags, index.match({"x": 3}, tags=["q5"])
        ({'north': 1, 'q4': 2}, [])
        """
        return dict(self._kernel.tags())

    def payloads(self, ids: Iterable[Id], *, most_bytes: int | None = None) -> list[bytes | None]:
        """The payloads of many subscriptions, in the order of the ids.

        With `most_bytes`, only those of the first ids that together have at most that many bytes, but at
        least one.

        >>> index = Index()
        >>> index.add("a", "x > 1", payload=b"campaign 1")
        >>> index.add("b", "x > 2")
        >>> index.payloads(["b", "a"])
        [None, b'campaign 1']
        >>> index.payloads(["a", "b", "a"], most_bytes=15)
        [b'campaign 1', None]
        """
        return self._kernel.payloads(list(ids), most_bytes)

    # --- reasons -----------------------------------------------------------------------------------

    def explain(
        self,
        id: Id,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> Explanation:
        """Why a subscription matches an event or does not: its expression as written, with truths and values.

        Tags and `now` are those of `match`, and the answers agree: a subscription that has expired or has
        other tags does not match, and the explanation says so first.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> print(index.explain("a", {"age": 27}))
        ? AND
          ✓ age >= 22 (age is 27)
          ? country = 'CA' (country is absent)
        >>> from datetime import date
        >>> index.add("b", "age >= 22", expires=date(2026, 1, 31))
        >>> print(index.explain("b", {"age": 27}, now=date(2026, 2, 1)))
        no match: it expired at 2026-01-31 00:00:00 UTC, and it is 2026-02-01 00:00:00 UTC; needs a query ...
        ✓ age >= 22 (age is 27)
        """
        query = Query(tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        return Explanation.from_json(_kernel.explain(self._kernel, id, event, query))

    def why_not(
        self,
        id: Id,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> WhyNot:
        """The fewest predicates that would have to change for a subscription to match an event.

        Tags and `now` are those of `match`; exclusions by them come first, with what would change them.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> print(index.why_not("a", {"age": 20, "country": "CA"}))
        age is 20; needs to be >= 22
        """
        query = Query(tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        return WhyNot.from_json(_kernel.why_not(self._kernel, id, event, query))

    def diagram(
        self,
        id: Id,
        format: Literal["mermaid", "dot"] = "mermaid",
        *,
        event: EventLike | None = None,
        neighbours: int = 0,
    ) -> str:
        """The expression of a subscription as a Mermaid or Graphviz diagram, coloured by truth for an event.

        With `neighbours`, its place in the index instead: the normal form, each part once, and at most that
        many other subscriptions that share a subexpression, each pointing to the shared part. Subscriptions
        share parts with those that were added together with them or merged with them later.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> index.diagram("a").splitlines()[0]
        'flowchart TD'
        >>> index.add_many(["b", "c"], ["(x = 1 AND y = 2) OR vip = 1", "(y = 2 AND x = 1) OR z = 3"])
        []
        >>> index.diagram("b", "dot", neighbours=5).count("subscription") > 1
        True
        """
        return _kernel.diagram(self._kernel, id, format, event, neighbours)

    # --- how it is doing ---------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """The parts of the index, and the cost of matching so far.

        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.count({"x": 2})
        1
        >>> index.stats()["subscriptions"], index.stats()["observed"]["events"]
        (1, 1)
        """
        stats: dict[str, Any] = json.loads(self._kernel.stats())
        return stats

    def reset_stats(self) -> None:
        """Reset the statistics of matching.

        >>> index = Index()
        >>> index.reset_stats()
        >>> index.stats()["observed"]["events"]
        0
        """
        self._kernel.reset_stats()

    def optimize(self, *, background: bool = False) -> None:
        """Reorganize the index for the events seen so far. Matching continues meanwhile.

        An index does so by itself unless it was created with `optimize="manual"`; `stats()` shows how often.

        >>> index = Index(optimize="manual")
        >>> index.optimize()
        >>> index.stats()["optimize"], index.stats()["automatic_optimizations"]
        ('manual', 0)
        """
        self._kernel.optimize(background)

    @property
    def is_optimizing(self) -> bool:
        """Whether a background thread is rewriting parts of the index.

        >>> Index().is_optimizing
        False
        """
        return self._kernel.is_optimizing

    # --- keeping -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a snapshot file with all contents of the index. The file is replaced atomically.

        An index that was opened from this file, or saved to it, replaces it only if nobody else has saved
        there since. Otherwise `tamis.StaleSnapshotError` is raised and the file stays, unless `overwrite`
        allows their changes to be dropped.

        >>> import tempfile
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(f"{folder}/rules.tamis")
        ...     Index.open(f"{folder}/rules.tamis").match({"x": 2})
        ['a']
        """
        with only_writer(path):
            before, found = self._opened_from, state_of(path)
            is_same_file = before is not None and found is not None and before.path == found.path
            if is_same_file and before != found and not overwrite:
                raise StaleSnapshotError(
                    f"{os.fspath(path)} was saved by somebody else since this index was opened from it: open "
                    "it again and repeat the change, or drop theirs with save(path, overwrite=True)"
                )
            self._kernel.save(path)
            if before is None or is_same_file or found is None:
                self._opened_from = state_of(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, copy: bool = False, strict: bool = False) -> "Index":
        """Open a snapshot file by mapping it into memory: processes that open the same file share one copy.

        The index can be changed; changes stay in memory until the next `save`. A file that is truncated,
        corrupted, foreign or from a later version raises `tamis.SnapshotError`, here or at the first use.

        An open file may be replaced by a rename, as `save` does, but must not be overwritten in place. If it
        is, the next use raises `tamis.SnapshotError`; if it is truncated, the process may die. With `copy`,
        the file is read into memory and is safe from later changes: opening takes as long as reading the
        file, and processes do not share it. The schema is in the file; `strict` is not.

        >>> Index.open("no-such-file.tamis")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
        """
        while True:
            before = state_of(path)
            index = cls._around(_kernel.Index.open(path, copy, strict))
            if before == state_of(path):  # else it was replaced meanwhile, and which one was opened is open
                index._opened_from = before
                return index

    def verify(self) -> None:
        """Check every byte of the snapshot file that the index was opened from.

        >>> Index().verify()
        """
        self._kernel.verify()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a snapshot, or, for algorithms without snapshots, as subscriptions."""
        if self.algorithm == "auto":
            return _from_bytes, (type(self), self._kernel.to_bytes(), self.strict)
        made_with = (self.schema, self.algorithm, self.options)
        return _from_subscriptions, (type(self), made_with, [self[id] for id in self], self.strict)

    def __copy__(self) -> "Index":
        """An independent index with the same subscriptions."""
        rebuild, arguments = self.__reduce__()
        copy: Index = rebuild(*arguments)
        return copy

    def __deepcopy__(self, memo: object) -> "Index":
        """An independent index with the same subscriptions."""
        return self.__copy__()


def _from_bytes(cls: type[Index], snapshot: bytes, strict: bool = False) -> Index:
    return cls._around(_kernel.Index.from_bytes(snapshot, strict))


def _from_subscriptions(
    cls: type[Index], made_with: tuple[Any, ...], subscriptions: list[Subscription], strict: bool = False
) -> Index:
    index = cls(*made_with, strict=strict)
    for held in subscriptions:
        index.add(
            held.id,
            held.expression,
            priority=held.priority,
            weights=held.weights,
            tags=held.tags,
            payload=held.payload,
            expires=held.expires,
            owner=held.owner,
            starts=held.starts,
        )
    return index


_TYPE_NAMES = {bool: "bool", int: "int", float: "float", str: "string", datetime: "timestamp"}


_SHOWN_ATTRIBUTES = 4


def _shortened(schema: Mapping[str, str]) -> str:
    """The schema, or its first attributes where there are many."""
    if len(schema) <= _SHOWN_ATTRIBUTES:
        return str(schema)
    shown = ", ".join(f"{name!r}: {of!r}" for name, of in list(schema.items())[:_SHOWN_ATTRIBUTES])
    return f"{{{shown}, … {len(schema) - _SHOWN_ATTRIBUTES:,} more}}"


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with Python's types by the names that the kernel knows.

    >>> plain_schema(["age"])
    Traceback (most recent call last):
    ...
    TypeError: a schema is a dict of attribute to type, such as {"age": "int"}, not list
    """
    if not isinstance(schema, Mapping):
        name = type(schema).__name__
        raise TypeError(f'a schema is a dict of attribute to type, such as {{"age": "int"}}, not {name}')
    return {
        name: plain_schema(declared) if isinstance(declared, Mapping) else _TYPE_NAMES.get(declared, declared)
        for name, declared in schema.items()
    }


def _claim_methods(whole: type) -> None:
    """Let messages about wrong arguments name the class that users know, and not the part with the method."""
    for part in whole.__mro__[1:]:
        for name, member in vars(part).items():
            if isinstance(member, FunctionType) and part.__module__.startswith("tamis."):
                member.__qualname__ = f"{whole.__name__}.{name}"
                member.__module__ = whole.__module__


_claim_methods(Index)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_kernel.before_fork, after_in_parent=_kernel.after_fork, after_in_child=_kernel.after_fork
    )
