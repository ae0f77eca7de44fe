"""What a small change costs, however many came before it; and that few files say what many said."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from seeds import few
from tamis.spark.plans.routing import RouterIndexes
from tamis.store import apply_changes as apply
from tamis.store import change_log, directory, folding, open_shards
from tamis.store.changes import change_schema
from tamis.store.directory import Directory, open_directory
from tamis.store.index_files import put_index
from tamis.store.versions import Router, Version, create_version, publish, read_version, version_file
from tamis_lab.benchmark.counted_directory import CountedDirectory

SCHEMA = change_schema("int")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountedDirectory:
    monkeypatch.setattr(directory, "_write_durably", lambda path, data: path.write_bytes(data))
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    return CountedDirectory(str(tmp_path / "store"))


def put(store: Directory, sequence: int, *rows: tuple[str, int, str | None]) -> Any:
    changes = [{"op": op, "sequence": sequence, "id": id, "expression": text} for op, id, text in rows]
    return apply.apply_to_store(store, pa.Table.from_pylist(changes, SCHEMA), SCHEMA)


def forget() -> None:
    """As in a process that has just started."""
    open_shards._opened.clear()
    change_log._held.clear()


@pytest.mark.thorough
def test_the_hundredth_change_costs_what_the_first_did(store: CountedDirectory) -> None:
    costs = []
    for number in range(320):
        store.counted.clear()
        put(store, number, ("add", number, f"x > {number}"))
        costs.append([store.counted[name] for name in ("requests", "names", "bytes")])
    # Means of windows in which small merges fall alike; the first change also cleans the store.
    early, late = costs[16:80], costs[-64:]
    for what, first, last in zip(("requests", "names", "bytes"), *map(_mean, (early, late)), strict=True):
        assert last <= 1.5 * first + (256 if what == "names" else 0), what
    assert max(requests for requests, _, _ in costs[1:]) <= 12
    forget()
    store.counted.clear()
    put(store, 1000, ("add", 1000, "x > 1000"))
    assert store.counted["requests"] < 30, "a new process reads few files"
    assert len(read_version(store).changes) < 15


def _mean(costs: list[list[int]]) -> list[float]:
    return [sum(column) / len(costs) for column in zip(*costs, strict=True)]


@pytest.mark.parametrize("seed", few(range(3)))
def test_every_version_holds_what_its_changes_say(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """For whoever follows, for whoever starts, and for whoever goes back; while changes are folded, too."""
    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 25)
    choose = random.Random(seed)
    expected: dict[int, str] = {}
    states: dict[int, dict[int, str]] = {}
    seen: set[int] = set()
    for step in range(60):
        rows: dict[int, tuple[str, int, str | None]] = {}
        for _ in range(choose.randint(1, 4)):
            id = choose.randrange(30)
            text = None if choose.random() < 0.3 else f"x > {choose.randrange(99)}"
            rows[id] = ("remove" if text is None else "replace", id, text)
        put(store, step, *rows.values())
        seen |= rows.keys()
        for _, id, text in rows.values():
            expected.pop(id, None)
            if text is not None:
                expected[id] = text
        version = read_version(store)
        assert version.number == step + 1
        assert version.subscriptions == len(expected)
        states[step + 1] = dict(expected)
        looked_at = choose.choice([*states])
        if choose.random() < 0.3:
            forget()
        assert held(store, read_version(store, looked_at)) == states[looked_at]
    assert held(store, read_version(store)) == expected
    late = put(store, -1, *(("add", id, "x > 1") for id in range(30)))
    assert late.applied == 30 - len(seen), "a late change stays late, also when changes were folded"


def held(store: Directory, version: Version) -> dict[Any, str]:
    return {
        id: str(subscription.expression)
        for index in open_shards.open_all(store, version)
        for id, subscription in index.items()
    }


def test_a_writer_that_lost_starts_again_from_the_winner(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, 1, ("add", 1, "x > 1"))
    won = []

    def lose_once(where: Directory, version: Version) -> bool:
        if not won:
            won.append(True)
            monkeypatch.setattr(apply, "create_version", create_version)
            put(open_directory(store.url), 2, ("add", 2, "x > 2"))
        return create_version(where, version)

    monkeypatch.setattr(apply, "create_version", lose_once)
    assert put(store, 3, ("add", 3, "x > 3")).version == 3
    assert held(store, read_version(store)) == {1: "x > 1", 2: "x > 2", 3: "x > 3"}
    forget()
    assert held(store, read_version(store)) == {1: "x > 1", 2: "x > 2", 3: "x > 3"}


def test_an_older_release_is_told_to_upgrade(store: CountedDirectory) -> None:
    """It looks for the highest name in `versions/` and compares the format."""
    put(store, 1, ("add", 1, "x > 1"))
    flat = [name for name in store.list("versions") if name.endswith(".json")]
    assert b'"format": 2' in store.read(f"versions/{max(flat)}")


def test_versions_of_the_earlier_format_are_read_and_go_on(store: CountedDirectory) -> None:
    import json

    index = tamis.Index()
    index.add(1, "x > 1")
    file = put_index(store, index)
    rows = pa.Table.from_pylist([{"op": "upsert", "sequence": 5, "id": 2, "expression": "x > 2"}], SCHEMA)
    store.create("changes/a.arrow", change_log.to_bytes(rows))
    content = json.loads(
        Version(number=3, plan="replicated", ids="int", shards=[[file]], subscriptions=2).to_json()
    )
    content |= {"format": 1, "changes": ["changes/a.arrow"], "changed": True, "notes": {"waiting": 1}}
    del content["base"], content["sequences"]
    store.create("versions/00000000000000000003.json", json.dumps(content).encode())
    assert held(store, read_version(store)) == {1: "x > 1", 2: "x > 2"}
    assert put(store, 4, ("remove", 2, None)).applied == 0, "the earlier change was later"
    assert put(store, 6, ("add", 3, "x > 3")).version == 4
    assert held(store, read_version(store)) == {1: "x > 1", 2: "x > 2", 3: "x > 3"}
    forget()
    assert held(store, read_version(store)) == {1: "x > 1", 2: "x > 2", 3: "x > 3"}


# --- sharded stores ------------------------------------------------------------------------------------


def sharded(store: Directory, shards: int, subscriptions: int) -> None:
    """A store in which `x = n` lies in one of the shards, by the order of the texts."""
    texts = sorted(f"x = {number}" for number in range(subscriptions))
    share = -(-len(texts) // shards)
    files, routes, cuts = [], tamis.Index(), []
    for shard in range(shards):
        index = tamis.Index()
        for text in texts[shard * share : (shard + 1) * share]:
            index.add(int(text[4:]), text)
            routes.add(f"{shard}:{text[4:]}", text)
        files.append([put_index(store, index)])
        cuts += [(texts[shard * share], 0)] if shard else []
    router = Router(rules=put_index(store, routes), cuts=cuts)
    publish(
        store,
        Version(
            number=1, plan="sharded", ids="int", shards=files, router=router, subscriptions=subscriptions
        ),
    )


def visits(store: Directory, values: list[int]) -> list[list[bool]]:
    version = read_version(store)
    found: list[list[bool]] = (
        RouterIndexes.of(store, version).visits(pa.record_batch({"x": values}), None).tolist()
    )
    return found


def test_additions_are_spread_and_events_visit_what_they_might_match(store: CountedDirectory) -> None:
    sharded(store, 4, 100)
    for number in range(60):
        put(store, number, ("add", 1000 + number, f"x = {number}"))
    version = read_version(store)
    sizes = [sum(map(len, open_shards.open_shard(store, version, shard))) for shard in range(4)]
    assert sum(sizes) == 160
    assert max(sizes) < 80, "not all went to one shard"
    visited = visits(store, [*range(100), 5000])
    assert visited[-1] == [False] * 4, "no event visits a shard only because something was added"
    assert all(sum(row) <= 2 for row in visited)
    for shard in range(4):
        for id in (id for index in open_shards.open_shard(store, version, shard) for id in index):
            assert visited[id % 1000][shard], f"events that match {id} visit its shard"


def test_shards_are_evened_out_when_changes_are_folded(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharded(store, 4, 40)
    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 200)
    for step in range(3):
        put(store, step, *(("add", 1000 + 100 * step + id, f"x = 3{100 * step + id}") for id in range(100)))
    version = read_version(store)
    assert not version.changes, "they were folded"
    sizes = [sum(file.subscriptions for file in files) for files in version.shards]
    assert sum(sizes) == 340
    assert max(sizes) < 1.5 * 340 / 4
    assert visits(store, [5000]) == [[False] * 4]
    found = {id for files in version.shards for file in files for id in open_shards.open_file(store, file)}
    assert found == {*range(40), *range(1000, 1300)}
    for shard in range(4):
        index = open_shards.open_shard(store, version, shard)[0]
        for id, subscription in index.items():
            assert visits(store, [int(str(subscription.expression)[4:])])[0][shard], id


def test_shards_that_lie_well_are_folded_one_by_one(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever applies changes leaves it to others, until there is far too much."""
    sharded(store, 4, 40)
    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 30)
    schema = change_schema("int")

    def add(first: int, count: int) -> Version:
        rows = [
            {"op": "add", "sequence": id, "id": id, "expression": f"x = {id % 100}"}
            for id in range(first, first + count)
        ]
        apply.apply_to_store(store, pa.Table.from_pylist(rows, schema), schema, folds=False)
        return read_version(store)

    waiting = add(1000, 40)
    assert folding.fold_is_due(waiting)
    assert waiting.changes
    before = read_version(store)
    folded = [folding.fold_shard(store, before, shard) for shard in range(4)]
    made = folding.publish_folded(store, before, folded)
    assert made is not None
    assert not made.changes
    assert made.number == before.number + 1
    assert made.subscriptions == 80
    held = {id for files in made.shards for file in files for id in open_shards.open_file(store, file)}
    assert held == {*range(40), *range(1000, 1040)}
    for shard in range(4):
        for index in open_shards.open_shard(store, made, shard):
            for id, subscription in index.items():
                assert visits(store, [int(str(subscription.expression)[4:])])[0][shard], id
    again = [folding.fold_shard(store, before, shard) for shard in range(4)]
    assert folding.publish_folded(store, before, again) is None, "another version came first"
    late = pa.Table.from_pylist([{"op": "remove", "sequence": 1, "id": 1000}], schema)
    assert apply.apply_to_store(store, late, schema).applied == 0, "a late change stays late"
    assert not add(2000, 70).changes, "far too much is folded at once"


