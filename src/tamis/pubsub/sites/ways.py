"""From a batch that was matched to the queues of neighbouring sites.

An event's origin decides, with what every site has told it, which sites the event goes to, and numbers it
for each of them. From then on it carries these sites, each with its number. Every site on its way sends each
of them on over the next link towards it, as it sees the links. So two sites that see the links differently
for a while send an event over one link more, and none is dropped because each believed the other
responsible. A site takes a number from an origin once, so any graph is allowed.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from tamis.pubsub import keys
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import Cursor, EventHeader, RecordError, Target
from tamis.pubsub.router.matching import SITE, Matched, Wanted
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.topology import SiteLinks, Topology


def topology_of(table: Table, here: str) -> Topology:
    """The links that sites have told of."""
    links: dict[str, SiteLinks] = {}
    for detail, record in table.others.of(keys.LINKS).items():
        try:
            links[name_of(detail)] = SiteLinks.read(record.body)
        except RecordError:
            continue
    return Topology(here, links)


def site_deliveries(
    table: Table, here: str, matched: Matched, rows: range, cursor: Cursor
) -> tuple[list[Wanted], dict[str, int]]:
    """What goes to neighbouring sites of some rows, and the numbers after that."""
    if not matched.sites and matched.are_plain:
        return [], cursor.sites
    sites = dict(cursor.sites)
    numbered: dict[str, tuple[list[int], int]] = {}
    """Of each site, the rows that it wants and the number of the first."""
    for site in sorted(matched.sites):
        every = matched.sites[site]
        wanted = every[bisect_left(every, rows.start) : bisect_left(every, rows.stop)]
        if wanted:
            numbered[site] = wanted, sites.get(site, 0) + 1
            sites[site] = sites.get(site, 0) + len(wanted)
    topology = topology_of(table, here)
    queues: dict[str, Wanted] = {}
    ways = {site: _queue_to(site, topology) for site in numbered}
    going: dict[int, list[Target]] = {}
    if not matched.are_plain:
        going = _onward(matched.headers, here, [row for row in rows if row not in matched.dead])
    if not going and len(set(ways.values())) == len(ways):
        alone = [
            Wanted(ways[site], 0, wanted, to=(site, first)) for site, (wanted, first) in numbered.items()
        ]
        return sorted(alone, key=attrgetter("name")), sites
    for site, (wanted, first) in numbered.items():
        for number, row in enumerate(wanted, first):
            going.setdefault(row, []).append((site, number))
    for row in sorted(going):
        for target in going[row]:
            if target[0] not in ways:
                ways[target[0]] = _queue_to(target[0], topology)
            name = ways[target[0]]
            queue = queues.setdefault(name, Wanted(name, 0, []))
            if (before := queue.targets.get(row)) is None:
                queue.rows.append(row)
                queue.targets[row] = (target,)
            else:
                queue.targets[row] = (*before, target)
    return [queues[name] for name in sorted(queues)], sites


def _queue_to(site: str, topology: Topology) -> str:
    """The queue of the next hop to a site. Where no way is known, events wait under the site's own name."""
    return f"{SITE}{token(topology.next_hop(site) or site)}"


def _onward(headers: Sequence[EventHeader | None], here: str, rows: Sequence[int]) -> dict[int, list[Target]]:
    """Of the rows that go on to other sites, where each goes."""
    distinct = {id(header): header for header in headers}  # many events share one
    left = {
        shared: [target for target in header.targets if target[0] != here]
        for shared, header in distinct.items()
        if header is not None
    }
    return {row: list(left[id(headers[row])]) for row in rows if left.get(id(headers[row]))}
