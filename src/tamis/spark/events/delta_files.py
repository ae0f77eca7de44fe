"""The files of a Delta table, for tasks that read them without Delta.

A Delta table consists of Parquet files and a log that says which of them are current. Only Delta reads the
log, so the session needs its connector. The files alone are enough unless the log adds information: rows
deleted inside a file, columns in folder names, or columns under other names.
"""

from typing import TYPE_CHECKING
from urllib.parse import unquote

from tamis.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INSTEAD = 'read it with spark.read.format("delta") and use tamis.spark.match'


def current_rows(spark: "SparkSession", path: str) -> "DataFrame":
    """The rows of a Delta table, of one version whatever is written meanwhile; an error if it is more."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    quoted = "delta.`" + path.replace("`", "``") + "`"
    try:
        [detail] = spark.sql(f"DESCRIBE DETAIL {quoted}").collect()
        [latest] = spark.sql(f"DESCRIBE HISTORY {quoted} LIMIT 1").collect()
    except PySparkException as error:
        raise ArgumentError(
            f"{path} is a Delta table: its folder also holds files of older versions, and this session "
            f"cannot read its log ({str(error).splitlines()[0]}). Start the session with Delta's connector."
        ) from error
    if detail["partitionColumns"]:
        raise ArgumentError(
            f"{path} is partitioned by {', '.join(detail['partitionColumns'])}, and those columns are not in "
            f"its files; {_INSTEAD}"
        )
    if detail["properties"].get("delta.columnMapping.mode", "none") != "none":
        raise ArgumentError(f"{path} has column mapping: its files use other column names; {_INSTEAD}")
    return spark.read.format("delta").option("versionAsOf", latest["version"]).load(path)


def file_paths(rows: "DataFrame") -> list[str]:
    """The files of a table."""
    return sorted(plain_path(uri) for uri in rows.inputFiles())


def refuse_deleted(rows: "DataFrame", path: str, in_files: int) -> None:
    """Raise if the files of a table hold rows that the table does not."""
    deleted = in_files - rows.count()
    if deleted:
        raise ArgumentError(
            f"{deleted:,} rows of {path} are deleted but still in its files; run REORG TABLE ... APPLY "
            f"(PURGE), or {_INSTEAD}"
        )


def plain_path(uri: str) -> str:
    """The address of a file as people write it: Spark encodes odd characters in those that it tells.

    >>> plain_path("file:///data/my%20table/part-0.parquet"), plain_path("s3a://bucket/100%25/part-0.parquet")
    ('/data/my table/part-0.parquet', 's3a://bucket/100%/part-0.parquet')
    """
    plain = unquote(uri)
    return "/" + plain.removeprefix("file:").lstrip("/") if plain.startswith("file:") else plain
