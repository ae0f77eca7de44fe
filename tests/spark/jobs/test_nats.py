"""NATS JetStream as a source and sink, against a real server."""

import json
from pathlib import Path
from typing import Any

import pytest

import tamis.spark
from tamis.spark.connectors.nats_source import NatsDataSource

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: Any) -> Any:
    spark.dataSource.register(NatsDataSource)
    return spark


@pytest.fixture
def stream(nats: Any, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "-").replace("]", "")
    nats.add_stream(name)
    return name


def reader(session: Any, nats: Any, stream: str, **options: Any) -> Any:
    return session.read.format("nats").options(servers=nats.url, stream=stream, **options)


def streaming(session: Any, nats: Any, stream: str, **options: Any) -> Any:
    return session.readStream.format("nats").options(servers=nats.url, stream=stream, **options)


def test_a_message_becomes_a_row(session: Any, nats: Any, stream: str) -> None:
    nats.publish(f"{stream}.a", ["é"], headers={"kind": "x"})
    nats.publish(f"{stream}.b", ["two"])
    rows = reader(session, nats, stream).load().orderBy("sequence").collect()
    assert [(row.subject, bytes(row.data), row.sequence) for row in rows] == [
        (f"{stream}.a", "é".encode(), 1),
        (f"{stream}.b", b"two", 2),
    ]
    assert [row.headers for row in rows] == [{"kind": "x"}, None]
    assert rows[0].timestamp <= rows[1].timestamp
    assert nats.consumers(stream) == 0


@pytest.mark.parametrize(
    ("partitions", "prefetch"),
    [
        pytest.param(1, 1000, marks=pytest.mark.slow),
        (3, 7),
        pytest.param(50, 1, marks=pytest.mark.slow),
    ],
)
def test_all_messages_are_read_once(
    session: Any, nats: Any, stream: str, partitions: int, prefetch: int
) -> None:
    nats.publish(f"{stream}.a", [str(number) for number in range(40)])
    for gone in (1, 20, 40):
        nats.delete(stream, gone)
    loaded = reader(session, nats, stream, partitions=partitions, prefetch=prefetch, data="string").load()
    assert sorted(int(row.data) for row in loaded.collect()) == sorted(set(range(40)) - {0, 19, 39})


def test_reading_a_part(session: Any, nats: Any, stream: str) -> None:
    for number in range(10):
        nats.publish(f"{stream}.{'even' if number % 2 == 0 else 'odd'}", [str(number)])
    loaded = reader(
        session, nats, stream, subject=f"{stream}.even", startingSequence=3, endingSequence=8, data="string"
    ).load()
    assert sorted(row.data for row in loaded.collect()) == ["2", "4", "6"]


def test_an_empty_stream_gives_no_rows(session: Any, nats: Any, stream: str) -> None:
    assert reader(session, nats, stream).load().collect() == []


@pytest.mark.thorough
def test_a_stream_resumes_where_it_was(session: Any, nats: Any, stream: str, tmp_path: Path) -> None:
    def run() -> list[int]:
        """Run all that is there, and say how many rows each micro-batch had."""
        events = streaming(session, nats, stream, data="string", maxMessagesPerTrigger=4).load()
        query = (
            events.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    nats.publish(f"{stream}.a", [str(number) for number in range(10)])
    assert run() == [4, 4, 2]
    nats.publish(f"{stream}.a", ["10", "11"])
    assert run() == [2]
    written = session.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(row.data) for row in written) == list(range(12))


