"""Changing the subscriptions of an index: one at a time, or many that become visible together."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tamis._columns import columns_of, details_batch, id_column, rows_of, text_column
from tamis._kernel import Index as Kernel
from tamis._suggest import suggestion
from tamis.errors import ArgumentError, UnknownIdError
from tamis.subscription import ExpressionLike, Id, Moment, RefusedRow, Subscription

if TYPE_CHECKING:
    from tamis.index import Index

_DETAIL_NAMES = ("priority", "weights", "tags", "owner", "payload", "expires", "starts")


def _details(held: Subscription) -> dict[str, Any]:
    """The data of a subscription apart from its expression, as arguments of `replace`."""
    return {name: getattr(held, name) for name in _DETAIL_NAMES}


class Changing:
    """The part of `tamis.Index` that adds, replaces and removes."""

    __slots__ = ()
    _kernel: Kernel

    if TYPE_CHECKING:  # the other parts of `tamis.Index`

        def __getitem__(self, id: Id) -> Subscription: ...
        def __contains__(self, id: object) -> bool: ...
        def _empty_like(self) -> "Index": ...

    def add(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        owner: str | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
        starts: Moment | None = None,
    ) -> None:
        """Add a subscription under a new id.

        The expression is text, a `tamis.Expression`, a boolean column or the JSON form as a dict. `weights`
        are per attribute, for predicates without a boost. `owner` is the party to which the subscription
        belongs; see `Index.owners`. Before `starts` and from `expires` on (a datetime, or UTC microseconds)
        the subscription matches nothing.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add(1, "age > 21", priority=2.0, payload=b"campaign 1")
        >>> index.add(1, "age > 30")
        Traceback (most recent call last):
        ...
        tamis.errors.DuplicateIdError: subscription 1 is already in the index; ...
        """
        self._kernel.add(id, expression, (priority, weights, tags, owner, payload, expires, starts))

    def replace(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        owner: str | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
        starts: Moment | None = None,
    ) -> None:
        """Replace the subscription with this id; nothing of the old one is kept.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=5.0)
        >>> index.replace("a", "x > 2")
        >>> index["a"].priority
        0.0
        """
        self._kernel.replace(id, expression, (priority, weights, tags, owner, payload, expires, starts))

    def upsert(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        owner: str | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
        starts: Moment | None = None,
    ) -> None:
        """Add a subscription, or replace the one with this id.

        >>> from tamis import Index
        >>> index = Index()
        >>> for bound in (1, 2):
        ...     index.upsert("a", f"x > {bound}")
        >>> len(index), index.count({"x": 2})
        (1, 0)
        """
        self._kernel.upsert(id, expression, (priority, weights, tags, owner, payload, expires, starts))

    def remove(self, id: Id) -> None:
        """Remove a subscription.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.remove("a")
        >>> len(index)
        0
        """
        self._kernel.remove(id)

    def set_priority(self, id: Id, priority: float) -> None:
        """Change the priority of a subscription, effective immediately.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> index.set_priority("a", 2.5)
        >>> index.top_k({"x": 2})
        [Match(id='a', score=2.5, rank=1)]
        """
        self._kernel.set_priority(id, priority)

    def set_weights(self, id: Id, weights: Mapping[str, float]) -> None:
        """Change the weights per attribute of a subscription, effective immediately.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1 AND y > 1", weights={"x": 2.0})
        >>> index.set_weights("a", {"y": 0.5})
        >>> index.top_k({"x": 2, "y": 2}, score="relevance")
        [Match(id='a', score=1.5, rank=1)]
        """
        self._kernel.set_weights(id, weights)

    def add_many(
        self,
        ids: Iterable[Id],
        expressions: Iterable[ExpressionLike],
        *,
        priorities: Iterable[float | None] | None = None,
        weights: Iterable[Mapping[str, float] | None] | None = None,
        tags: Iterable[Iterable[str] | None] | None = None,
        owners: Iterable[str | None] | None = None,
        payloads: Iterable[bytes | None] | None = None,
        expires: Iterable[Moment | None] | None = None,
        starts: Iterable[Moment | None] | None = None,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> list[RefusedRow]:
        """Add many subscriptions; all become visible together.

        Each argument is a list, or an Arrow, Polars, pandas or NumPy column, which is read in place. With
        `on_error="raise"`, the first bad row raises an error and nothing is added; with "collect", the good
        rows are added and the bad ones returned.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add_many(range(3), [f"x > {bound}" for bound in range(3)], priorities=[1, 2, 3])
        []
        >>> index.match({"x": 2})
        [0, 1]
        """
        rows = id_column(ids)
        given = {
            "priority": priorities,
            "weights": weights,
            "tags": tags,
            "owner": owners,
            "payload": payloads,
            "expires": expires,
            "starts": starts,
        }
        details = details_batch(len(rows), given)
        failed = self._kernel.add_many(rows, text_column(expressions), details, on_error)
        return [RefusedRow(*row) for row in failed]

    def upsert_many(
        self,
        ids: Iterable[Id],
        expressions: Iterable[ExpressionLike],
        *,
        priorities: Iterable[float | None] | None = None,
        weights: Iterable[Mapping[str, float] | None] | None = None,
        tags: Iterable[Iterable[str] | None] | None = None,
        owners: Iterable[str | None] | None = None,
        payloads: Iterable[bytes | None] | None = None,
        expires: Iterable[Moment | None] | None = None,
        starts: Iterable[Moment | None] | None = None,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> list[RefusedRow]:
        """Add many subscriptions, or replace those whose ids exist.

        Arguments are those of `add_many`. All rows are checked before anything changes, so a bad row leaves
        the index unchanged, or is returned with `on_error="collect"`. Then all new subscriptions become
        visible together, and each replaced one separately.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.upsert_many(["a", "b"], ["x > 5", "x > 2"])
        []
        >>> index.match({"x": 3}), len(index)
        (['b'], 2)
        """
        given = {
            "priorities": priorities,
            "weights": weights,
            "tags": tags,
            "owners": owners,
            "payloads": payloads,
            "expires": expires,
            "starts": starts,
        }
        columns: dict[str, Any] = {
            name: rows_of(column) for name, column in given.items() if column is not None
        }
        rows, texts = rows_of(ids), rows_of(expressions)
        checked = self._empty_like()
        refused = checked.add_many(rows, texts, **columns, on_error=on_error)
        bad = {row.row for row in refused}
        good = [row for row in range(len(rows)) if row not in bad]
        new = [row for row in good if rows[row] not in self]
        for row in good:
            if rows[row] in self:
                held = checked[rows[row]]
                self.replace(held.id, held.expression, **_details(held))
        selected: dict[str, Any] = {name: [column[row] for row in new] for name, column in columns.items()}
        self.add_many([rows[row] for row in new], [texts[row] for row in new], **selected)
        return refused

    def remove_many(self, ids: Iterable[Id], *, missing: Literal["raise", "ignore"] = "raise") -> int:
        """Remove many subscriptions; returns how many.

        With `missing="raise"`, an unknown id raises an error before anything is removed.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add_many(["a", "b", "c"], ["x > 1"] * 3)
        []
        >>> index.remove_many(["a", "c", "z"], missing="ignore"), list(index)
        (2, ['b'])
        """
        if missing not in ("raise", "ignore"):
            raise ArgumentError(f'missing is "raise" or "ignore", not {missing!r}')
        wanted = list(dict.fromkeys(rows_of(ids)))
        found = [id for id in wanted if id in self]
        if missing == "raise" and len(found) < len(wanted):
            absent = next(id for id in wanted if id not in self)
            try:
                self[absent]
            except UnknownIdError as error:
                raise UnknownIdError(f"{error}; nothing was removed") from None
        for id in found:
            self._kernel.remove(id)
        return len(found)

    def clear(self) -> None:
        """Remove all subscriptions; the schema, the algorithm and the type of ids stay.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.clear()
        >>> len(index), index.match({"x": 2})
        (0, [])
        """
        self.remove_many(self._kernel.ids(), missing="ignore")

    def update(self, id: Id, **fields: Any) -> None:
        """Change some fields of a subscription and keep the others.

        Fields are `expression`, `priority`, `weights`, `tags`, `owner`, `payload`, `expires` and `starts`;
        `None` removes one.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=2.0, tags=["q4"])
        >>> index.update("a", expression="x > 5", tags=["q1"])
        >>> index["a"].priority, index["a"].tags, index.match({"x": 3})
        (2.0, ('q1',), [])
        """
        known = ("expression", *_DETAIL_NAMES)
        for name in fields:
            if name not in known:
                hint = suggestion(name, known) or f"fields are {', '.join(known)}"
                raise ArgumentError(f"a subscription has no field {name!r}: {hint}")
        held = self[id]
        if fields.get("priority", 0.0) is None:
            fields["priority"] = 0.0
        expression = fields.pop("expression", held.expression)
        self.replace(id, expression, **(_details(held) | fields))

    def set_tags(self, id: Id, tags: Iterable[str]) -> None:
        """Change the tags of a subscription; everything else stays as it is.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", tags=["q4"])
        >>> index.set_tags("a", ["q1", "north"])
        >>> index["a"].tags
        ('q1', 'north')
        """
        self.update(id, tags=tags)

    def set_expires(self, id: Id, expires: Moment | None) -> None:
        """Change when a subscription expires; None means never.

        >>> from tamis import Index
        >>> from datetime import date
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.set_expires("a", date(2026, 1, 31))
        >>> index.match({"x": 2}, now=date(2026, 2, 1))
        []
        """
        self.update(id, expires=expires)

    def set_starts(self, id: Id, starts: Moment | None) -> None:
        """Change when a subscription starts to match; None means from the beginning.

        >>> from tamis import Index
        >>> from datetime import date
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.set_starts("a", date(2026, 1, 31))
        >>> index.match({"x": 2}, now=date(2026, 1, 30)), index.match({"x": 2}, now=date(2026, 1, 31))
        ([], ['a'])
        """
        self.update(id, starts=starts)

    def add_table(self, table: Any, *, on_error: Literal["raise", "collect"] = "raise") -> list[RefusedRow]:
        """Add the rows of a table: pyarrow, pandas, Polars, DuckDB, or anything that offers Arrow data.

        The columns `id` and `expression` are required; `priority`, `weights`, `tags`, `owner`, `payload`,
        `expires` and `starts` are optional. Other columns are ignored; one that looks misspelt raises a
        `tamis.UnknownColumnWarning`.

        >>> from tamis import Index
        >>> import pyarrow as pa
        >>> rules = {"id": ["a", "b"], "expression": ["x > 1", "x > 2"], "priority": [1.0, 2.0]}
        >>> index = Index()
        >>> index.add_table(pa.table(rules))
        []
        >>> index.top_k({"x": 3}, k=1)
        [Match(id='b', score=2.0, rank=1)]
        """
        columns = columns_of(table)
        return self.add_many(**columns, on_error=on_error)
