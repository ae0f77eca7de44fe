"""Queries an index with portions of events: shared by `tamis match` and `tamis topk`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis._suggest import suggestion
from tamis.cli.failure import UserError
from tamis.cli.io.encodings import SAY_ENCODING
from tamis.cli.io.events import Lines, Portion, at_place
from tamis.cli.wrong_types import WrongTypes

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis import Index, Query


def _check_names(query: "Query", known: list[str]) -> None:
    """The rules are all there when the command starts, so a name that none of them has is a slip."""
    from tamis.rank import unknown_attributes

    for name in unknown_attributes(query.score or "", query.dimensions, known):
        option = "--dimension" if name in (query.dimensions or ()) else "--score"
        raise UserError(f"{option}: no rule has the attribute `{name}`", hint=suggestion(name, known))


COLUMN_OF = {"payload": "payload", "event": "record"}
"""The column that `--with` adds for each name; `event` is the number or name of an event already."""


def extra_columns(names: str | None) -> tuple[str, ...]:
    """What `--with` asks for.

    >>> extra_columns("payload, event"), extra_columns(None)
    (('payload', 'event'), ())
    """
    asked = [name.strip() for name in (names or "").split(",") if name.strip()]
    for name in asked:
        if name not in COLUMN_OF:
            hint = suggestion(name, COLUMN_OF) or "payload and event can be added"
            raise UserError(f"--with: there is no `{name}`", hint=hint)
    return tuple(dict.fromkeys(asked))


def _together(portion: Portion) -> Any:
    """Lines as one text, which the threads that match it read; texts of several lines one by one."""
    if not isinstance(portion, Lines) or not portion.events:
        return portion.events
    text = b"\n".join(portion.events)
    return text if text.count(b"\n") == len(portion) - 1 else portion.events


@dataclass
class QueryRun:
    """An index, the query that is asked about each event, and how to treat events that cannot be read."""

    index: "Index"
    query: "Query"
    key: str | None = None
    threads: int | None = None
    skip_bad: bool = False
    extra: tuple[str, ...] = ()
    """What else is told of each match: its rule's `payload`, its `event`."""
    skipped: int = 0

    def __post_init__(self) -> None:
        """Expect of values what the rules compare them with."""
        known = self.index.attributes
        self.wrong_types = WrongTypes(known)
        if self.query.ask == "best" and known:
            _check_names(self.query, list(known))
        self._key_was_there = False

    def matches(self, source: str, portion: Portion) -> "pa.Table":
        """The matches of a portion of events: `event`, `subscription` and, ranked, `score` and `rank`."""
        readable, found = self._ask(source, portion)
        position = found.column_names.index("event")
        named = found.set_column(position, "event", self._names(readable, found["event"]))
        for name in self.extra:
            texts = self._payloads(found) if name == "payload" else _events(readable, found["event"])
            named = named.append_column(COLUMN_OF[name], texts)
        return named

    def _payloads(self, found: "pa.Table") -> "pa.Array":
        """The payload of each match as text; bytes that are no text are shown as such."""
        import pyarrow as pa

        payloads = self.index.payloads(found["subscription"].to_pylist())
        texts = [
            None if payload is None else payload.decode("utf-8", "backslashreplace") for payload in payloads
        ]
        return pa.array(texts, pa.string())

    def counts(self, source: str, portion: Portion) -> "pa.Table":
        """The number of matches of each event of a portion: `event`, `matches`."""
        import pyarrow as pa

        from tamis._lists import array

        readable, counts = self._ask(source, portion)
        rows = array(range(len(readable)), pa.int64())
        return pa.table({"event": self._names(readable, rows), "matches": counts})

    def any_match(self, source: str, portion: Portion) -> bool:
        """Does any event of a portion match?"""
        _, answers = self._ask(source, portion)
        return any(answers.to_pylist())

    def unknown_tags(self) -> Iterator[str]:
        """What to say of each tag that was asked for and that no rule has."""
        asked = [*(self.query.tags or ()), *self.query.tags_all]
        known = list(self.index.tags) if asked else []
        for tag in asked:
            if tag not in known:
                hint = suggestion(tag, known) or (
                    f"there are {', '.join(known[:10])}" if known else "there are none"
                )
                yield f"no rule has the tag `{tag}`, so nothing matches it ({hint})"

    def _ask(self, source: str, portion: Portion) -> tuple[Portion, Any]:
        """Ask about a portion; if an event in it cannot be read, stop there or ask about the others."""
        import tamis

        cells = not isinstance(portion, Lines) and portion.cells

        def ask(events: Any) -> Any:
            return self.index.ask_batch(self.query, events, threads=self.threads, cells=cells)

        self.wrong_types.look(portion)
        try:
            return portion, ask(_together(portion))
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
                tamis.Event(text, strict=self.index.strict)
            except tamis.EventError as error:
                if not self.skip_bad:
                    message = at_place(f"{source}:{place}", error)
                    hint = SAY_ENCODING if "not UTF-8" in message else "--skip-bad goes on"
                    raise UserError(message, hint=hint) from None
                self.skipped += 1
            else:
                readable.append(number, text, place)
        return readable

    def _check_key(self, records: list[dict[str, Any]]) -> None:
        """Raise if none of the first events has the attribute that is to name them."""
        if self.key is None or self._key_was_there or not records:
            return
        if not any(self.key in record for record in records):
            raise _no_key(self.key, list(dict.fromkeys(name for record in records for name in record)))
        self._key_was_there = True

    def _names(self, portion: Portion, rows: Any) -> Any:
        """What to call the events in these rows of a portion: their numbers, or one of their attributes."""
        import pyarrow as pa

        from tamis._lists import array

        if isinstance(portion, Lines):
            if self.key is None:
                return array(portion.numbers, pa.int64()).take(rows)
            records = [json.loads(text) for text in portion.events]
            self._check_key(records)
            names = [record.get(self.key) for record in records]
            if all(isinstance(name, str) for name in names):
                return array(names, pa.string()).take(rows)
            return pa.array(names).take(rows)
        if self.key is None:
            # Arithmetic with a number would import pandas where it is installed.
            return array(range(portion.first, portion.first + len(portion)), pa.int64()).take(rows)
        if self.key not in portion.events.column_names:
            raise _no_key(self.key, portion.events.column_names)
        return portion.events[self.key].take(rows)


def _events(portion: Portion, rows: Any) -> "pa.Array":
    """The events in these rows of a portion, as JSON."""
    import pyarrow as pa

    if isinstance(portion, Lines):
        texts = [text.decode("utf-8", "replace").strip() for text in portion.events]
    else:
        records = portion.events.to_pylist()
        kept = ({name: value for name, value in record.items() if value is not None} for record in records)
        texts = [json.dumps(record, ensure_ascii=False, default=str) for record in kept]
    return pa.array(texts, pa.string()).take(rows)


def _no_key(key: str, names: list[str]) -> UserError:
    hint = suggestion(key, names) or f"they have {', '.join(names[:10])}"
    return UserError(f"the events have no attribute `{key}`, by which --key names them", hint=hint)
