"""What sites advertise: each event that is published there satisfies an advertisement, or goes everywhere.

A site tells what its publishers advertise in one numbered record. Another site then need not tell what
overlaps nothing that any site advertises; once its interest is told accordingly, it says which record it has
*heard*. So for each other site the origin of an event knows whether that site's interest can be trusted:

- the site has heard the last record, and the event conforms to it: the interest decides;
- otherwise the event goes to that site. Nothing is missed while advertisements change, nor when a publisher
  breaks its promise; only more events travel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import tamis
from tamis._kernel import Expression
from tamis.errors import TamisError
from tamis.pubsub import keys
from tamis.pubsub.names import token
from tamis.pubsub.records import Fields, RecordError, is_text_list, number_of, write
from tamis.pubsub.router.table import Table


@dataclass(frozen=True, slots=True)
class Advertised:
    """All that a site advertises; a later number replaces an earlier one. Nothing: it may publish anything.

    >>> Advertised.read(Advertised(3, ("price > 10",)).body()).expressions
    ('price > 10',)
    """

    number: int
    expressions: tuple[str, ...] = ()

    def body(self) -> bytes:
        """The record."""
        return write({"k": self.number, "expressions": list(self.expressions)})

    @classmethod
    def read(cls, body: bytes) -> "Advertised":
        """Read a record."""
        fields = Fields(body, "list of advertisements")
        return cls(fields.number("k"), tuple(fields.take("expressions", is_text_list, [])))


def others_advertise(table: Table, here: str) -> list[Expression] | None:
    """What all other sites advertise together; None if one of them may publish anything."""
    found: list[Expression] = []
    others = table.sites - {here}
    for site in others:
        record = table.others.get((keys.ADVERTISED, token(site)))
        if record is None:
            return None
        try:
            texts = Advertised.read(record.body).expressions
            found += [tamis.parse(text) for text in texts]
        except (RecordError, TamisError):
            return None  # what cannot be read here may be anything
        if not texts:
            return None
    return found if others else None


def heard_of(table: Table, here: str) -> dict[str, int]:
    """The number of what each other site advertises, also of records that cannot be read here."""
    return {
        site: number_of(record.body)
        for site in table.sites - {here}
        if (record := table.others.get((keys.ADVERTISED, token(site)))) is not None
    }


class Promise:
    """What a site has promised of its events, and who relies on it."""

    def __init__(self, table: Table) -> None:
        """Take what a router knows of its site."""
        self._table = table
        self._seq = 0
        self._number = 0
        self._index: tamis.Index | None = None

    def sites(self, here: str, events: Sequence[bytes]) -> tuple[set[str], dict[int, set[str]]]:
        """Other sites that must get all of these events, and rows that must go to every site."""
        record = self._table.others.get((keys.ADVERTISED, token(here)))
        others = self._table.sites - {here}
        if record is None or not others:
            return set(), {}
        if record.seq != self._seq:
            self._read(record.body)
            self._seq = record.seq
        # Nobody has heard of what this site has not said yet.
        unaware = {site for site in others if self._heard(here, site) != self._number}
        if self._index is None or unaware == others:
            return unaware, {}
        try:
            conforming = self._index.ask_batch(tamis.Query("exists"), list(events)).to_pylist()
        except TamisError:
            return others, {}  # some event is none: its row is dead, and the others are few
        return unaware, {row: others for row, conforms in enumerate(conforming) if not conforms}

    def _heard(self, here: str, site: str) -> int:
        record = self._table.others.get((keys.HEARD, f"{token(here)}.{token(site)}"))
        return -1 if record is None else number_of(record.body)

    def _read(self, body: bytes) -> None:
        self._number, self._index = number_of(body), None
        try:
            texts = Advertised.read(body).expressions
            index = tamis.Index()
            index.add_many(list(range(len(texts))), list(texts))
        except (RecordError, TamisError):
            self._index = tamis.Index()  # nothing conforms to what cannot be read
            return
        if texts:
            self._index = index
