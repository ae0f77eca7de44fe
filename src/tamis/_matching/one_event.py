"""Queries about one event: which subscriptions it satisfies, and which of them rank highest."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Never

from tamis import _kernel
from tamis._kernel import Event, EventMatcher, Query
from tamis._kernel import Index as Kernel
from tamis._matching.answers import table_of
from tamis._suggest import unexpected
from tamis.errors import UnknownAttributeWarning
from tamis.rank import MODES, Candidates, ScoreFunction, best_of, explain_unknown, unknown_attributes
from tamis.subscription import Id, Moment
from tamis.xml import Xml

EventLike = Mapping[str, Any] | Event | str | bytes
Score = str | ScoreFunction

# Of more rankings it is asked each time whether their names are known.
_MOST_SEEN_RANKINGS = 256


class Match(NamedTuple):
    """A subscription that an event satisfies, with its score and its rank among the matches.

    >>> Match("ad-7", 3.5, 1).id
    'ad-7'
    """

    id: Id
    score: float
    rank: int


class Matches(list[Match]):
    """The matches that `top_k` found, best first: a list that notebooks show as a table.

    >>> Matches([Match("ad-7", 3.5, 1)])
    [Match(id='ad-7', score=3.5, rank=1)]
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Rank, id and score, for a notebook."""
        from tamis import notebook  # noqa: PLC0415

        return notebook.of_matches(self)


class OneEvent(EventMatcher):
    """Queries about one event. The most frequent ones, `match`, `count` and `exists`, are in the kernel."""

    __slots__ = ()
    _kernel: Kernel
    _seen_rankings: set[tuple[Any, ...]]

    def match_xml(
        self,
        data: bytes | str,
        *,
        attribute: str = "doc",
        event: Mapping[str, Any] | None = None,
        strict: bool = False,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        threads: int = 1,
    ) -> list[Any]:
        """The ids of all subscriptions that an event with this XML document satisfies, sorted.

        The document is the value of `attribute`, in addition to the attributes of `event`; the rest is as for
        `match`. With `strict`, a document that is not well-formed is a `tamis.XmlError`.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("dear", "xpath(doc, '/news/item[price > 5]') AND source = 'reuters'")
        >>> index.match_xml(b"<news><item><price>7</price></item></news>", event={"source": "reuters"})
        ['dear']
        """
        whole = {**(event or {}), attribute: Xml(data, strict=strict)}
        return self.match(whole, tags=tags, tags_all=tags_all, tags_none=tags_none, now=now, threads=threads)

    def owners(
        self,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        threads: int = 1,
    ) -> list[str]:
        """The owners with at least one matching subscription, sorted.

        One match of each owner is enough: when all owners have one, the search stops. Subscriptions without
        an owner do not count.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add_many([1, 2, 3], ["x > 1", "x > 2", "x > 9"], owners=["ann", "ann", "bob"])
        []
        >>> index.owners({"x": 5}), index.owners({"x": 10})
        (['ann'], ['ann', 'bob'])
        """
        query = Query("owners", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        found: list[str] = self._kernel.ask(event, query, threads)
        return found

    def top_k(
        self,
        event: EventLike,
        k: int = 10,
        score: Score = "priority",
        *,
        min_score: float | None = None,
        dimensions: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        threads: int = 1,
        **unknown: Never,
    ) -> list[Match]:
        """The k matches with the highest score, best first; ties go to the smaller id.

        With `k=0`, there are none. A score is "priority"; "relevance", the sum of the weights of the true
        predicates, each times the event's weight for its attribute; "relaxed", the same, where one true
        predicate is enough for a match; a monotone function of the contributions of attributes to the
        relevance, such as "min(price, distance) + 0.5 * age"; or a Python function of `tamis.Candidates`.
        Matches with a score below `min_score` are left out. With `dimensions`, only these attributes count.
        Names that no subscription uses raise a `tamis.UnknownAttributeWarning`. `threads` is as in `match`; a
        Python function is called on one thread.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> index.add("b", "x > 2 OR (y > 2)^0.5", priority=2.0)
        >>> index.top_k({"x": 3}, k=1)
        [Match(id='b', score=2.0, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score="relevance")
        [Match(id='b', score=1.5, rank=1)]
        >>> index.top_k({"x": 0, "y": 3}, score="relaxed")
        [Match(id='b', score=0.5, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score="max(x, 4 * y)")
        [Match(id='b', score=2.0, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score=lambda block: block["x"] + block.priority)
        [Match(id='b', score=3.0, rank=1)]
        """
        if unknown:
            raise unexpected("top_k", unknown, self.top_k)
        query = Query(
            k=k,
            score="relevance" if callable(score) else score,
            min_score=min_score,
            dimensions=dimensions,
            tags=tags,
            tags_all=tags_all,
            tags_none=tags_none,
            now=now,
        )
        self._warn_of_unknown_names(query)
        if callable(score):
            return self._best_by(score, query, event)
        return Matches(Match(*found) for found in self._kernel.ask(event, query, threads))

    def ask(self, query: Query, event: EventLike, *, threads: int = 1) -> Any:
        """The answer to a `tamis.Query`: ids, a number, a bool, owners, or a list of `tamis.Match`.

        Create a `Query` once if you use it often; `match`, `count`, `exists` and `top_k` create one on each
        call. `threads` is as in `match`.

        >>> from tamis import Index, Query
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> [index.ask(Query(asked), {"x": 2}) for asked in ("all", "count", "exists", "best")]
        [['a'], 1, True, [Match(id='a', score=1.0, rank=1)]]
        """
        answer = self._kernel.ask(event, query, threads)
        if query.ask != "best":
            return answer
        self._warn_of_unknown_names(query)
        return Matches(Match(*found) for found in answer)

    def _best_by(self, score: ScoreFunction, query: Query, event: EventLike) -> list[Match]:
        """The best matches by a Python function."""
        table = table_of(_kernel.contributions(self._kernel, event, query))
        candidates = Candidates.of(table, self._warn_of_unknown_name)
        best = best_of(candidates, query.k or 0, score, query.min_score)
        return Matches(Match(id, value, rank) for rank, (id, value) in enumerate(best, 1))

    def _warn_of_unknown_names(self, query: Query) -> None:
        """Warn once about names in a ranking that no subscription uses."""
        score, dimensions = query.score, query.dimensions
        if score is None or (dimensions is None and score in MODES):
            return
        self._warn_once(score, dimensions, stacklevel=4)

    def _warn_of_unknown_name(self, name: str) -> None:
        """Warn once about a name that a Python function looked up and no subscription uses."""
        self._warn_once(None, (name,), stacklevel=4)

    def _warn_once(self, score: str | None, dimensions: tuple[str, ...] | None, stacklevel: int) -> None:
        ranking = (score, dimensions)
        if ranking not in self._seen_rankings and len(self._kernel):
            known = [name for name, _ in self._kernel.attributes()]
            for name in unknown_attributes(score, dimensions, known):
                warnings.warn(explain_unknown(name, known), UnknownAttributeWarning, stacklevel)
            if len(self._seen_rankings) < _MOST_SEEN_RANKINGS:
                self._seen_rankings.add(ranking)
