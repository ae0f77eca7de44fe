"""Stream events through an index and hand on the matches; what `tamis match` and `tamis topk` share."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.cli.events import Lines, Rows
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis import Index

Answer = TypeVar("Answer")


@dataclass
class Question:
    """What is asked about each event, and how to treat events that cannot be read."""

    index: "Index"
    k: int | None = None
    score: str = "priority"
    tags: list[str] | None = None
    key: str | None = None
    threads: int = 0
    skip_bad: bool = False
    skipped: int = 0

    def matches(self, source: str, portion: Lines | Rows) -> "pa.Table":
        """The matches of a portion of events: `event`, `subscription` and, ranked, `score` and `rank`."""
        if isinstance(portion, Rows):
            return self._matches_of_rows(portion)
        return self._best_of_lines(source, portion) if self.k else self._all_of_lines(source, portion)

    def counts(self, source: str, portion: Lines | Rows) -> "pa.Table":
        """The number of matches of each event of a portion: `event`, `matches`."""
        import pyarrow as pa

        if isinstance(portion, Rows):
            counts = self.index.count_batch(portion.table, threads=self.threads, tags=self.tags)
            rows = pa.array(range(len(portion)), pa.int64())
            return pa.table({"event": self._names_of_rows(portion, rows), "matches": counts})
        answers = list(self._each(source, portion, lambda event: self.index.count(event, tags=self.tags)))
        return pa.table(
            {"event": [name for name, _ in answers], "matches": [count for _, count in answers]},
        )

    def any_match(self, source: str, portion: Lines | Rows) -> bool:
        """Does any event of a portion match?"""
        if isinstance(portion, Rows):
            return any(count.as_py() for count in self.counts(source, portion)["matches"])
        answers = self._each(source, portion, lambda event: self.index.exists(event, tags=self.tags))
        return any(answer for _, answer in answers)

    # --- events as JSON lines ------------------------------------------------------------------------------

    def _all_of_lines(self, source: str, portion: Lines) -> "pa.Table":
        import pyarrow as pa

        names: list[Any] = []
        found: list[Any] = []
        for name, ids in self._each(source, portion, lambda event: self.index.match(event, tags=self.tags)):
            names.extend([name] * len(ids))
            found.extend(ids)
        return pa.table({"event": names, "subscription": found})

    def _best_of_lines(self, source: str, portion: Lines) -> "pa.Table":
        import pyarrow as pa

        k = self.k or 0
        columns: dict[str, list[Any]] = {"event": [], "subscription": [], "score": [], "rank": []}
        ask = lambda event: self.index.top_k(event, k=k, score=self.score, tags=self.tags)  # noqa: E731
        for name, best in self._each(source, portion, ask):
            for match in best:
                columns["event"].append(name)
                columns["subscription"].append(match.id)
                columns["score"].append(match.score)
                columns["rank"].append(match.rank)
        return pa.table(columns)

    def _each(
        self, source: str, portion: Lines, ask: Callable[[bytes], Answer]
    ) -> Iterator[tuple[Any, Answer]]:
        """Ask about each event of a portion; yields what to call the event, and the answer."""
        import tamis

        for offset, text in enumerate(portion.texts):
            try:
                answer = ask(text)
            except tamis.EventError as error:
                if not self.skip_bad:
                    place = f"{source}:{portion.places[offset]}"
                    raise UserError(
                        f"{place}: {str(error).splitlines()[0]}", hint="--skip-bad goes on"
                    ) from None
                self.skipped += 1
                continue
            yield self._name_of_line(text, portion.first + offset), answer

    def _name_of_line(self, text: bytes, number: int) -> Any:
        return number if self.key is None else json.loads(text).get(self.key)

    # --- events as tables ----------------------------------------------------------------------------------

    def _matches_of_rows(self, portion: Rows) -> "pa.Table":
        if self.k:
            found = self.index.top_k_batch(
                portion.table, k=self.k, score=self.score, threads=self.threads, tags=self.tags
            )
        else:
            found = self.index.match_batch(portion.table, threads=self.threads, tags=self.tags)
        position = found.column_names.index("event")
        return found.set_column(position, "event", self._names_of_rows(portion, found["event"]))

    def _names_of_rows(self, portion: Rows, rows: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.key is None:
            return pc.add(rows.cast(pa.int64()), portion.first)
        if self.key not in portion.table.column_names:
            raise UserError(f"the events have no column `{self.key}`", hint="see --key")
        return portion.table[self.key].take(rows)
