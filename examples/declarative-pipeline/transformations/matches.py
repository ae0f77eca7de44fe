"""Which rules does each event satisfy? The best match of each event, and how often each rule was that.

A pipeline's functions only describe tables, and Spark may call them more than once. The index is therefore
built here, once, when the pipeline is read; the functions then only ask it.
"""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import tamis.spark

spark = SparkSession.active()
data = Path(__file__).parent.parent / "data"

rules = spark.read.json(str(data / "rules.jsonl"))
index = tamis.spark.build(rules, directory="/tmp/tamis-declarative-pipeline/index")
events = spark.read.schema("event_id bigint, age int, country string").json(str(data / "events.jsonl"))
best = tamis.spark.match(events, index, k=1)


@dp.materialized_view
def best_match() -> DataFrame:
    return best


@dp.materialized_view
def matches_per_rule() -> DataFrame:
    return spark.read.table("best_match").groupBy("subscription").agg(sf.count("*").alias("events"))
