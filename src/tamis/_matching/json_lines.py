"""Matches of JSON lines from bytes, files and paths: all together, or chunk by chunk."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from tamis._kernel import Query
from tamis._matching.answers import options_of
from tamis._matching.line_pieces import CHUNK_BYTES, Source
from tamis._matching.line_query import LineQuery
from tamis._matching.many_events import ManyEvents
from tamis.errors import ArgumentError
from tamis.subscription import Moment

_Method = TypeVar("_Method", bound=Callable[..., Any])


class LineOptions(TypedDict, total=False):
    """The keyword arguments of `match_ndjson` and `stream_ndjson`."""

    query: Query | None
    tags: Iterable[str] | None
    tags_all: Iterable[str] | None
    tags_none: Iterable[str] | None
    now: Moment | None
    threads: int | None
    validate: bool
    key: str | None
    payloads: bool
    on_error: Literal["raise", "collect"]
    chunk_bytes: int


_DEFAULTS: LineOptions = {
    "query": None,
    "tags": None,
    "tags_all": None,
    "tags_none": None,
    "now": None,
    "threads": None,
    "validate": True,
    "key": None,
    "payloads": False,
    "on_error": "raise",
    "chunk_bytes": CHUNK_BYTES,
}


def _spelt_out(method: _Method) -> _Method:
    """Show the options of a method with names and defaults in `help` and in completions."""
    written = inspect.signature(method)
    by_place = [one for one in written.parameters.values() if one.kind is not one.VAR_KEYWORD]
    by_name = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=_DEFAULTS[name])  # type: ignore[literal-required]
        for name, kind in LineOptions.__annotations__.items()
    ]
    method.__signature__ = written.replace(parameters=[*by_place, *by_name])  # type: ignore[attr-defined]
    return method


class JsonLines(ManyEvents):
    """Answers about JSON lines."""

    __slots__ = ()

    @_spelt_out
    def match_ndjson(self, source: Source, **options: Unpack[LineOptions]) -> Any:
        """All matches of JSON lines: a `pyarrow.Table` of `event` and `subscription`, as from `match_batch`.

        The lines are bytes, a memoryview, the path of a file, or a file that is open for reading bytes. The
        threads that match the lines also parse them, and only the values that subscriptions use; the rest
        must be valid JSON, unless `validate` is False. Events are numbered from 0; blank lines do not count.
        A byte-order mark, carriage returns and a last line without a line end are accepted.

        A file is read in chunks of about `chunk_bytes`, each matched against the version of the index that is
        current then; only the matches of all chunks are held in memory. `stream_ndjson` returns them chunk by
        chunk. With a `query`, the result is that of `ask_batch`: counts, booleans, or the best matches with
        `score` and `rank`. Pass tags and `now` in the query or as arguments, not both.

        A line that cannot be read is a `tamis.EventError` that names line and column. With
        `on_error="collect"` such lines are left out, and the result is a pair: the table and a list of
        `RefusedLine`. `key` and `payloads` are those of `match_batch`.

        >>> from tamis import Index, Query
        >>> index = Index()
        >>> index.add("adult", "age >= 18")
        >>> lines = b'{"age": 25, "name": "ann"}\\n\\n{"age": 7, "name": "bob"}\\n'
        >>> index.match_ndjson(lines).to_pydict()
        {'event': [0], 'subscription': ['adult']}
        >>> index.match_ndjson(lines, key="name").to_pydict()
        {'event': ['ann'], 'subscription': ['adult']}
        >>> index.match_ndjson(lines, query=Query("count")).to_pylist()
        [1, 0]
        >>> table, refused = index.match_ndjson(lines + b'{"age": }', on_error="collect")
        >>> refused[0].line, refused[0].row, str(refused[0].error)
        (4, 2, "attribute `age`: expected a value, found '}' (line 4, column 9, byte 8)")
        """
        return self._line_query("match_ndjson", options).together(source)

    @_spelt_out
    def stream_ndjson(self, source: Source, **options: Unpack[LineOptions]) -> Iterator[Any]:
        """The result of `match_ndjson`, chunk by chunk, so that a file of any size takes little memory.

        Each chunk is a table or an array; with `on_error="collect"`, a pair. Events are numbered
        consecutively across chunks.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("adult", "age >= 18")
        >>> lines = b'{"age": 25}\\n{"age": 7}\\n{"age": 40}\\n'
        >>> [piece.to_pydict()["event"] for piece in index.stream_ndjson(lines, chunk_bytes=16)]
        [[0], [], [2]]
        """
        return self._line_query("stream_ndjson", options).pieces(source)

    def _line_query(self, method: str, options: LineOptions) -> LineQuery:
        for name in options:
            if name not in _DEFAULTS:
                raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        given = _DEFAULTS | options
        selected = {name: given[name] for name in ("tags", "tags_all", "tags_none", "now")}
        return LineQuery(
            index=self,
            query=_one_query(given["query"], **selected),
            options=options_of((), given["threads"], validate=given["validate"]),
            key=given["key"],
            payloads=given["payloads"],
            on_error=given["on_error"],
            chunk_bytes=given["chunk_bytes"],
        )


def _one_query(query: Query | None, **beside: Any) -> Query:
    """The given query, or one for all matches with the given arguments."""
    if query is None:
        return Query("all", **beside)
    if given := [name for name, value in beside.items() if value is not None]:
        raise ArgumentError(f"give {given[0]} with the query, Query(..., {given[0]}=...), or without one")
    return query
