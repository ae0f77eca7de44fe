"""Finds the shard for a subscription that is added to existing shards, and the route to it.

An addition goes to the shard of its access predicate, as if it had existed when the shards were cut; by
source, to a shard that its sources visit. The router keeps its expression unpruned, so that no other events
visit the shard because of it. When changes are folded, the routes are pruned like those of a build, and
uneven shards are cut again.
"""

import bisect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.index import Index
from tamis.store.change_log import changes_after
from tamis.store.changes import UPSERT
from tamis.store.directory import Directory
from tamis.store.host_cache import open_file
from tamis.store.routes import (
    ROUTER_BYTES,
    Place,
    costs_of,
    cut,
    join_routes,
    overlapping,
    places,
    put_routes,
)
from tamis.store.rows import subscription_rows, subscription_schema
from tamis.store.versions import IdKind, Version

UNEVEN = 1.5
"""How much more than its even share the largest shard may hold before shards are cut again."""


def shards_of_changes(
    directory: Directory, version: Version, changes: Sequence[dict[str, Any]], held: Sequence[int]
) -> list[int]:
    """The shard of each change; `held` are the subscriptions that the shards hold now."""
    if len(version.shards) == 1 or version.router is None:
        return [0] * len(changes)
    texts = [change["expression"] if change["op"] == UPSERT else None for change in changes]
    if version.plan == "by-source":
        return _by_source(directory, version, texts, list(held))
    rows = pa.record_batch(
        {
            "id": pa.array([str(change["id"]) for change in changes]),
            "expression": pa.array(texts, pa.string()),
        }
    )
    cuts = version.router.cuts or _even_cuts(len(version.shards))
    return [bisect.bisect_right(cuts, place) for place, _ in places(rows, None)]


def _even_cuts(shards: int) -> list[Place]:
    """Of shards whose cuts format 1 did not store: by the first letters of predicates."""
    return [(chr(32 + 95 * shard // shards), 0) for shard in range(1, shards)]


def _by_source(
    directory: Directory, version: Version, texts: Sequence[str | None], held: list[int]
) -> list[int]:
    """Shards that the sources of each subscription visit anyway, the emptiest of those."""
    assert version.router is not None
    promised = _promised(directory, version)
    visits = [set(version.router.sources.get(source, [])) for source in promised]
    found = []
    for text in texts:
        sources = [int(number) for number in overlapping(text, list(promised.values())).split(",") if number]
        missing = [sum(shard not in visits[source] for source in sources) for shard in range(len(held))]
        chosen = min(range(len(held)), key=lambda shard: (missing[shard], held[shard]))
        held[chosen] += text is not None
        found.append(chosen)
    return found


def _promised(directory: Directory, version: Version) -> dict[str, list[Any]]:
    """The advertisements of each source, in the order of the sources."""
    assert version.router is not None
    found: dict[str, list[Any]] = {source: [] for source in version.router.sources}
    if version.router.advertisements is not None:
        for id, held in open_file(directory, version.router.advertisements).items():
            found.setdefault(str(id).rsplit(":", 1)[0], []).append(held.expression)
    return found


def are_uneven(shards: Sequence[Sequence[Index]]) -> bool:
    """Whether a shard holds far more than its share.

    >>> small, large = Index(), Index()
    >>> errors = large.add_many(range(9), ["x > 1"] * 9)
    >>> are_uneven([[small], [large]]), are_uneven([[large], [large]])
    (True, False)
    """
    sizes = [sum(map(len, indexes)) for indexes in shards]
    return max(sizes) > UNEVEN * sum(sizes) / len(sizes)


def cut_shards_again(shards: Sequence[Sequence[Index]], ids: IdKind) -> tuple[list[list[Index]], list[Place]]:
    """The subscriptions of all shards in as many new ones of even cost, and where those are cut."""
    rows = [row for indexes in shards for index in indexes for row in subscription_rows(index)]
    batch = pa.record_batch(
        {
            "id": pa.array([str(row["id"]) for row in rows]),
            "expression": pa.array([row["expression"] for row in rows], pa.string()),
        }
    )
    found = list(places(batch, None))
    costs = costs_of([work for _, work in found], [len(row["expression"]) for row in rows])
    cuts = cut([(place, cost) for (place, _), cost in zip(found, costs, strict=True)], len(shards))
    homes = [bisect.bisect_right(cuts, place) for place, _ in found]
    indexes = []
    for shard in range(len(shards)):
        index = Index()
        here = [row for row, home in zip(rows, homes, strict=True) if home == shard]
        index.add_table(pa.Table.from_pylist(here, subscription_schema(ids)))
        indexes.append([index])
    return indexes, cuts


def put_shard_routes(directory: Directory, version: Version, indexes: Sequence[Index]) -> str | None:
    """Put what a router must know of a shard into a file, and name it; None where nothing is pruned."""
    if version.router is None or version.plan == "by-source":
        return None
    texts = [str(held.expression) for index in indexes for _, held in index.items()]
    return put_routes(directory, texts, ROUTER_BYTES // len(version.shards), None)


def with_new_routes(
    directory: Directory, after: Version, before: Version, routes: Sequence[str | None]
) -> Version:
    """The version with a router that knows what its changes added; `before` still has them as changes."""
    router = after.router
    if router is None:
        return after
    if after.plan == "by-source":
        return replace(after, router=replace(router, sources=_visited(directory, before)))
    named = {shard: [name] for shard, name in enumerate(routes) if name is not None}
    rules, _ = join_routes(directory, named)
    return replace(after, router=replace(router, rules=rules))


def _visited(directory: Directory, version: Version) -> dict[str, list[int]]:
    """The shards of each source, with those where changes put what its events might match."""
    assert version.router is not None
    promised = _promised(directory, version)
    names = list(promised)
    visits = {source: set(shards) for source, shards in version.router.sources.items()}
    for table in changes_after(directory, version, -1):
        for change in table.to_pylist():
            if change["op"] == UPSERT:
                for number in overlapping(change["expression"], list(promised.values())).split(","):
                    if number:
                        visits[names[int(number)]].add(change.get("shard") or 0)
    return {source: sorted(shards) for source, shards in visits.items()}
