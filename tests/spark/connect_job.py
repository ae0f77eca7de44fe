"""What a Connect client asks of its server, as a program of its own: the tests run it and read its last line.

The client shares only the directory of the test with the server. Prints JSON: each step and its answer.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

import tamis.spark

RULES = "id string, expression string"


def main() -> None:
    folder = Path(sys.argv[1])
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    events = spark.sql("SELECT id AS event_id, CAST(id AS INT) AS x FROM range(4)")
    rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], RULES)
    index = tamis.spark.build(rules)
    listed = events.withColumn("found", index.match_column(events))
    events.createOrReplaceTempView("events")
    tamis.spark.register(spark)
    tamis.spark.register_match(spark, "ads", index)
    called = spark.sql("SELECT event_id, inline(ads(struct(x))) FROM events")
    from_table = spark.sql(f"SELECT * FROM tamis_match(TABLE(events), '{index.url}', 'event_id')")
    told = {
        "match": pairs(index.match(events), "subscription"),
        "match_column": sorted([row.event_id, match.id] for row in listed.collect() for match in row.found),
        "register_match": pairs(called, "id"),
        "tamis_match": pairs(from_table, "subscription"),
        "tamis_matches": spark.sql("SELECT tamis_matches('x > 1', '{\"x\": 2}') AS told").collect()[0][0],
        "backtest": pairs(tamis.spark.backtest(rules, events), "matches", key="subscription"),
        "flow": flow(spark),
        "errors": [error(spark, rules, events, folder / path) for path in ("none", "none.tamis")]
        + [error(spark, spark.createDataFrame([("a", "x >")], RULES), events, None)],
        "two sessions": two_sessions(index),
        **streams(spark, folder),
    }
    print(json.dumps(told), flush=True)
    spark.stop()


def pairs(frame: Any, name: str, key: str = "event_id") -> list[list[Any]]:
    return sorted([row[key], row[name]] for row in frame.collect())


def flow(spark: Any) -> int:
    """How often `count` saw three events of a user in a minute: those after the second, of four."""
    logins = spark.sql("SELECT timestamp_seconds(id) AS ts, id AS seq, 'ann' AS user FROM range(4)")
    told = tamis.spark.flow(logins, {"q": "count(* BY user LAST 1m) >= 3"}, time="ts", order="seq")
    return int(told.count())


def error(spark: Any, rules: Any, events: Any, path: Path | None) -> str:
    """The class of what is raised here for what went wrong there."""
    try:
        tamis.spark.match(events, rules if path is None else path).collect()
    except tamis.TamisError as raised:
        return type(raised).__name__
    return "none"


def two_sessions(index: tamis.spark.BuiltIndex) -> list[list[Any]]:
    """An index that one session built, and rules of its own, in another session of the server."""
    other = ConnectSession.builder.remote("sc://localhost").create()
    events = other.sql("SELECT 7 AS event_id, 2 AS x")
    own = other.createDataFrame([("c", "x = 2")], RULES)
    # It is not stopped: with a server that the program started, that would stop the server.
    return pairs(index.match(events), "subscription") + pairs(tamis.spark.match(events, own), "subscription")


def streams(spark: Any, folder: Path) -> dict[str, Any]:
    """Changes and events as streams, and a micro-batch that says which one it is."""
    for name, row in {
        "changes": {"op": "add", "sequence": 1, "id": "a", "expression": "x > 1"},
        "arriving": {"event_id": 1, "x": 4},
    }.items():
        (folder / name).mkdir()
        (folder / name / "0.json").write_text(json.dumps(row))
    url, out = str(folder / "store"), str(folder)
    changes = spark.readStream.schema(f"op string, sequence bigint, {RULES}").json(f"{out}/changes")
    store = tamis.spark.SubscriptionStore(url)
    store.apply_changes(changes, checkpoint=f"{out}/c0", trigger={"availableNow": True}).awaitTermination()
    arriving = spark.readStream.schema("event_id int, x int").json(f"{out}/arriving")
    writer = tamis.spark.match(arriving, store).writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{out}/c1").start(f"{out}/matches").awaitTermination()

    def alert(batch: Any, number: int) -> None:
        pinned = tamis.spark.SubscriptionStore(url).pinned_index(batch.sparkSession, "alerts", number)
        pinned.match(batch).write.mode("overwrite").parquet(f"{out}/alerts/{number}")

    each = arriving.writeStream.foreachBatch(alert).trigger(availableNow=True)
    each.option("checkpointLocation", f"{out}/c2").start().awaitTermination()
    return {
        "stream": pairs(spark.read.parquet(f"{out}/matches"), "subscription"),
        "foreachBatch": pairs(spark.read.parquet(f"{out}/alerts/0"), "subscription"),
    }


if __name__ == "__main__":
    main()
