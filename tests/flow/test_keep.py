"""Saving, opening and checkpoints: what goes on is as if it had never stopped."""

import random
from pathlib import Path
from typing import Any

import pytest

import tamis
from flow.flows import sometimes_reopened
from flow.test_sequences import random_sequence
from flow.windows import events, rule
from seeds import few


def plain(told: list[Any]) -> list[Any]:
    return [
        (out.query, out.kind, out.time, out.row, [event.to_json() for event in out.events]) for out in told
    ]


@pytest.mark.parametrize("way", ["save", "checkpoint"])
@pytest.mark.parametrize("seed", few(range(12)))
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
        stopping = sometimes_reopened(stopping, random_, way, path)
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


def counting(name: str = "q") -> tamis.Flow:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add(name, "count(* BY k LAST 1h) >= 3")
    return flow


def at(seconds: float) -> dict[str, Any]:
    return {"ts": seconds, "k": "a"}


@pytest.mark.parametrize("window", ["LAST 2s", "LAST 3 ROWS", "EVERY 2s"])
@pytest.mark.parametrize("by", ["BY k", ""])
def test_what_was_removed_leaves_a_file_that_opens(tmp_path: Path, window: str, by: str) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("a", f"count(* {by} {window}) >= 1")
    flow.add("b", "count(* BY c LAST 2s) >= 1")
    flow.push("s", {"ts": 1, "k": "x", "c": 1})
    flow.remove("a")
    for keep in (flow.save, flow.checkpoint):
        keep(tmp_path / "flow")
        again = tamis.Flow.open(tmp_path / "flow")
        assert list(again) == ["b"]
        event = {"ts": 2, "k": "x", "c": 1}
        assert [list(out.row.values()) for out in again.push("s", event)] == [[2]]


def evaluated(path: Path) -> int:
    """How many events a flow has seen that is opened from here."""
    return int(tamis.Flow.open(path).stats()["streams"]["s"]["evaluated"])


def test_a_checkpoint_after_a_save_to_the_same_path_is_whole(tmp_path: Path) -> None:
    flow = counting()
    flow.push("s", at(1))
    flow.checkpoint(tmp_path / "p")
    flow.save(tmp_path / "p")
    flow.push("s", at(2))
    flow.checkpoint(tmp_path / "p")
    assert evaluated(tmp_path / "p") == 2


def test_checkpoints_of_one_flow_to_two_paths_are_whole(tmp_path: Path) -> None:
    flow = counting()
    counting("other").checkpoint(tmp_path / "b")
    for number in range(1, 7):
        flow.push("s", at(number))
        path = tmp_path / "ab"[number % 2]
        flow.checkpoint(path)
        assert list(tamis.Flow.open(path)) == ["q"]
        assert evaluated(path) == number


def test_after_a_checkpoint_that_failed_the_next_one_has_everything(tmp_path: Path) -> None:
    path, log = tmp_path / "p", tmp_path / "p.log"
    flow = counting()
    flow.push("s", at(1))
    flow.checkpoint(path)
    flow.push("s", at(2))
    log.rename(tmp_path / "elsewhere")
    flow.checkpoint(path)
    (tmp_path / "elsewhere").rename(log)
    flow.push("s", at(3))
    flow.checkpoint(path)
    assert evaluated(path) == 3


def test_the_last_of_two_flows_on_one_path_is_there_as_a_whole(tmp_path: Path) -> None:
    first, second = counting("first"), counting("second")
    first.checkpoint(tmp_path / "p")
    second.checkpoint(tmp_path / "p")
    first.push("s", at(1))
    first.checkpoint(tmp_path / "p")
    assert list(tamis.Flow.open(tmp_path / "p")) == ["first"]
    assert evaluated(tmp_path / "p") == 1


def test_a_time_in_another_unit_is_refused_and_stops_nothing() -> None:
    flow = counting()
    flow.push("s", at(1_760_000_000))
    with pytest.raises(tamis.TamisError, match="a number of seconds"):
        flow.push("s", at(1_760_000_001_000))
    assert flow.push("s", at(1_760_000_001)) == []
    assert [out.query for out in flow.push("s", at(1_760_000_002))] == ["q"]


def test_arrays_in_arrays_of_a_hostile_log_are_damage(tmp_path: Path) -> None:
    def number(value: int) -> bytes:
        found = b""
        while value >= 0x80:
            found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
        return found + bytes([value])

    def checksum(data: bytes) -> int:
        found = 0xCBF29CE484222325
        for byte in data:
            found = (found ^ byte) * 0x100000001B3 % 2**64
        return found

    flow = counting()
    flow.checkpoint(tmp_path / "p")
    nested = b"\x07\x01" * 300_000 + b"\x00"
    entries = number(3) + number(1) + b"s" + number(2) + number(1) + number(1) + b"x" + nested
    frame = len(entries).to_bytes(8, "little") + checksum(entries).to_bytes(8, "little") + entries
    log = tmp_path / "p.log"
    log.write_bytes(log.read_bytes() + frame)
    with pytest.raises(tamis.TamisError, match="damaged"):
        tamis.Flow.open(tmp_path / "p")
