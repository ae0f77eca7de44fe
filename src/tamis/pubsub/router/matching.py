"""Matches one batch of events and returns its deliveries. Pure: no log, no clock."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import tamis
from tamis import Query
from tamis.errors import TamisError
from tamis.pubsub import keys
from tamis.pubsub.log.contract import Record
from tamis.pubsub.names import name_of
from tamis.pubsub.records import HIGHEST_PRIORITY, ROLLBACK, EventHeader, RecordError, Target
from tamis.pubsub.router.arrivals import Arrival
from tamis.pubsub.router.table import Owner, Table, owner_of

SITE = "=40"
"""How the names of sites begin among subscribers: `@`, as a part of a key."""


Everywhere = Callable[[str, Sequence[bytes]], tuple[set[str], dict[int, set[str]]]]


@dataclass(slots=True)
class Wanted:
    """The events of a batch that one subscriber wants under one priority: rows of the batch, in order."""

    name: str
    priority: int
    rows: list[int]
    unsure: set[int] = field(default_factory=set)
    targets: dict[int, tuple[Target, ...]] = field(default_factory=dict)
    """Between sites: the sites that a row is on its way to."""
    to: Target | None = None
    """Instead of targets, where all rows go to one site: that site, and the number of the first row. The
    others have the numbers behind it."""


@dataclass(slots=True)
class Matched:
    """A batch of events with its matches."""

    records: Sequence[Record]
    events: list[bytes]
    headers: list[EventHeader | None]
    wanted: list[Wanted]
    dead: dict[int, str]
    """Rows that cannot be processed, with the reason."""
    sites: dict[str, list[int]]
    """The other sites, each with the rows that it wants of those that were published here, in order."""
    numbers: list[int]
    """The number of each event in the log."""
    sizes: list[int]
    """The bytes of each event with its header, which is stored too."""
    are_plain: bool
    """Whether all of them are events that were published here."""
    gaps: dict[int, int]
    """Rows that are no events but say that some are missing: how many."""
    rollbacks: set[int]
    """Those of them that say that a log was rolled back."""
    came: set[int]
    """Rows that came from other sites for subscribers here."""


def match(
    table: Table,
    records: Sequence[Record],
    site: str,
    everywhere: Everywhere | None = None,
    known: Mapping[int, Arrival] | None = None,
) -> Matched:
    """Match a batch with one call per run of events for which the same subscriptions have expired.

    An event that only passes through this site is not matched: its origin has decided where it goes.
    `everywhere` says, of events, which sites must get all of them, and which rows must go to which sites.
    `known` are events that were read before, by number.
    """
    headers, events, dead, are_plain = _split(records, known or {})
    ours = good = (
        [row for row in range(len(records)) if row not in dead] if dead else list(range(len(records)))
    )
    gaps: dict[int, int] = {}
    came: set[int] = set()
    if not are_plain:
        # Many events share a header, so each is looked at once.
        distinct = {id(header): header for header in headers}
        for_here = {here for here, header in distinct.items() if _came_for(header, site)}
        if len(for_here) == len(distinct) and not dead:  # as nearly always where several links bring events
            came = set(ours)
        else:
            kept = for_here | {here for here, header in distinct.items() if _is_published(header)}
            came = {row for row in ours if id(headers[row]) in for_here}
            ours = [row for row in ours if id(headers[row]) in kept]
        if any(header and header.missing for header in distinct.values()):
            gaps = {row: header.missing for row, header in enumerate(headers) if header and header.missing}
        good = [row for row in ours if row not in gaps] if gaps else ours
    found: dict[str, list[tuple[Owner, list[int]]]] = {}
    if len(table.index):
        for run in _runs(table, records, good):
            _match_run(table, records, events, run, found=found, dead=dead)
    for row in ours if gaps else ():
        if row in gaps:  # what was lost on its way may have been for anyone
            for name in table.queues:
                found.setdefault(name, []).append((Owner(name, HIGHEST_PRIORITY, is_unsure=False), [row]))
    wanted: list[Wanted] = []
    for name in sorted(found):
        if not name.startswith(SITE):
            wanted += _of_subscriber(name, found[name])
    return Matched(
        records,
        events,
        headers,
        wanted,
        dead,
        _sites(
            table,
            found,
            events,
            None if are_plain else headers,
            site=site,
            everywhere=everywhere,
            dead=dead,
        ),
        [record[0] for record in records],
        [len(record[4]) for record in records],
        are_plain,
        gaps,
        {row for row in gaps if (header := headers[row]) is not None and header.reason == ROLLBACK},
        came,
    )


def _came_for(header: EventHeader | None, site: str) -> bool:
    """Whether an event came from another site for subscribers here."""
    if header is None or header.origin is None:
        return False
    return site in dict(header.targets)


def _is_published(header: EventHeader | None) -> bool:
    """Whether an event was published here."""
    return header is None or header.origin is None


MOST_REMEMBERED = 1_000
"""Bytes of a header: longer ones are read each time."""
_plain: dict[tuple[bytes, str], EventHeader] = {}


def _split(
    records: Sequence[Record], arrived: Mapping[int, Arrival]
) -> tuple[list[EventHeader | None], list[bytes], dict[int, str], bool]:
    if arrived and all([record[0] in arrived for record in records]):  # noqa: C419 - many
        here = [arrived[record[0]] for record in records]
        return [arrival[3] for arrival in here], [arrival[4] for arrival in here], {}, False
    headers: list[EventHeader | None] = []
    events: list[bytes] = []
    dead: dict[int, str] = {}
    are_plain = not arrived
    known = _plain.get
    header: EventHeader | None = None
    text_before, detail_before = b"", ""
    for row, record in enumerate(records):
        if (arrival := arrived.get(record[0])) is not None:
            headers.append(arrival[3])
            events.append(arrival[4])
            continue
        _, _, detail, _, body = record
        text, _, event = body.partition(b"\n")
        if header is None or text != text_before or detail != detail_before:
            header = known((text, detail))
            text_before, detail_before = text, detail
        if header is None:
            try:
                header = _checked(EventHeader.read(text), record[2])
            except RecordError as error:
                dead[row] = error.reason  # which more can read than the event
            else:
                if header.origin is None and not header.missing:  # those of one session are all the same
                    if len(_plain) > 10_000:
                        _plain.clear()
                    if len(text) < MOST_REMEMBERED:
                        _plain[text, record[2]] = header
                else:
                    are_plain = False
        headers.append(header)
        events.append(event)
    return headers, events, dead, are_plain


def _checked(header: EventHeader, detail: str) -> EventHeader:
    """A header, if it may lie under a detail: a publisher is neither a site nor another publisher."""
    if header.origin is not None or header.missing:
        if not keys.is_of_router(detail):
            raise RecordError("the event says that it comes from another site, and no router has written it")
    elif header.targets:  # with numbers that would count as taken there
        raise RecordError("the event says to which sites it is on its way, and no router has written it")
    elif not keys.is_of_publisher(detail, header.publisher):
        raise RecordError("the event says that it comes from another publisher than its session")
    return header


def _runs(table: Table, records: Sequence[Record], rows: list[int]) -> list[list[int]]:
    if not table.expiries or not rows:
        return [rows] if rows else []
    runs: list[list[int]] = []
    before = -1
    for row in rows:
        expired = bisect_right(table.expiries, records[row].time)
        if expired != before:
            runs.append([])
            before = expired
        runs[-1].append(row)
    return runs


def _match_run(
    table: Table,
    records: Sequence[Record],
    events: list[bytes],
    run: list[int],
    *,
    found: dict[str, list[tuple[Owner, list[int]]]],
    dead: dict[int, str],
) -> None:
    query = Query("owners", now=records[run[0]].time)
    # Read as a whole: subscribers look at what no subscription does.
    some, good = [], []
    for row in run:
        try:
            some.append(tamis.Event(events[row]))
        except TamisError as error:
            dead[row] = str(error)
        else:
            good.append(row)
    run = good
    answer = table.index.ask_batch(query, some)
    if not answer.num_rows:
        return
    by_owner: dict[str, list[int]] = defaultdict(list)
    # Python's own lists: what turns Arrow into NumPy imports pandas first, where it is installed.
    places = answer.column("event").to_pylist()
    if len(run) != len(events):
        places = [run[place] for place in places]
    for owner, row in zip(answer.column("owner").to_pylist(), places, strict=True):
        by_owner[owner].append(row)
    for text, rows in by_owner.items():
        owned = owner_of(text)
        found.setdefault(owned.name, []).append((owned, sorted(rows)))


def _of_subscriber(name: str, matches: list[tuple[Owner, list[int]]]) -> list[Wanted]:
    """One delivery per event: of several matching subscriptions the highest priority counts."""
    if len(matches) == 1:
        owner, rows = matches[0]
        return [Wanted(name, owner.priority, rows, set(rows) if owner.is_unsure else set())]
    best: dict[int, int] = {}
    sure: set[int] = set()
    for owner, rows in matches:
        for row in rows:
            best[row] = max(owner.priority, best.get(row, 0))
        if not owner.is_unsure:
            sure.update(rows)
    # In runs of one priority: a queue is read in the order of its records, and a publisher's order is kept.
    runs: list[Wanted] = []
    for row in sorted(best):
        if not runs or runs[-1].priority != best[row]:
            runs.append(Wanted(name, best[row], []))
        runs[-1].rows.append(row)
        if row not in sure:
            runs[-1].unsure.add(row)
    return runs


def _sites(
    table: Table,
    found: dict[str, list[tuple[Owner, list[int]]]],
    events: list[bytes],
    headers: list[EventHeader | None] | None,
    *,
    site: str,
    everywhere: Everywhere | None,
    dead: Mapping[int, str],
) -> dict[str, list[int]]:
    """Which events that were published here other sites want. `headers` say which these are; None: all."""
    if headers is not None and not any(map(_is_published, {id(one): one for one in headers}.values())):
        return {}
    wanting: dict[str, list[list[int]]] = defaultdict(list)
    for name, matches in found.items():
        if name.startswith(SITE):
            wanting[name_of(name.removeprefix(SITE))] += [rows for _, rows in matches]
    if table.sites:
        # Relations between expressions are about points: an event with sets of values goes everywhere. One
        # byte is found fifteen times as fast as two.
        sets = [row for row, event in enumerate(events) if b"$" in event and b'"$' in event]
        always, also = (set(), {}) if everywhere is None else everywhere(site, events)
        for other in table.sites if sets else ():
            wanting[other].append(sets)
        for other in always:
            wanting[other].append(list(range(len(events))))
        for row, others in also.items():
            for other in others:
                wanting[other].append([row])
    wanting.pop(site, None)
    going = {
        other: rows[0] if len(rows) == 1 else sorted(set(chain(*rows))) for other, rows in wanting.items()
    }
    if headers is None and not dead:
        return going
    published = {
        row
        for row in range(len(events))
        if row not in dead and (headers is None or _is_published(headers[row]))
    }
    left = {other: [row for row in rows if row in published] for other, rows in going.items()}
    return {other: rows for other, rows in left.items() if rows}
