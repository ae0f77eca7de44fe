"""The sources and sinks of a job as DataFrames: Spark's readers and writers, configured by the job file.

Messages of Kafka and NATS are JSON: a source has the columns of its schema, and a sink writes each row as one
message.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from tamis.spark.jobs.model import (
    FileSink,
    FileSource,
    KafkaSink,
    KafkaSource,
    NatsSink,
    NatsSource,
    TableSink,
    TableSource,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    AnySource = FileSource | TableSource | KafkaSource | NatsSource
    AnySink = FileSink | TableSink | KafkaSink | NatsSink

_CSV = {"header": "true"}


def read(spark: "SparkSession", source: "AnySource", *, streaming: bool) -> "DataFrame":
    """The DataFrame of a source: a stream, or all that is there."""
    rows: DataFrame = _read(spark, source, streaming)
    return rows.selectExpr(*source.select) if source.select else rows


def _read(spark: "SparkSession", source: "AnySource", streaming: bool) -> Any:
    reader: Any = spark.readStream if streaming else spark.read
    if isinstance(source, TableSource):
        return reader.options(**source.options).table(source.table)
    if isinstance(source, FileSource):
        # Without a schema, a table of CSV rows gets the types of its values.
        guessed = {"inferSchema": str(source.table_schema is None).lower()} if not streaming else {}
        defaults = {**_CSV, **guessed} if source.format == "csv" else {}
        reader = reader.format(source.format).options(**{**defaults, **source.options})
        if source.table_schema is not None and source.format != "delta":
            reader = reader.schema(source.table_schema)
        return reader.load(source.path)
    if isinstance(source, KafkaSource):
        options = {
            "kafka.bootstrap.servers": source.servers,
            "subscribe": source.topic,
            "startingOffsets": source.start if streaming else "earliest",
            **source.options,
        }
        messages = reader.format("kafka").options(**options).load()
        return _from_json(messages, sf.col("value").cast("string"), source)
    options = {"servers": source.servers, "stream": source.stream, "data": "string"}
    options["startingSequence"] = source.start if streaming else "earliest"
    if source.subject is not None:
        options["subject"] = source.subject
    messages = reader.format("nats").options(**{**options, **source.options}).load()
    return _from_json(messages, sf.col("data"), source)


def _from_json(messages: "DataFrame", text: Any, source: KafkaSource | NatsSource) -> "DataFrame":
    assert source.table_schema is not None  # the model demands it of messages
    if source.on_bad_message == "fail":
        record = sf.from_json(text, source.table_schema, {"mode": "FAILFAST"})
        return messages.select(record.alias("message")).select("message.*")
    # A column of its own says which messages are broken: a record of nulls may be a good one.
    broken = "_tamis_broken"
    schema = f"{source.table_schema}, {broken} string"
    record = sf.from_json(text, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": broken})
    parsed = messages.select(record.alias("message")).where("message IS NOT NULL").select("message.*")
    return parsed.where(sf.col(broken).isNull()).drop(broken)


def shaped(rows: "DataFrame", sink: "AnySink", key: list[str]) -> "DataFrame":
    """The rows as the sink takes them: for messages, a key or an id and the row as JSON."""
    if isinstance(sink, KafkaSink):
        kept = [name for name in key if name in rows.columns]
        own_key = [sf.to_json(sf.struct(*kept)).alias("key")] if kept else []
        return rows.select(*own_key, sf.to_json(sf.struct("*")).alias("value"))
    if isinstance(sink, NatsSink):
        columns = [sf.to_json(sf.struct("*")).alias("data")]
        if sink.message_id:
            columns.append(sf.to_json(sf.struct(*sink.message_id)).alias("message_id"))
        return rows.select(*columns)
    return rows


def write(rows: "DataFrame", sink: "AnySink") -> None:
    """Write a table to a sink and wait until it is there."""
    writer: Any = rows.write.options(**_options(sink))
    if (format := _format(rows.sparkSession, sink)) is not None:
        writer = writer.format(format)
    if isinstance(sink, FileSink | TableSink):
        writer = writer.mode(sink.mode).partitionBy(*sink.partition_by)
    else:
        writer = writer.mode("append")
    if isinstance(sink, TableSink):
        writer.saveAsTable(sink.table)
    else:
        writer.save(*_where(sink))


def start(rows: "DataFrame", sink: "AnySink", *, name: str, checkpoint: str, trigger: dict[str, Any]) -> Any:
    """Start the query that writes a stream to a sink."""
    writer: Any = rows.writeStream.options(**_options(sink)).outputMode("append")
    if (format := _format(rows.sparkSession, sink)) is not None:
        writer = writer.format(format)
    writer = writer.option("checkpointLocation", checkpoint).queryName(name).trigger(**trigger)
    if isinstance(sink, FileSink | TableSink) and sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if isinstance(sink, TableSink):
        return writer.toTable(sink.table)
    return writer.start(*_where(sink))


def _format(spark: "SparkSession", sink: "AnySink") -> str | None:
    """How the sink is stored; None leaves it to Spark. Spark refuses to write a table as anything else."""
    if not isinstance(sink, TableSink):
        return sink.format
    if sink.table_format is not None or not spark.catalog.tableExists(sink.table):
        return sink.table_format
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {sink.table}")
    providers = described.filter("col_name = 'Provider'").collect()
    return str(providers[0]["data_type"]) if providers else None


def _where(sink: "AnySink") -> list[str]:
    return [sink.path] if isinstance(sink, FileSink) else []


def _options(sink: "AnySink") -> dict[str, str]:
    own: dict[str, str] = {}
    if isinstance(sink, KafkaSink):
        own = {"kafka.bootstrap.servers": sink.servers, "topic": sink.topic}
    elif isinstance(sink, NatsSink):
        own = {"servers": sink.servers, "subject": sink.subject}
    elif isinstance(sink, FileSink) and sink.format == "csv":
        own = _CSV
    return {**own, **sink.options}


def described(part: Any) -> str:
    """A source or sink in a few words.

    >>> described(FileSink(format="parquet", path="/out"))
    'parquet /out'
    """
    for name in ("path", "table", "topic", "stream", "subject", "snapshot", "store"):
        if place := getattr(part, name, None):
            return f"{getattr(part, 'format', name)} {place}"
    return str(getattr(part, "format", ""))
