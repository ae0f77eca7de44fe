"""Finds the way to a site, from what sites report about their links. Pure: the same result everywhere.

Each site tells all others which neighbours take events from it: those that do so at the moment, and those
that are configured. The way is the shortest over links that work; where there is none, the shortest over
configured ones, so that events wait as near as possible to a site that is away. Ties go to the smaller name.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.pubsub.records import Fields, is_text_list, write


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """What a site says of its links; a later number replaces an earlier one.

    >>> SiteLinks.read(SiteLinks(1, ("rome",), ("rome", "bonn"), 7).body()).configured
    ('rome', 'bonn')
    """

    number: int
    working: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    position: int = 0
    """All its subscriptions up to here are in the interest that it has told before this."""

    def body(self) -> bytes:
        """The record."""
        fields: dict[str, Any] = {"k": self.number, "working": list(self.working)}
        return write({**fields, "configured": list(self.configured), "position": self.position})

    @classmethod
    def read(cls, body: bytes) -> "SiteLinks":
        """Read a record."""
        fields = Fields(body, "list of links")
        return cls(
            fields.number("k"),
            tuple(fields.take("working", is_text_list, [])),
            tuple(fields.take("configured", is_text_list, [])),
            fields.number("position", 0),
        )


@dataclass(frozen=True)
class Topology:
    """All links between sites, as seen from one of them.

    >>> links = {"a": SiteLinks(1, ("b", "c"), ("b", "c")), "b": SiteLinks(1, ("d",), ("d",))}
    >>> topology = Topology("a", links)
    >>> topology.next_hop("d"), topology.next_hop("c"), topology.next_hop("x")
    ('b', 'c', None)
    """

    here: str
    links: Mapping[str, SiteLinks]
    _hops: dict[bool, dict[str, str]] = field(default_factory=dict, compare=False, repr=False)

    def next_hop(self, target: str) -> str | None:
        """The neighbour on the way to a site; None if nobody knows a way."""
        return self._ways(working=True).get(target) or self._ways(working=False).get(target)

    def is_reachable(self, target: str) -> bool:
        """Whether there is a way over links that work."""
        return target in self._ways(working=True)

    @property
    def sites(self) -> Collection[str]:
        """All sites that have said anything."""
        return self.links.keys()

    def _ways(self, *, working: bool) -> dict[str, str]:
        known = self._hops.get(working)
        if known is not None:
            return known
        hops: dict[str, str] = {}
        waiting = deque([self.here])
        while waiting:
            site = waiting.popleft()
            links = self.links.get(site, SiteLinks(0))
            for neighbour in sorted(links.working if working else links.configured):
                if neighbour != self.here and neighbour not in hops:
                    hops[neighbour] = neighbour if site == self.here else hops[site]
                    waiting.append(neighbour)
        self._hops[working] = hops
        return hops
