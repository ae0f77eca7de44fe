"""A Connect client that follows a Delta table of rules, and tables whose columns change, as a program.

Takes a folder that it shares with the server, and the address of the server. Prints JSON: each step and what
was found.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import tamis.spark

RULES = "id string, expression string"
NOW = {"availableNow": True}


def main(folder: str, address: str) -> None:
    spark: Any = SparkSession.builder.remote(address).getOrCreate()
    rules, events = f"{folder}/rules", f"{folder}/events"
    feed = spark.createDataFrame([("a", "x > 1")], RULES).write.format("delta")
    feed.option("delta.enableChangeDataFeed", "true").save(rules)
    spark.range(4).selectExpr("id AS event_id", "id AS x").write.format("delta").save(events)
    store = tamis.spark.SubscriptionStore(f"{folder}/store")
    told: dict[str, Any] = {"once": store.follow(spark, rules).applied}

    def catch_up() -> None:
        store.follow(spark, rules, checkpoint=f"{folder}/followed", trigger=NOW).awaitTermination()

    def pairs(**options: Any) -> list[list[Any]]:
        found = tamis.spark.match(spark.read.format("delta").load(events), store, **options)
        return sorted([row.event_id, row.subscription] for row in found.collect())

    catch_up()
    news = spark.createDataFrame([("a", "x > 2"), ("b", "x = 0"), ("bad", "x >")], RULES)
    news.createOrReplaceTempView("news")
    spark.sql(
        f"MERGE INTO delta.`{rules}` AS t USING news ON t.id = news.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    catch_up()
    told["merged"] = pairs()
    told["refused"] = [row.id for row in store.quarantined(spark).collect()]
    # The rules get a priority, and the events a column that a new rule asks for.
    spark.sql(f"ALTER TABLE delta.`{rules}` ADD COLUMNS (priority double)").collect()
    more = [("c", "x >= 0", 5.0), ("y", "y = 'new'", 1.0)]
    spark.createDataFrame(more, f"{RULES}, priority double").write.format("delta").mode("append").save(rules)
    catch_up()
    told["best"] = pairs(k=1)
    told |= stream(spark, store, folder)
    print(json.dumps(told), flush=True)


def stream(spark: Any, store: Any, folder: str) -> dict[str, Any]:
    """A running stream whose table gets a column: it stops, and goes on when it is started again."""

    def start(**trigger: Any) -> Any:
        arriving = spark.readStream.format("delta").load(f"{folder}/events")
        writer = tamis.spark.match(arriving, store).writeStream.format("delta").trigger(**trigger)
        return writer.option("checkpointLocation", f"{folder}/matching").start(f"{folder}/matches")

    running = start(processingTime="0 seconds")
    running.processAllAvailable()
    wider = spark.range(4, 6).selectExpr("id AS event_id", "id AS x", "'new' AS y").write.format("delta")
    wider.mode("append").option("mergeSchema", "true").save(f"{folder}/events")
    try:
        running.awaitTermination()
        said = "nothing"
    except Exception as error:
        said = str(error)
    start(**NOW).awaitTermination()
    rows = spark.read.format("delta").load(f"{folder}/matches").collect()
    return {"said": said, "stream": sorted([row.event_id, row.subscription] for row in rows)}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
