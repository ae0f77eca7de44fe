"""What is believed and kept of what a neighbour tells about sites.

Nobody can tell whether a neighbour passes on what another site said, or makes it up. What can be done:

- *Who may speak of whom* (`relays`): of a neighbour it can be said which sites lie behind it. It may speak
  of itself and of these.
- *The site itself has the last word.* A site that finds something about itself in a neighbour's log that it
  has not said, or that is newer than what it says, says so again with a higher number. So a lie lasts as long
  as news take to the site that it is about and back, or until its neighbours can be reached.
- *Numbers are times.* One that is too far ahead of our own clock is not believed yet. This limit moves: who
  has believed a number believes the next one a moment later, so every lie can be exceeded.
- *How much.* All that other sites tell has a limit in bytes, and sites have one in number. Interest for which
  there is no room counts as "everything", under an entry that says who has marked it: a site gets more events
  than it wants, and none less. Sites behind it need the mark, too: they learn of no interest that had no room
  on the way. Who has marked it has the last word; one that tells of no links for an hour is nobody, and the
  marked site takes the mark back. Links always have room. A site beyond the number is not heard of at all.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tamis.pubsub import keys
from tamis.pubsub.log.contract import Entry, Record
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import MOST_NUMBER, RecordError, number_of
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.advertised import Advertised
from tamis.pubsub.sites.interest import InterestEntry
from tamis.pubsub.sites.topology import SiteLinks

logger = logging.getLogger("tamis.link")

TOLD_BYTES = 1 << 30
TOLD_SITES = 1_000
TOPICS = (keys.INTEREST, keys.LINKS, keys.ADVERTISED, keys.HEARD, keys.APPLIED)
OF_TWO_SITES = (keys.HEARD, keys.APPLIED)
"""Records that the second site of their key has written."""
MICROS = 1_000_000
AHEAD = 30 * 365 * 86_400 * MICROS
"""A number that is so far ahead of the log's time is not believed: no clock is wrong by so much."""
TODAY = 1_767_225_600 * MICROS
"""The beginning of 2026. A log whose clock shows less has a wrong one."""
HIGHEST = MOST_NUMBER - (1 << 40)
"""No higher number is ever believed."""
LOOK_AGAIN = 3_600 * MICROS
"""Minimum time until all of a neighbour's records are looked at again for those that came too early."""
NOBODY_AFTER = 3_600 * MICROS
"""When a site is not heard of for so long after a mark that it seems to have made, there is none."""
LINKS_BYTES = 16_384
"""Links that take no more than this always have room."""
MOST_BY_NAME = 100
_MARK = token("*")


