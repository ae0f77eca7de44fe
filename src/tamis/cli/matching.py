"""Ask an index about portions of events; what `tamis match` and `tamis topk` share."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.cli.events import Lines, Portion
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis import Index

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Ranking:
    """How many of the matches are wanted, and by which score."""

    k: int
    score: str = "priority"
    min_score: float | None = None
    dimensions: list[str] | None = None


@dataclass
class Question:
    """What is asked about each event, and how to treat events that cannot be read."""

    index: "Index"
    ranking: Ranking | None = None
    tags: list[str] | None = None
    key: str | None = None
    threads: int | None = None
    skip_bad: bool = False
    skipped: int = 0

    def matches(self, source: str, portion: Portion) -> "pa.Table":
        """The matches of a portion of events: `event`, `subscription` and, ranked, `score` and `rank`."""

        def ask(events: Any) -> Any:
            if self.ranking:
                return self.index.top_k_batch(
                    events, **vars(self.ranking), tags=self.tags, threads=self.threads
                )
            return self.index.match_batch(events, tags=self.tags, threads=self.threads)

        readable, found = self._ask(source, portion, ask)
        position = found.column_names.index("event")
        return found.set_column(position, "event", self._names(readable, found["event"]))

    def counts(self, source: str, portion: Portion) -> "pa.Table":
        """The number of matches of each event of a portion: `event`, `matches`."""
        import pyarrow as pa

        readable, counts = self._ask(
            source,
            portion,
            lambda events: self.index.count_batch(events, tags=self.tags, threads=self.threads),
        )
        rows = pa.array(range(len(readable)), pa.int64())
        return pa.table({"event": self._names(readable, rows), "matches": counts})

    def any_match(self, source: str, portion: Portion) -> bool:
        """Does any event of a portion match?"""
        return any(self.counts(source, portion)["matches"].to_pylist())

    def _ask(self, source: str, portion: Portion, ask: Callable[[Any], Answer]) -> tuple[Portion, Answer]:
        """Ask about a portion; if an event in it cannot be read, stop there or ask about the others."""
        import tamis

        try:
            return portion, ask(portion.events)
        except tamis.EventError as error:
            if not isinstance(portion, Lines):
                raise UserError(f"{source}: {str(error).splitlines()[0]}") from None
            readable = self._readable(source, portion)
            return readable, ask(readable.events)

    def _readable(self, source: str, portion: Lines) -> Lines:
        import tamis

        readable = Lines([], [], [])
        for number, text, place in zip(portion.numbers, portion.events, portion.places, strict=True):
            try:
                tamis.Event(text)
            except tamis.EventError as error:
                if not self.skip_bad:
                    message = f"{source}:{place}: {str(error).splitlines()[0]}"
                    raise UserError(message, hint="--skip-bad goes on") from None
                self.skipped += 1
            else:
                readable.append(number, text, place)
        return readable

    def _names(self, portion: Portion, rows: Any) -> Any:
        """What to call the events in these rows of a portion: their numbers, or one of their attributes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(portion, Lines):
            names = portion.numbers
            if self.key is not None:
                names = [json.loads(text).get(self.key) for text in portion.events]
            return pa.array(names).take(rows)
        if self.key is None:
            return pc.add(rows.cast(pa.int64()), portion.first)
        if self.key not in portion.events.column_names:
            raise UserError(f"the events have no column `{self.key}`", hint="see --key")
        return portion.events[self.key].take(rows)
