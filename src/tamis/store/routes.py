"""What a router must know about the subscriptions of each shard to decide which shards an event visits.

Subscriptions that share an access predicate (one that must be true for the expression to be true) are in one
shard, so that an event concerns few shards. Shards are cut so that memory and the work that sample events
would cause are balanced, not the number of rows. The router keeps pruned expressions of each shard: it drops
predicates from ANDs, first those whose absence lets the fewest extra events through, until all fit into a
budget of bytes. A pruned expression covers its original, so no match is missed.
"""

import uuid
import zlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tamis import relate
from tamis._kernel import Expression
from tamis.errors import ExpressionError
from tamis.expr import parse
from tamis.index import Index
from tamis.store.changes import from_bytes, to_bytes
from tamis.store.directory import Directory
from tamis.store.index_files import put_index
from tamis.store.versions import IndexFile

ROUTER_BYTES = 16 << 20
"""What the routing index of all shards may take, by the measure of pruning: 5 bytes a predicate."""

Place = tuple[str, int]
"""Where a subscription stands in the order that is cut into shards: access predicate, hash of the id."""


def places(batch: pa.RecordBatch, sample: pa.Table | None) -> Iterator[tuple[Place, float]]:
    """The place of each subscription, and the share of events that will make the index look at it.

    >>> rows = pa.record_batch({"id": ["a"], "expression": ["country = 'CA' AND age > 30"]})
    >>> [((key, _), work)] = places(rows, None)
    >>> key
    "country = 'CA'"
    """
    ids = batch.column("id").to_pylist()
    texts = batch.column("expression").to_pylist()
    readable = [text if is_readable(text) else "FALSE" for text in texts]
    known = selectivities(readable, sample)
    for id, keys in zip(ids, relate.access_predicates(readable, known), strict=True):
        work = sum(known[key] if key != "TRUE" else 1.0 for key in keys)
        yield (keys[0] if keys else "", zlib.crc32(str(id).encode())), max(work, 1e-9)


def selectivities(expressions: Sequence[str], sample: pa.Table | None) -> relate.Selectivities:
    """How often the predicates of expressions are true for sampled events; estimates without a sample."""
    if sample is None or not sample.num_rows:
        return relate.Selectivities()
    return relate.Selectivities.from_events(expressions, sample)


def is_readable(text: str | None) -> bool:
    """Whether an expression can be parsed; one that cannot is refused later, where errors are reported.

    >>> is_readable("age > 30"), is_readable("age >"), is_readable(None)
    (True, False, False)
    """
    try:
        return text is not None and parse(text) is not None
    except ExpressionError:
        return False


def costs_of(works: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """What each subscription costs: its share of all the work, and its share of all the memory.

    Shards of even cost have at most twice their even share of either. By work alone, all that the sampled
    events do not concern would be free, and could lie in one shard.

    >>> costs_of([3.0, 1.0, 0.0], [10, 10, 20])
    [1.0, 0.5, 0.5]
    """
    work, size = sum(works) or 1.0, sum(sizes) or 1
    return [each / work + bytes / size for each, bytes in zip(works, sizes, strict=True)]


def cut(placed: list[tuple[Place, float]], shards: int) -> list[Place]:
    """The places where the next shard begins, so that every shard has the same cost.

    >>> cut([(("a", 0), 1.0), (("b", 0), 1.0), (("c", 0), 2.0), (("d", 0), 0.5)], 2)
    [('c', 0)]
    """
    ordered = sorted(placed)
    share = sum(cost for _, cost in ordered) / shards
    cuts: list[Place] = []
    done = 0.0
    for place, cost in ordered:
        if done + cost / 2 > share * (len(cuts) + 1) and len(cuts) < shards - 1:
            cuts.append(place)
        done += cost
    return cuts


def put_routes(directory: Directory, texts: Sequence[str], budget: int, sample: pa.Table | None) -> str:
    """Prune the expressions of a shard to a budget of bytes and put what is left into a file.

    What is more than the budget when nothing can be pruned any more becomes one access predicate for each.
    """
    known = selectivities(texts, sample)
    pruned = {str(expression) for expression in relate.prune_many(texts, bytes=budget, selectivities=known)}
    name = f"snapshots/{uuid.uuid4().hex}.routes"
    directory.create(name, to_bytes(pa.table({"expression": pa.array(sorted(pruned), pa.string())})))
    return name


def join_routes(directory: Directory, routes: dict[int, list[str]]) -> tuple[IndexFile, Index]:
    """The routing index of all shards, stored and open; ids are `shard:number`."""
    index = Index()
    for shard, names in routes.items():
        tables = [from_bytes(directory.read(name)) for name in names]
        texts = pa.concat_tables(tables).column("expression").combine_chunks()
        index.add_many([f"{shard}:{number}" for number in range(len(texts))], texts)
    file = put_index(directory, index)
    for names in routes.values():
        for name in names:
            directory.delete(name)
    return file, index


def overlapping(text: str | None, promised: list[list[Expression]]) -> str:
    """The numbers of the sources whose events might match, joined by commas.

    >>> overlapping("price < 5", [[parse("price > 9")], [parse("price < 7 AND kind = 'a'")]])
    '1'
    """
    try:
        expression = parse(text or "FALSE")
    except ExpressionError:
        return ""
    return ",".join(
        str(number)
        for number, texts in enumerate(promised)
        if any(expression.overlaps(advertisement) for advertisement in texts)
    )