@dataclass(frozen=True)
class Trust:
    """What a site takes from its neighbours.

    >>> Trust(relays={"rome": ("bonn",)}).may_tell("rome", "oslo")
    False
    """

    relays: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Sites that a neighbour may speak of beside itself; one that is not named may speak of all."""
    most_bytes: int = TOLD_BYTES
    """All that other sites have told, as it is kept here."""
    most_sites: int = TOLD_SITES

    def may_tell(self, neighbour: str, site: str) -> bool:
        """Whether a neighbour may speak of a site."""
        return neighbour not in self.relays or site == neighbour or site in self.relays[neighbour]


class Told:
    """What a site has been told of others, and what it takes."""

    def __init__(self, table: Table, here: str, trust: Trust, counters: Counters) -> None:
        """`table` is the router's, which has caught up when records are judged."""
        self._table = table
        self._here = here
        self._trust = trust
        self._counters = counters
        self._admitted: set[str] = set()
        """Sites that are known, as parts of keys."""
        self._room = 0
        self.own_bytes = 0
        """What the interest of this site takes: it needs no room among what others tell."""
        self._above = 0
        """The highest number of what others believe of interest that this site has never had."""
        self._early: dict[str, int] = {}
        """By neighbour: the lowest number that it told too early."""
        self._looked_again: dict[str, int] = {}
        self._strange: dict[str, tuple[int, Record]] = {}
        """Marks of interest of this site by sites that have told of no links, by site, with their time."""
        self.without_room: set[str] = set()
        """Sites some of whose interest had no room since this router began, as parts of keys."""
        self._complained: set[tuple[str, str]] = set()

    def choose(self, neighbour: str, topic: str, records: list[Record]) -> list[Entry]:
        """What is to be written of what a neighbour tells."""
        others, me = self._table.others, token(self._here)
        self._room = self._trust.most_bytes - sum(map(others.size, TOPICS)) + self.own_bytes
        self._admitted.update(token(site) for site in self._table.sites)
        entries: list[Entry] = []
        for record in records:
            if not record.body or not keys.is_key(topic, record.detail):
                continue
            names = record.detail.split(".")
            speaker = names[1] if topic in OF_TWO_SITES else names[0]
            known = others.get((topic, record.detail))
            # What somebody has written here with a number that nobody believes gives way.
            is_kept = known is not None and number_of(known.body) <= self.latest
            if known is not None and is_kept and not is_newer(record.body, known.body):
                continue
            if (number := number_of(record.body)) > self.latest:
                self._early[neighbour] = min(number, self._early.get(neighbour, number))
                self._refuse(neighbour, speaker, "its number is no time, or its clock is wrong")
            elif topic == keys.INTEREST and (maker := marked_by(names[1])) is not None:
                entries += self._marked(neighbour, record, known, names[0], maker)
            elif speaker == me:
                entries += self._corrected(neighbour, topic, record, known)
            elif self._is_believed(neighbour, speaker, names if topic in OF_TWO_SITES else names[:1]):
                entries += self._with_room(topic, record, known)
        return entries

    @property
    def latest(self) -> int:
        """The highest number that is believed now."""
        return min(max(self._table.time, TODAY) + AHEAD, HIGHEST)

    def number_after(self, known: Record | None) -> int:
        """The number of what this site says next under a key.

        What it has said with a number that nobody believes, as by a wrong clock, is said anew.
        """
        said = 0 if known is None else number_of(known.body)
        return max(self._table.time, self._above + 1, said + 1 if said <= self.latest else 1)

    def looks_again(self, neighbour: str) -> bool:
        """Whether to look at all that a neighbour tells again: what came too early may be believed now."""
        now = self._table.time
        if self._early.get(neighbour, HIGHEST + 1) > self.latest:
            return False
        if now < self._looked_again.get(neighbour, -LOOK_AGAIN) + LOOK_AGAIN:
            return False
        del self._early[neighbour]
        self._looked_again[neighbour] = now
        return True

    def _is_believed(self, neighbour: str, speaker: str, sites: list[str]) -> bool:
        """Whether a neighbour may speak of sites (as parts of keys), and there are not too many of them."""
        if not all(site == token(self._here) or self._may_tell(neighbour, site) for site in sites):
            return self._refuse(neighbour, speaker, "`relays` does not name it")
        spoken_of = set(sites) - self._admitted - {token(self._here)}
        if spoken_of and len(self._admitted) + len(spoken_of) > self._trust.most_sites:
            return self._refuse(neighbour, speaker, "there are too many sites: raise `told_sites`")
        self._admitted |= spoken_of
        return True

    def _may_tell(self, neighbour: str, site: str) -> bool:
        return self._trust.may_tell(neighbour, name_of(site))

    def _with_room(self, topic: str, record: Record, known: Record | None) -> list[Entry]:
        more = self._table.others.cost(record) - (0 if known is None else self._table.others.cost(known))
        is_exempt = topic == keys.LINKS and len(record.body) <= LINKS_BYTES
        if more <= max(0, self._room) or is_exempt:
            self._room -= more
            return [Entry(topic, record.detail, record.body)]
        site = record.detail.partition(".")[0]
        self._refuse("", site, "there is no room: raise `told_bytes`, or let it generalise (`[interest]`)")
        if topic != keys.INTEREST:
            return []
        self.without_room.add(site)
        key = (keys.INTEREST, f"{site}.{self._mark_id}")
        mark = self._table.others.get(key)
        if mark is not None and InterestEntry.read_or_everything(mark.body).expression is not None:
            return []
        return [Entry(*key, InterestEntry(self.number_after(mark), "TRUE").body())]

    @property
    def _mark_id(self) -> str:
        return f"{_MARK}{token(token(self._here))}"

    def _marked(
        self, neighbour: str, record: Record, known: Record | None, site: str, maker: str
    ) -> list[Entry]:
        """What is to be written of a mark; `site` had no room at `maker` (parts of keys)."""
        me, said = token(self._here), InterestEntry.read_or_everything(record.body)
        if site == maker:
            return [] if site == me else self._refused(neighbour, site, "a site has room for itself")
        if not self._is_believed(neighbour, maker, [site, maker]):
            return []
        if maker == me:
            ours = None if known is None else InterestEntry.read_or_everything(known.body).expression
            if site in self.without_room:  # of this very batch, it may be
                ours = "TRUE"
            self._above = max(self._above, said.number + 1)
            if said.expression == ours:
                return []
            self._complain(neighbour, site, "others believe in a mark that this site has not made")
            return [Entry(keys.INTEREST, record.detail, InterestEntry(said.number + 1, ours).body())]
        if site != me:
            return self._with_room(keys.INTEREST, record, known)
        if said.expression is None:
            self._strange.pop(maker, None)
        elif name_of(maker) in self._table.sites:
            self._complain(neighbour, maker, "a site has no room for all that is wanted here")
        elif len(self._strange) < self._trust.most_sites and self._table.others.cost(record) <= self._room:
            since = self._strange.get(maker, (self._table.time, record))[0]
            self._strange[maker] = since, record
        return []

    def taken_back(self) -> list[Entry]:
        """What takes back marks of interest of this site by sites that nobody has heard of since."""
        entries: list[Entry] = []
        for maker, (since, record) in list(self._strange.items()):
            if name_of(maker) in self._table.sites:
                del self._strange[maker]
            elif self._table.time >= since + NOBODY_AFTER:
                del self._strange[maker]
                number = number_of(record.body) + 1
                entries.append(Entry(keys.INTEREST, record.detail, InterestEntry(number, None).body()))
        return entries

    def unmarked(self) -> list[Entry]:
        """What takes back the marks of sites whose interest has room, once all of it was looked at."""
        entries: list[Entry] = []
        for detail, record in self._table.others.of(keys.INTEREST).items():
            site, _, id = detail.partition(".")
            entry = InterestEntry.read_or_everything(record.body)
            if id == self._mark_id and entry.expression is not None and site not in self.without_room:
                number = self.number_after(record)
                entries.append(Entry(keys.INTEREST, detail, InterestEntry(number, None).body()))
        return entries

    def _corrected(self, neighbour: str, topic: str, record: Record, known: Record | None) -> list[Entry]:
        """What this site says again, since others believe something else of it."""
        if topic in OF_TWO_SITES:
            return []
        self._complain(neighbour, topic, "others believe what this site has not said")
        number = number_of(record.body) + 1
        try:
            if topic == keys.INTEREST:
                if known is None and not self._is_worth_correcting(neighbour, record):
                    self._above = max(self._above, number)
                    return []
                wanted = None if known is None else InterestEntry.read(known.body).expression
                return [Entry(topic, record.detail, InterestEntry(number, wanted).body())]
            if topic == keys.ADVERTISED:
                said = Advertised(0) if known is None else Advertised.read(known.body)
                return [Entry(topic, record.detail, replace(said, number=number).body())]
            links = SiteLinks(0) if known is None else SiteLinks.read(known.body)
        except RecordError:
            return []
        return [Entry(topic, record.detail, replace(links, number=number).body())] if known else []

    def _is_worth_correcting(self, neighbour: str, record: Record) -> bool:
        """Whether to take back an entry that this site has never had.

        If it is wanted here one day, its number is higher. Until then it brings more events at worst.
        """
        if InterestEntry.read_or_everything(record.body).expression is None:
            return False
        cost = self._table.others.cost(record)
        if cost > self._room:
            return self._refuse(neighbour, token(self._here), "there is no room to correct it")
        self._room -= cost
        return True

    def _refused(self, neighbour: str, site: str, why: str) -> list[Entry]:
        self._refuse(neighbour, site, why)
        return []

    def _refuse(self, neighbour: str, site: str, why: str) -> bool:
        self._counters.disbelieved += 1
        self._complain(neighbour, site, why)
        return False

    def _complain(self, neighbour: str, what: str, why: str) -> None:
        if (what, why) not in self._complained and len(self._complained) < MOST_BY_NAME:
            self._complained.add((what, why))
            logger.error("not believed", extra={"site": neighbour, "about": what, "error": why})


def marked_by(id: str) -> str | None:
    """The site that an id of interest is a mark of, as a part of a key; None if it is a subscription's.

    >>> marked_by("=2Arome"), marked_by("=2A=3D40rome"), marked_by("=2Aann=2Es"), marked_by("ann=2Es")
    ('rome', '=40rome', None, None)
    """
    try:
        maker = name_of(id.removeprefix(_MARK)) if id.startswith(_MARK) else ""
        return maker if maker and token(name_of(maker)) == maker else None
    except ValueError:
        return None


def is_newer(body: bytes, known: bytes) -> bool:
    """The higher number; of equal ones the larger bytes, so that all sites end with the same.

    >>> is_newer(b'{"v":1,"k":2}', b'{"v":1,"k":1}')
    True
    """
    return (number_of(body), body) > (number_of(known), known)
