"""From a batch that was matched to the queues of neighbouring sites.

An event's origin decides, with what every site has told it, which sites the event goes to, and numbers it
for each of them. From then on it carries these sites, each with its number. Every site on its way sends each
of them on over the next link towards it, as it sees the links. So two sites that see the links differently
for a while send an event over one link more, and none is dropped because each believed the other
responsible. A site takes a number from an origin once, so any graph is allowed.
"""

from collections.abc import Iterable

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
    table: Table, here: str, matched: Matched, rows: Iterable[int], cursor: Cursor
) -> tuple[list[Wanted], dict[str, int]]:
    """What goes to neighbouring sites of some rows, and the numbers after that."""
    sites = cursor.sites
    if not matched.sites and matched.are_plain:
        return [], sites
    topology = topology_of(table, here)
    sites = dict(sites)
    queues: dict[str, Wanted] = {}
    ways: dict[str, Wanted] = {}
    """The queue of each site's next hop."""
    wanting, headers, nobody = matched.sites, matched.headers, ()
    going: Iterable[int] = rows
    if matched.are_plain:
        going = [row for row in rows if row in wanting]
    elif matched.came:  # most go no further
        came = matched.came
        going = [row for row in rows if row not in came or len(_targets_of(headers[row])) > 1]
    for row in going:
        header = headers[row]
        if header is None or row in matched.dead:
            continue
        targets: list[Target] = [target for target in header.targets if target[0] != here]
        for site in wanting.get(row, nobody):
            sites[site] = number = sites.get(site, 0) + 1
            targets.append((site, number))
        for target in targets:
            queue = ways.get(target[0])
            if queue is None:
                # Where no way is known, the event waits here under the site's own name.
                name = f"{SITE}{token(topology.next_hop(target[0]) or target[0])}"
                queue = ways[target[0]] = queues.setdefault(name, Wanted(name, 0, []))
            if (before := queue.targets.get(row)) is None:
                queue.rows.append(row)
                queue.targets[row] = (target,)
            else:
                queue.targets[row] = (*before, target)
    return [queues[name] for name in sorted(queues)], sites


def _targets_of(header: EventHeader | None) -> tuple[Target, ...]:
    return () if header is None else header.targets