def test_only_files_that_changed_are_rewritten(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for first in (0, 100):
        index = tamis.Index()
        index.add_many(list(range(first, first + 100)), [f"x > {id}" for id in range(first, first + 100)])
        files.append(put_index(store, index))
    publish(store, Version(number=1, plan="replicated", ids="int", shards=[files], subscriptions=200))
    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 0)
    monkeypatch.setattr(folding, "fold_is_due", lambda _: True)
    monkeypatch.setattr(apply, "fold_is_due", lambda _: True)
    put(store, 1, ("remove", 150, None))
    [kept, rewritten] = read_version(store).shards[0]
    assert kept == files[0]
    assert rewritten.subscriptions == 99


def test_numbers_of_versions_may_grow_past_a_group(store: CountedDirectory) -> None:
    publish(store, Version(number=255, plan="replicated", ids="int", shards=[[]]))
    for sequence in range(3):
        put(store, sequence, ("add", 1, "x > 1"))
    assert read_version(store).number == 258
    assert version_file(258) != version_file(255)


def test_additions_by_source_are_found_by_their_sources(
    store: CountedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, promised = [], tamis.Index()
    for shard, source in enumerate(("north", "south")):
        index = tamis.Index()
        index.add(shard, f"place = '{source}' AND x > 5")
        shards.append([put_index(store, index)])
        promised.add(f"{source}:0", f"place = '{source}'")
    router = Router(sources={"north": [0], "south": [1]}, advertisements=put_index(store, promised))
    publish(
        store, Version(number=1, plan="by-source", ids="int", shards=shards, router=router, subscriptions=2)
    )

    def visited() -> list[list[bool]]:
        events = pa.record_batch({"place": ["north", "south", "south"], "x": [1, 1, 9]})
        version = read_version(store)
        sources = pa.array(["north", "south", "south"])
        found: list[list[bool]] = RouterIndexes.of(store, version).visits(events, sources).tolist()
        return found

    put(store, 1, ("add", 10, "place = 'south' AND x > 7"))
    version = read_version(store)
    assert 10 in open_shards.open_shard(store, version, 1)[-1], "where its source goes anyway"
    assert visited() == [[True, False], [False, True], [False, True]]
    put(store, 2, ("add", 11, "x > 8"))
    [home] = [
        shard for shard in (0, 1) if 11 in open_shards.open_shard(store, read_version(store), shard)[-1]
    ]
    assert visited()[2][home], "its events find it, whatever their source"
    monkeypatch.setattr(apply, "fold_is_due", lambda _: True)
    put(store, 3, ("add", 12, "place = 'north' AND x = 1"))
    folded = read_version(store)
    assert not folded.changes
    assert folded.router is not None
    assert {home} <= set(folded.router.sources["north"]) & set(folded.router.sources["south"])
    assert visited()[2][home]
    assert visited()[0][0]
