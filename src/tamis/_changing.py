"""How the subscriptions of an index change: one at a time, or many that become visible together."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from tamis._columns import columns_of, details_batch, id_column, text_column
from tamis._kernel import Index as Kernel
from tamis.subscription import ExpressionLike, Id, Moment, RefusedRow


class Changing:
    """The part of `tamis.Index` that adds, replaces and removes."""

    __slots__ = ()
    _kernel: Kernel

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
    ) -> None:
        """Add a subscription under a new id.

        The expression is text, a `tamis.Expression`, a boolean column or the JSON form as a dict. `weights`
        are per attribute, for predicates without a boost of their own. `owner` says on whose behalf the
        subscription is held; see `Index.owners`. From `expires` on (a datetime, or UTC microseconds) the
        subscription matches nothing.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add(1, "age > 21", priority=2.0, payload=b"campaign 1")
        >>> index.add(1, "age > 30")
        Traceback (most recent call last):
        ...
        tamis.errors.DuplicateIdError: subscription 1 is already in the index; ...
        """
        self._kernel.add(id, expression, (priority, weights, tags, owner, payload, expires))

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
    ) -> None:
        """Put another subscription in the place of the one with this id; nothing of the old one is kept.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=5.0)
        >>> index.replace("a", "x > 2")
        >>> index["a"].priority
        0.0
        """
        self._kernel.replace(id, expression, (priority, weights, tags, owner, payload, expires))

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
    ) -> None:
        """Add a subscription, or replace the one with this id.

        >>> from tamis import Index
        >>> index = Index()
        >>> for bound in (1, 2):
        ...     index.upsert("a", f"x > {bound}")
        >>> len(index), index.count({"x": 2})
        (1, 0)
        """
        self._kernel.upsert(id, expression, (priority, weights, tags, owner, payload, expires))

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
        """Change the priority of a subscription, at once; its expression stays as it is.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> index.set_priority("a", 2.5)
        >>> index.top_k({"x": 2})
        [Match(id='a', score=2.5, rank=1)]
        """
        self._kernel.set_priority(id, priority)

    def set_weights(self, id: Id, weights: Mapping[str, float]) -> None:
        """Change the weights per attribute of a subscription, at once; its expression stays as it is.

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
        on_error: Literal["raise", "collect"] = "raise",
    ) -> list[RefusedRow]:
        """Add many subscriptions; all become visible together.

        Each argument is a list, or an Arrow, Polars, pandas or NumPy column, which is read where it lies.
        With `on_error="raise"` the first bad row raises and nothing is added; with "collect" the good rows
        are added and the bad ones returned.

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
        }
        details = details_batch(len(rows), given)
        failed = self._kernel.add_many(rows, text_column(expressions), details, on_error)
        return [RefusedRow(*row) for row in failed]

    def add_table(self, table: Any, *, on_error: Literal["raise", "collect"] = "raise") -> list[RefusedRow]:
        """Add the rows of a table: pyarrow, pandas, Polars, DuckDB, or anything that offers Arrow data.

        The columns `id` and `expression` are needed; `priority`, `weights`, `tags`, `owner`, `payload` and
        `expires` may be there too. Others are ignored.

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
