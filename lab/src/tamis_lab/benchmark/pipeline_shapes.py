"""Compares shapes of answers in turns, and counts requests to an object store.

Other work disturbs times, so shapes take turns and are compared by ratio, and requests are counted.
"""

import logging
import os
import shutil
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tamis.spark
from tamis.demo.local_spark import local_session
from tamis_lab.workloads import BookAuction
from tamis_lab.workloads.spark import generate_events, generate_subscriptions

ROUNDS = 5


def shapes(spark: Any, rules: int, events: int, rounds: int = ROUNDS) -> Iterator[list[Any]]:
    """Rows and lists, keys alone and all columns, DataFrames and SQL: the least seconds of some rounds."""
    workload = BookAuction(count=rules)
    rows = generate_events(spark, workload, events).repartition(2).persist()
    rows.count()
    index = tamis.spark.build(generate_subscriptions(spark, workload))
    rows.createOrReplaceTempView("bench_events")
    tamis.spark.register(spark)
    tamis.spark.register_match(spark, "bench_rules", index)
    asked = ", ".join(name for name in rows.columns if name in index.version.attributes)
    ways: dict[str, Callable[[], Any]] = {
        "rows, key": lambda: index.match(rows, shape="rows"),
        "rows, all columns": lambda: index.match(rows, key="*", shape="rows"),
        "column exploded, key": lambda: index.match(rows, shape="column"),
        "column exploded, all columns": lambda: index.match(rows, key="*", shape="column"),
        "lists, key": lambda: rows.select("event_id", index.match_column(rows).alias("matches")),
        "lists, all columns": lambda: rows.withColumn("matches", index.match_column(rows)),
        "SQL tamis_match": lambda: spark.sql(
            f"SELECT * FROM tamis_match(TABLE(bench_events), '{index.url}', 'event_id')"
        ),
        "SQL of register_match": lambda: spark.sql(
            f"SELECT event_id, inline(bench_rules(struct({asked}))) FROM bench_events"
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            way().write.format("noop").mode("overwrite").save()
            times[name].append(time.perf_counter() - started)
    rows.unpersist()
    least = {name: min(taken) for name, taken in times.items()}
    for name, taken in least.items():
        yield [name, rules, events, taken, taken / least["rows, key"]]


def requests(settings: dict[str, str], micro_batches: int) -> Iterator[list[Any]]:
    """What an object store is asked for: by a change, and by a micro-batch of two tasks that changes nothing.

    In a session of its own, whose tasks know from their environment where the object store is.
    """
    with object_store() as (url, counted):
        spark = local_session(2, settings)
        store = tamis.spark.SubscriptionStore(f"{url}/store")
        columns = "op string, sequence bigint, id bigint, expression string"
        before = sum(counted.values())
        store.apply_changes(spark.createDataFrame([("add", 1, 1, "x > 1")], columns))
        yield ["one change", sum(counted.values()) - before]
        for reports in ("true", "false"):
            spark.conf.set("spark.tamis.reports", reports)
            folder = Path(tempfile.mkdtemp(prefix="tamis-requests-"))
            rows = spark.range(2 * micro_batches).selectExpr("id AS event_id", "id AS x")
            rows.repartition(2 * micro_batches).write.json(str(folder / "events"))
            stream = spark.readStream.schema("event_id bigint, x bigint")
            arriving = stream.option("maxFilesPerTrigger", 2).json(str(folder / "events")).repartition(2)
            before = sum(counted.values())
            writer = tamis.spark.match(arriving, store).writeStream.format("noop")
            writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            batches = max(1, query.lastProgress["batchId"] + 1)
            spent = sum(counted.values()) - before
            yield [f"micro-batch of 2 tasks, reports={reports}", spent / batches]
            shutil.rmtree(folder, ignore_errors=True)
        spark.stop()


@contextmanager
def object_store() -> Iterator[tuple[str, "Counter[str]"]]:
    """A bucket of an S3 server in this process, and a count of the requests that it answers."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - only here, and slow to import

    counted: Counter[str] = Counter()

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            counted.update(
                method for method in ("GET", "PUT", "HEAD", "POST", "DELETE") if f'"{method} ' in text
            )

    log = logging.getLogger("werkzeug")
    handler, level, passes = Counting(), log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    kept = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/bench", method="PUT")).close()
        yield "s3://bench", counted
    finally:
        server.stop()
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = passes
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
