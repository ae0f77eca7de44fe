"""Streams with lateness, idle ones and silent ones: which events are late, and when each is evaluated."""

import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

import tamis
from seeds import few

FIRST = -62_135_596_800
"""The year 1."""


@dataclass
class Stream:
    lateness: int
    idle: int | None
    latest: int | None = None
    late: list[int] = field(default_factory=list)
    readers: int = 0


@dataclass
class Clock:
    """What `docs/flows.md` says of time and order, and nothing else. Times are seconds."""

    streams: dict[str, Stream]
    floor: int | None = None
    waiting: list[tuple[int, int, str]] = field(default_factory=list)

    def watermark(self, stream: Stream) -> int | None:
        come = [] if stream.latest is None else [stream.latest]
        latest = [other.latest for other in self.streams.values() if other.latest is not None]
        if stream.idle is not None and latest:
            come.append(max(latest) - stream.idle)
        known = [] if self.floor is None else [self.floor]
        return max([*known, *(max(time - stream.lateness, FIRST) for time in come)], default=None)

    def push(self, name: str, time: int, number: int) -> None:
        stream = self.streams[name]
        watermark = self.watermark(stream)
        if watermark is not None and time < watermark:
            stream.late.append(number)
            return
        stream.latest = time if stream.latest is None else max(stream.latest, time)
        self.waiting.append((time, number, name))

    def advance(self, to: int) -> None:
        self.floor = to if self.floor is None else max(self.floor, to)

    def evaluated(self) -> list[int]:
        """The events whose turn it is and that somebody reads."""
        read = [stream for stream in self.streams.values() if stream.readers]
        watermarks = [self.watermark(stream) for stream in read or self.streams.values()]
        known = [watermark for watermark in watermarks if watermark is not None]
        if (read and None in watermarks) or not known:
            return []
        clock = min(known) if read else max(known)
        due = sorted(event for event in self.waiting if event[0] <= clock)
        self.waiting = [event for event in self.waiting if event[0] > clock]
        return [number for _, number, name in due if self.streams[name].readers]


@pytest.mark.parametrize("seed", few(range(40)))
def test_each_event_is_evaluated_in_its_turn_or_late(seed: int) -> None:
    random_ = random.Random(seed)
    flow = tamis.Flow()
    clock = Clock({})
    for name in "abc":
        lateness, idle = random_.choice([0, 0, 3, 10**9]), random_.choice([None, None, 0, 5, 10**9])
        clock.streams[name] = Stream(lateness, idle)
        flow.stream(name, time="ts", lateness=lateness, idle=idle)
    now = random_.choice([0, FIRST, 253_402_300_000])
    added: list[str] = []
    for number in range(60):
        action = random_.random()
        told: list[Any] | None = None
        if action < 0.12 or not added:
            name = random_.choice("abc")
            added.append(name)
            # The same name again and again: the query starts empty each time.
            flow.add(f"{name} {added.count(name)}", "number IS NOT NULL", on=name)
            clock.streams[name].readers += 1
        elif action < 0.2:
            name = added.pop(random_.randrange(len(added)))
            flow.remove(f"{name} {added.count(name) + 1}")
            clock.streams[name].readers -= 1
        elif action < 0.28:
            to = max(now + random_.randint(-20, 10), FIRST)
            clock.advance(to)
            told = flow.advance(to=to)
        else:
            now += random_.choice([0, 0, 1, 4])
            name = random_.choice("aabc")
            time = max(now - random_.choice([0, 0, 1, 3, 9]), FIRST)
            clock.push(name, time, number)
            told = flow.push(name, {"ts": time, "number": number})
        # A removed query may let the clock go on: what that evaluates is told with the next event or advance.
        if told is not None:
            found = [out.events[0]["number"] for out in told]
            assert list(dict.fromkeys(found)) == clock.evaluated()
        assert flow.clock is None or flow.clock.timestamp() >= FIRST
    for name, stream in clock.streams.items():
        assert [event["number"] for event in flow.late(name)] == stream.late


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 2**63, -(2**62), "soon", True, None])
def test_a_moment_or_a_length_of_time_that_is_none_is_refused(value: Any) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* LAST 1s) >= 1")
    with pytest.raises(tamis.ArgumentError):
        flow.advance(to=value)
    assert flow.clock is None
    if isinstance(value, float | int) and not isinstance(value, bool):
        with pytest.raises(tamis.ArgumentError):
            flow.stream("t", time="ts", lateness=value)
        with pytest.raises(tamis.ArgumentError):
            flow.stream("t", time="ts", idle=value)


def test_idle_takes_nothing_from_the_lateness_of_a_stream_that_is_not_silent() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts", lateness=10, idle=2)
    flow.add("q", "count(* LAST 1h) = 2")
    flow.push_batch("s", [{"ts": 100}, {"ts": 95}])
    assert flow.late("s") == []
    assert [out.events[0]["ts"] for out in flow.advance(to=100)] == [100]


def test_a_clock_goes_forward_only() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SELECT x.v FROM s RANGE 10 SECONDS AS x")
    flow.push("s", {"ts": 100, "v": 1})
    assert [out.kind for out in flow.advance(to=111)] == ["-"]
    assert flow.advance(to=50) == []
    assert flow.clock is not None
    assert flow.clock.timestamp() == 111
    assert flow.push("s", {"ts": 110, "v": 2}) == []
    assert [event["v"] for event in flow.late("s")] == [2]


def test_a_long_table_is_one_table() -> None:
    """It is read in parts: nothing is lost between them, and an error names the row of the table."""
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("each", "v >= 0", on="s")
    values = list(range(9_000))
    told = flow.push_batch("s", pa.table({"ts": values, "v": values}))
    assert [out.events[0]["v"] for out in told] == values
    times = [None if value == 8_500 else 9_000 + value for value in values]
    with pytest.raises(tamis.EventError, match="row 8500"):
        flow.push_batch("s", pa.table({"ts": times, "v": values}))
