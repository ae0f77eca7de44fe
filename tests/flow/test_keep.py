"""Saving, opening and checkpoints: what goes on is as if it had never stopped."""

import random
from pathlib import Path
from typing import Any

import pytest

import tamis
from flow.test_sequences import random_sequence
from flow.windows import events, rule


def plain(told: list[Any]) -> list[Any]:
    return [
        (out.query, out.kind, out.time, out.row, [event.to_json() for event in out.events]) for out in told
    ]


@pytest.mark.parametrize("way", ["save", "checkpoint"])
@pytest.mark.parametrize("seed", range(12))
def test_a_flow_goes_on_as_if_it_had_never_stopped(seed: int, way: str, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    lateness = random_.choice([0, 4])
    arrived = events(random_, 80, disorder=lateness)
    texts = [rule(random_).text for _ in range(4)] + [random_sequence(random_)[0] for _ in range(4)]
    path = tmp_path / "flow"
    steady, stopping = tamis.Flow(), tamis.Flow()
    if way == "checkpoint":
        stopping.checkpoint(path)
    for flow in (steady, stopping):
        flow.stream("s", time="ts", lateness=lateness)
    named: list[str] = []
    for at, event in enumerate(arrived):
        action = random_.random()
        if action < 0.2:
            name, text = f"q{at}", random_.choice(texts)
            named.append(name)
            backfill = not text.startswith("SEQUENCE") and random_.random() < 0.3
            for flow in (steady, stopping):
                flow.add(name, text, backfill=backfill)
        elif action < 0.27 and named:
            name = named.pop(random_.randrange(len(named)))
            for flow in (steady, stopping):
                flow.remove(name)
        assert plain(stopping.push("s", event)) == plain(steady.push("s", event))
        if random_.random() < 0.15:
            if way == "save":
                stopping.save(path)
                stopping = tamis.Flow.open(path)
            else:
                stopping.checkpoint(path)
                if random_.random() < 0.5:
                    stopping = tamis.Flow.open(path)
    assert plain(stopping.advance(to=10**6)) == plain(steady.advance(to=10**6))
    before, after = steady.stats(), stopping.stats()
    assert before["streams"]["s"]["evaluated"] == after["streams"]["s"]["evaluated"]
    assert [event.to_json() for event in steady.late("s")] == [
        event.to_json() for event in stopping.late("s")
    ]


def test_a_log_that_was_cut_short_ends_at_the_last_whole_checkpoint(tmp_path: Path) -> None:
    path, log = tmp_path / "flow", tmp_path / "flow.log"
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* LAST 100s) >= 3")
    flow.checkpoint(path)
    flow.push("s", {"ts": 1})
    flow.checkpoint(path)
    whole = log.read_bytes()
    flow.push("s", {"ts": 2})
    flow.checkpoint(path)
    longer = log.read_bytes()
    for length in range(len(whole), len(longer)):
        log.write_bytes(longer[:length])
        assert tamis.Flow.open(path).stats()["streams"]["s"]["evaluated"] == 1
    log.write_bytes(longer)
    assert [out.query for out in tamis.Flow.open(path).push("s", {"ts": 3})] == ["q"]


def test_a_log_of_another_file_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "flow"
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* LAST 100s) >= 1")
    flow.checkpoint(path)
    flow.push("s", {"ts": 1})
    flow.checkpoint(path)
    flow.save(path)
    assert tamis.Flow.open(path).stats()["streams"]["s"]["evaluated"] == 1


def test_what_is_no_flow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flow"
    path.write_bytes(b"nonsense")
    with pytest.raises(tamis.SnapshotError):
        tamis.Flow.open(path)
    index = tamis.Index()
    index.add("a", "x = 1")
    index.save(path)
    with pytest.raises(tamis.SnapshotError):
        tamis.Flow.open(path)
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY k LAST 100s) >= 1")
    flow.push("s", {"ts": 1, "k": "a"})
    flow.save(path)
    with pytest.raises(tamis.SnapshotError):
        tamis.Index.open(path).match({"x": 1})
    bytes_ = path.read_bytes()
    for at in range(0, len(bytes_), 7):
        damaged = bytearray(bytes_)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        try:
            opened = tamis.Flow.open(path)
        except tamis.TamisError:
            continue
        assert opened.stats()["streams"] == flow.stats()["streams"]
