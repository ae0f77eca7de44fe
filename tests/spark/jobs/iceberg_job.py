"""Rules of an Iceberg table, followed; run by `test_iceberg.py` with a Spark that has Iceberg's runtime."""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import tamis.spark

COLUMNS = {"id": "rule", "expression": "condition"}
TYPES = "rule string, condition string, weights map<string, double>"


def main(folder: str, jars: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{folder}/warehouse",
        "spark.sql.session.timeZone": "America/New_York",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps([followed(spark, folder, "copy-on-write"), followed(spark, folder, "merge-on-read")]))


def followed(spark: SparkSession, folder: str, mode: str) -> list[Any]:
    """What was applied after each step, whether store and table agree, and what was refused."""
    table = f"lake.db.{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE {table} ({TYPES}) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})")
    store = tamis.spark.SubscriptionStore(f"{folder}/{mode}")
    events = spark.createDataFrame([(at, at % 10) for at in range(20)], "event_id bigint, x bigint")
    steps: list[Any] = []

    def step(*statements: str, stream: bool = False) -> None:
        for statement in statements:
            spark.sql(statement.format(t=table))
        applied = None
        if stream:
            given = {"checkpoint": f"{folder}/{mode}-checkpoint", "trigger": {"availableNow": True}}
            store.follow(spark, table, columns=COLUMNS, events=events, **given).awaitTermination()
        else:
            found = store.follow(spark, table, columns=COLUMNS, events=events)
            applied = [found.applied, found.stale, found.quarantined]
        rows = spark.table(table).where("rule != 'bad'").select("rule", "condition").collect()
        held = {row.id: row.expression for row in tamis.spark.rules(spark, store).collect()} if rows else {}
        steps.append([applied, held == {row.rule: row.condition for row in rows}])

    step()  # an empty table
    step(
        "INSERT INTO {t} VALUES ('a', 'x > 7', map('x', 2.0D)), ('b', 'x = 2', NULL), ('c', 'x = 4', map()), "
        "('bad', 'colour = 1', NULL)"
    )
    step()  # nothing new
    step(
        "UPDATE {t} SET condition = 'x = 5' WHERE rule = 'b'",
        "DELETE FROM {t} WHERE rule = 'c'",
        "INSERT INTO {t} VALUES ('d', 'x = 6', NULL)",
        stream=True,
    )
    # One commit with an update, a deletion and an insertion.
    step(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES ('a', 'x > 8'), ('d', ''), ('e', 'x = 1') "
        "AS v(rule, condition)) AS n ON t.rule = n.rule WHEN MATCHED AND n.condition = '' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET condition = n.condition "
        "WHEN NOT MATCHED THEN INSERT (rule, condition, weights) VALUES (n.rule, n.condition, NULL)",
        stream=True,
    )
    step("ALTER TABLE {t} ADD COLUMN priority double", "INSERT INTO {t} VALUES ('f', 'x = 3', NULL, 4.0D)")
    first = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").first()
    assert first is not None
    name = table.removeprefix("lake.")
    step(f"CALL lake.system.rollback_to_snapshot('{name}', {first.snapshot_id})")
    # The snapshot that was followed last expires before the next look.
    step(
        "DELETE FROM {t} WHERE rule = 'b'",
        "INSERT INTO {t} VALUES ('g', 'x = 9', NULL, 1.0D)",
        f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01', "
        "retain_last => 1)",
    )
    step("INSERT OVERWRITE {t} VALUES ('h', 'x = 0', NULL, 1.0D)", stream=True)
    refused = sorted({row.id for row in store.quarantined(spark).collect()})
    matched = sorted([row.event_id, row.subscription] for row in tamis.spark.match(events, store).collect())
    return [steps, refused, matched]


if __name__ == "__main__":
    main(*sys.argv[1:])