@pytest.mark.slow
@pytest.mark.thorough
def test_lost_messages_are_not_passed_over(session: Any, nats: Any, stream: str, tmp_path: Path) -> None:
    def run(**options: str) -> None:
        events = streaming(session, nats, stream, **options).load()
        query = (
            events.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    nats.publish(f"{stream}.a", ["1", "2"])
    run()
    nats.publish(f"{stream}.a", ["3", "4", "5"])
    nats.purge(stream, seq=5)
    with pytest.raises(Exception, match="starts at message 5, but the query has read only up to 2"):
        run()
    run(failOnDataLoss="false")


@pytest.mark.thorough
def test_rows_become_messages(session: Any, nats: Any, stream: str) -> None:
    rows = session.createDataFrame(
        [(f"{stream}.a", "one", {"kind": "x"}), (f"{stream}.b", "two", None)],
        "subject string, data string, headers map<string,string>",
    )
    rows.write.format("nats").mode("append").option("servers", nats.url).save()
    messages = sorted(nats.messages(stream), key=lambda message: message.subject)
    assert [(message.subject, message.data) for message in messages] == [
        (f"{stream}.a", b"one"),
        (f"{stream}.b", b"two"),
    ]
    assert messages[0].headers["kind"] == "x"
    ids = {message.headers["Nats-Msg-Id"] for message in messages}
    assert len(ids) == 2


def test_a_task_that_fails_half_way_publishes_nothing_twice(nats: Any, stream: str) -> None:
    """The same writer writes its rows again, as Spark lets a task do after a failure."""
    from pyspark.sql.types import Row, StringType, StructField, StructType

    from tamis.spark.connectors.nats_writer import NatsWriter

    schema = StructType([StructField("data", StringType())])
    writer = NatsWriter({"servers": nats.url, "subject": f"{stream}.a", "window": "3"}, schema)
    rows = [Row(data=str(number)) for number in range(20)]

    def broken() -> Any:
        yield from rows[:10]
        raise RuntimeError("the task fails")

    with pytest.raises(RuntimeError, match="the task fails"):
        writer.write(broken())
    assert 0 < len(nats.messages(stream)) < 20
    writer.write(iter(rows))
    assert [int(message.data) for message in nats.messages(stream)] == list(range(20))


@pytest.mark.thorough
def test_a_replayed_micro_batch_publishes_nothing_twice(
    session: Any, nats: Any, stream: str, tmp_path: Path
) -> None:
    """The log of finished micro-batches is lost, as if the driver had died before it was written."""
    out = f"{stream}-out"
    nats.add_stream(out)
    nats.publish(f"{stream}.a", [str(number) for number in range(10)])

    def run() -> int:
        events = streaming(session, nats, stream, data="string", partitions=2).load()
        query = (
            events.select("data")
            .writeStream.format("nats")
            .options(servers=nats.url, subject=f"{out}.a")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    assert run() == 10
    for commit in (tmp_path / "checkpoint" / "commits").iterdir():
        commit.unlink()
    assert run() == 10
    assert sorted(int(message.data) for message in nats.messages(out)) == list(range(10))


@pytest.mark.thorough
def test_matching_from_nats_to_nats(session: Any, nats: Any, stream: str, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    out = f"{stream}-out"
    nats.add_stream(out)
    nats.publish(f"{stream}.a", [json.dumps({"event_id": number, "x": number % 4}) for number in range(20)])
    rules = session.createDataFrame([("a", "x > 1"), ("b", "x = 3")], "id string, expression string")
    events = (
        streaming(session, nats, stream, data="string")
        .load()
        .select(sf.from_json("data", "event_id int, x int").alias("event"))
        .select("event.*")
    )
    matches = tamis.spark.match(events, rules)
    query = (
        matches.select(sf.to_json(sf.struct("event_id", "subscription")).alias("data"))
        .writeStream.format("nats")
        .options(servers=nats.url, subject=f"{out}.matches")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = {tuple(json.loads(message.data).values()) for message in nats.messages(out)}
    expected = {(number, "a") for number in range(20) if number % 4 > 1}
    assert found == expected | {(number, "b") for number in range(20) if number % 4 == 3}


@pytest.mark.thorough
def test_what_is_wrong_is_said(session: Any, nats: Any, stream: str) -> None:
    with pytest.raises(Exception, match="name it with option"):
        session.read.format("nats").option("servers", nats.url).load().collect()
    with pytest.raises(Exception, match="has no stream 'nowhere'"):
        reader(session, nats, "nowhere").load().collect()
    with pytest.raises(Exception, match=r"cannot connect to NATS at nats://127\.0\.0\.1:1"):
        session.read.format("nats").options(servers="nats://127.0.0.1:1", stream=stream).load().collect()
    with pytest.raises(Exception, match="a whole number from 1 on, not 'many'"):
        reader(session, nats, stream, partitions="many").load().collect()
    rows = session.createDataFrame([("a",)], "value string")
    writer = rows.write.format("nats").mode("append").options(servers=nats.url)
    with pytest.raises(Exception, match="a message needs a column `data`; the rows have value"):
        writer.option("subject", "x").save()
    rows = rows.withColumnRenamed("value", "data")
    writer = rows.write.format("nats").mode("append").options(servers=nats.url)
    with pytest.raises(Exception, match="where to"):
        writer.save()
    with pytest.raises(Exception, match=r"no stream takes messages of nobody\.listens"):
        writer.option("subject", "nobody.listens").save()


def numbers(batches: Any) -> list[int]:
    return [int(message.data) for messages in batches for message in messages]


def test_nothing_is_skipped_when_the_server_forgets_a_consumer(nats: Any, stream: str) -> None:
    from tamis.spark.connectors.nats_session import NatsSession
    from tamis.spark.connectors.nats_source import SequenceRange, _fetched

    nats.publish(f"{stream}.a", [str(number) for number in range(30)])
    with NatsSession({"servers": nats.url, "timeout": "1"}) as session:
        read = _fetched(session, stream, None, SequenceRange(1, 30), 10)
        first = next(read)
        nats.forget_consumers(stream)
        assert numbers([first]) + numbers(read) == list(range(30))
    assert nats.consumers(stream) == 0


def test_nothing_is_skipped_when_messages_are_lost_on_the_way(nats: Any, stream: str) -> None:
    """The consumer has sent them, and they did not arrive: here, somebody else took them."""
    from tamis.spark.connectors.nats_session import NatsSession
    from tamis.spark.connectors.nats_source import SequenceRange, _fetched

    nats.publish(f"{stream}.a", [str(number) for number in range(30)])
    with NatsSession({"servers": nats.url, "timeout": "1"}) as session:
        read = _fetched(session, stream, None, SequenceRange(1, 28), 10)
        first = next(read)
        nats.take(stream, 5)
        assert numbers([first]) + numbers(read) == list(range(28))


def test_messages_that_are_lost_again_and_again_are_an_error(
    nats: Any, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for ever would look like a task that is busy."""
    from tamis.spark.connectors import nats_source
    from tamis.spark.connectors.nats_session import NatsError, NatsSession

    nats.publish(f"{stream}.a", [str(number) for number in range(30)])
    started: list[int] = []

    class Unlucky(nats_source._Consumer):
        """The first message that it is sent never comes."""

        def __init__(self, session: Any, stream: str, subject: str | None, first: int) -> None:
            super().__init__(session, stream, subject, first)
            nats.take(stream, 1)
            started.append(first)
            assert len(started) < 10, "it asks for ever"

    monkeypatch.setattr(nats_source, "_Consumer", Unlucky)
    monkeypatch.setattr(nats_source, "_PAUSE_SECONDS", 0.0)
    with NatsSession({"servers": nats.url, "timeout": "1"}) as session:
        read = nats_source._fetched(session, stream, None, nats_source.SequenceRange(1, 28), 10)
        with pytest.raises(NatsError, match=r"after 0 did not come, 3 times \(they were lost on the way\)"):
            next(read)
    assert started == [1, 1, 1]
