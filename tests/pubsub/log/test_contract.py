"""The laws of a log (`tamis.pubsub.log.contract`), each tried on both implementations.

Faults: half of an append is there; a writer that lost its place goes on; a number is used twice; a record
is skipped; the disk is full; the file is replaced, is no log, or has another format; two processes make the
log at once.
"""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pubsub.logs import run
from tamis.pubsub.log import (
    EVENTS,
    QUEUES,
    STATE,
    Entry,
    FencedError,
    LogError,
    LogFullError,
    LogUnavailableError,
    open_log,
)
from tamis.pubsub.log import sqlite as sqlite_log
from tamis.pubsub.log.sqlite import SqliteLog


def entries(*bodies: str, topic: str = "p0", detail: str = "s1") -> list[Entry]:
    return [Entry(topic, detail, body.encode()) for body in bodies]


def test_records_come_back_in_order_with_consecutive_numbers(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        assert await log.end(EVENTS) == 0
        assert await log.append(EVENTS, entries("a", "b", "c")) == 3
        assert await log.append(EVENTS, entries("x", topic="p1")) == 4
        assert await log.append(EVENTS, entries("d")) == 5
        found = await log.read(EVENTS, topic="p0")
        assert [(r.seq, r.body) for r in found] == [(1, b"a"), (2, b"b"), (3, b"c"), (5, b"d")]
        assert [r.seq for r in await log.read(EVENTS, after=2)] == [3, 4, 5]
        assert [r.seq for r in await log.read(EVENTS, topic="p0", after=1, most=2)] == [2, 3]
        assert await log.read(EVENTS, topic="p0", after=5) == []
        assert {n: r.body for n, r in (await log.fetch(EVENTS, [4, 1, 77])).items()} == {4: b"x", 1: b"a"}
        times = [r.time for r in await log.read(EVENTS)]
        assert times == sorted(times)
        assert times[0] > 1_600_000_000_000_000
        assert await log.size() > 0
        await log.close()

    run(main)


def test_a_name_without_a_topic_is_refused(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        for topic in (None, ""):
            with pytest.raises(LogError, match="say which"):
                await log.read(STATE, topic=topic, name="ann")
        await log.close()

    run(main)


def test_records_of_a_name_are_found_among_many(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        names = ("ann", "an", "annie", "ann-", "ann=2E", "Ann", "zoe")
        for part in range(3):
            more = [Entry("sub", f"{name}.s{n}", b"x") for n in range(part, part + 2) for name in names]
            await log.append(STATE, [*more, Entry("queue", "ann", b"x"), Entry("read", "ann.s1", b"x")])
        found = [record for record in await log.read(STATE, topic="sub") if record.detail[:4] == "ann."]
        assert [record.detail for record in found] == ["ann.s0", "ann.s1", "ann.s2", "ann.s3"]
        assert await log.read(STATE, topic="sub", name="ann") == found
        assert await log.read(STATE, topic="sub", name="ann", most=2) == found[:2]
        assert await log.read(STATE, topic="sub", name="ann", after=found[1].seq) == found[2:]
        assert await log.read(STATE, topic="sub", name="nobody") == []
        await log.close()

    run(main)


def test_an_append_is_all_or_nothing(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        both = [*entries("a", detail="s1"), *entries("b", detail="s2")]
        assert await log.append(EVENTS, both, {("p0", "s1"): 0, ("p0", "s2"): 0}) == 2
        with pytest.raises(FencedError):
            await log.append(EVENTS, both, {("p0", "s1"): 1, ("p0", "s2"): 1})
        assert len(await log.read(EVENTS)) == 2
        assert await log.append(EVENTS, both, {("p0", "s1"): 1, ("p0", "s2"): 2}) == 4
        with pytest.raises(LogError, match="1 to 1000 entries"):
            await log.append(EVENTS, entries(*"a" * 1001))
        assert await log.append(EVENTS, entries(*"a" * 1000)) == 1004
        await log.close()

    run(main)


def test_of_two_writers_that_believe_they_own_a_key_one_is_refused(log_url: str) -> None:
    async def main() -> None:
        one, two = await open_log(log_url), await open_log(log_url)
        assert one.identity == two.identity
        assert one.identity

        async def write(log: object, body: str) -> bool:
            try:
                await log.append(QUEUES, entries(body, topic="cursor", detail="0"), {("cursor", "0"): 0})  # type: ignore[attr-defined]
            except FencedError:
                return False
            return True

        outcomes = await asyncio.gather(*(write(log, str(n)) for n, log in enumerate([one, two] * 5)))
        assert sum(outcomes) == 1
        assert (await two.last(QUEUES, [("cursor", "0")]))["cursor", "0"].seq == 1
        await one.close()
        await two.close()

    run(main)


def test_of_the_state_only_the_last_value_is_kept(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        for value in ("1", "2", ""):
            await log.append(STATE, entries(value, topic="sub", detail="ann.s1"))
        await log.append(STATE, entries("x", topic="sub", detail="bob.s1"))
        assert [(r.seq, r.detail, r.body) for r in await log.read(STATE)] == [
            (3, "ann.s1", b""),
            (4, "bob.s1", b"x"),
        ]
        last = await log.last(STATE, [("sub", "ann.s1"), ("sub", "bob.s1"), ("sub", "eve.s1")])
        assert {key: record.seq for key, record in last.items()} == {
            ("sub", "ann.s1"): 3,
            ("sub", "bob.s1"): 4,
        }
        assert await log.end(STATE) == 4
        await log.close()

    run(main)


def test_trimming_takes_a_key_or_a_topic_and_no_number_is_used_again(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        await log.append(QUEUES, [*entries("a", "b", detail="0.4"), *entries("c", detail="0.5")])
        await log.append(QUEUES, entries("d", topic="p1"))
        await log.trim(QUEUES, 2, "p0", "0.4")
        assert [r.seq for r in await log.read(QUEUES)] == [2, 3, 4]
        await log.trim(QUEUES, 100, "p0")
        assert [r.seq for r in await log.read(QUEUES)] == [4]
        await log.trim(QUEUES, 100, "p1")
        assert await log.end(QUEUES) == 4
        assert await log.append(QUEUES, entries("e")) == 5
        await log.close()

    run(main)


def test_waiting_ends_when_another_process_writes(log_url: str) -> None:
    async def main() -> None:
        log, other = await open_log(log_url), await open_log(log_url)
        await log.wait(EVENTS, 0, 0.01)
        waiting = asyncio.create_task(log.wait(EVENTS, 0, 60))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await other.append(EVENTS, entries("a"))
        await asyncio.wait_for(waiting, 10)
        await log.wait(EVENTS, 0, 60)
        await log.close()
        await other.close()

    run(main)


def test_many_processes_make_the_log_at_once(log_url: str) -> None:
    async def main() -> None:
        logs = await asyncio.gather(*(open_log(log_url) for _ in range(6)))
        assert len({log.identity for log in logs}) == 1
        for log in logs:
            await log.close()

    run(main)


def test_a_full_log_refuses_and_keeps_what_it_has(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url, most_bytes=300_000)
        written = 0
        try:
            while written < 100:
                await log.append(EVENTS, entries("x" * 20_000))
                written += 1
        except LogFullError:
            pass
        assert 3 < written < 100
        assert len(await log.read(EVENTS)) == written
        with pytest.raises(LogFullError, match="make room"):
            await log.append(EVENTS, entries("x" * 20_000, "x"))
        assert len(await log.read(EVENTS)) == written
        await log.trim(EVENTS, written, "p0")
        assert await log.append(EVENTS, entries("x" * 10_000)) > written
        await log.close()

    run(main)


def test_large_reads_come_in_parts(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        for _ in range(30):
            await log.append(EVENTS, entries("x" * 500_000))
        found = await log.read(EVENTS)
        assert 0 < len(found) < 30
        while found[-1].seq < 30:
            found += await log.read(EVENTS, after=found[-1].seq)
        assert [r.seq for r in found] == list(range(1, 31))
        await log.close()

    run(main)


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("file.db", "a log is sqlite:PATH or nats://"),
        ("sqlite:", "a log is"),
        ("nats://127.0.0.1:1/main", "cannot reach NATS"),
        ("nats://127.0.0.1:1/main?replicas=many", "replicas=1 to 5"),
        ("nats://127.0.0.1:1/main?color=red", "replicas=1 to 5"),
        ("nats://[::1/main", "cannot open"),
        ("sqlite:a\0b", "a log is"),
    ],
)
def test_a_wrong_url_says_what_would_be_right(url: str, part: str) -> None:
    with pytest.raises(LogError, match=part):
        run(lambda: open_log(url))


def test_a_file_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "site.db"
    path.write_bytes(b"these are not the bytes of a database" * 100)
    with pytest.raises(LogError, match="is no log, or is damaged"):
        run(lambda: open_log(f"sqlite:{path}"))
    with pytest.raises(LogUnavailableError):
        run(lambda: open_log(f"sqlite:{tmp_path}"))


def test_another_format_is_refused(tmp_path: Path) -> None:
    async def make() -> None:
        await (await open_log(f"sqlite:{tmp_path}/site.db")).close()

    run(make)
    with sqlite3.connect(tmp_path / "site.db") as database:
        database.execute("UPDATE about SET value = 99 WHERE name = 'format'")
    database.close()
    with pytest.raises(LogError, match="has the format 99"):
        run(lambda: open_log(f"sqlite:{tmp_path}/site.db"))


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "site.db"
        log = await SqliteLog.open(path)
        before = log.identity, log.generation
        await log.append(EVENTS, entries("a"))
        other = await SqliteLog.open(tmp_path / "other.db")
        await other.close()
        for name in ("site.db", "site.db-wal", "site.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        shutil.move(tmp_path / "other.db", path)
        assert await log.end(EVENTS) == 0
        assert log.identity != before[0]
        assert log.generation == before[1] + 1
        await log.close()

    run(main)


def test_a_clock_that_is_set_back_does_not_turn_time_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = await SqliteLog.open(tmp_path / "site.db")
        await log.append(EVENTS, entries("a"))
        monkeypatch.setattr("tamis.pubsub.log.sqlite.time.time_ns", lambda: 1_000_000_000_000)
        await log.append(EVENTS, entries("b"))
        first, second = await log.read(EVENTS)
        assert second.time >= first.time
        await log.close()

    run(main)


def test_the_write_ahead_log_does_not_stay_as_large_as_it_once_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers keep SQLite from starting it over; what it grew to meanwhile would stay for ever."""
    monkeypatch.setattr(sqlite_log, "MOST_WAL_BYTES", 1_000_000)

    async def main() -> None:
        log = await SqliteLog.open(tmp_path / "site.db")
        reader = sqlite3.connect(tmp_path / "site.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchall()
        for _ in range(30):
            await log.append(EVENTS, entries("x" * 500_000))
        wal = tmp_path / "site.db-wal"
        assert wal.stat().st_size > 10_000_000
        reader.execute("COMMIT")
        await log.trim(EVENTS, 30, "p0")
        assert wal.stat().st_size <= 1_000_000
        assert len(await log.read(EVENTS)) == 1
        reader.close()
        await log.close()

    run(main)


def test_a_transaction_that_a_full_disk_has_ended_hides_no_error(tmp_path: Path) -> None:
    """A router met it while it trimmed: it could not undo what was undone already, and ended."""

    async def main() -> None:
        log = await open_log(f"sqlite:{tmp_path}/site.db")
        await log.append(EVENTS, [Entry("p0", "s", b"x")])
        with closing(sqlite3.connect(tmp_path / "site.db")) as database:
            database.execute(
                "CREATE TRIGGER full BEFORE DELETE ON events "
                "BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END"
            )
        with pytest.raises(LogError, match="disk is full"):
            await log.trim(EVENTS, 9, "p0")
        assert await log.append(EVENTS, [Entry("p0", "s", b"y")]) == 2
        await log.close()

    run(main)
