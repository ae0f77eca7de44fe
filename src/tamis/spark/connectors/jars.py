"""The jars that Kafka and Delta Lake need, pinned for each release of Spark.

Spark fetches them from Maven when a session starts (`spark.jars.packages`), so they must be set before. A
connector is compiled against one release of Spark, and the next may break it, so each release has its own;
the tests run those of the installed one.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tamis.errors import TamisError

# The name of a jar ends with the Scala that it is compiled for: that of PySpark 3.5 is 2.12, of 4 it is 2.13.
_KAFKA = {
    "3.5": "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
    "4.0": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.2",
    "4.1": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "4.2": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "4.3": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",  # works; 4.3 is not published yet
}
"""The connector is released with Spark; across releases it breaks where Spark's internals change."""

_DELTA = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}

_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


_INSTALLED = ("spark.jars.packages", "")


class ConnectorError(TamisError):
    """A format that no published connector reads on the installed Spark.

    >>> issubclass(ConnectorError, TamisError)
    True
    """


class Connector(NamedTuple):
    """What a session needs to read and write a format: Maven coordinates, and settings."""

    packages: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


def connector(format: str, spark: str | None = None) -> Connector:
    """The connector of a format for a release of Spark; for the installed one unless another is named.

    Formats that Spark reads by itself need nothing.

    >>> connector("kafka", "4.3.0").packages
    ('org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0',)
    >>> connector("delta", "3.5.9").packages
    ('io.delta:delta-spark_2.12:3.3.3',)
    >>> connector("parquet", "4.3.0").packages
    ()
    >>> connector("delta", "4.3.0")
    Traceback (most recent call last):
    ...
    tamis.spark.connectors.jars.ConnectorError: Delta Lake has published no connector that works with Spark...
    """
    release = ".".join((spark or installed_spark()).split(".")[:2])
    if format == "kafka":
        return Connector((_KAFKA.get(release) or _KAFKA[max(_KAFKA)],))
    if format == "delta":
        if release not in _DELTA:
            raise ConnectorError(
                f"Delta Lake has published no connector that works with Spark {release}; "
                f"use pyspark {max(_DELTA)}, or name a newer one in spark.settings as spark.jars.packages"
            )
        return Connector((_DELTA[release],), tuple(_DELTA_SETTINGS.items()))
    return Connector()


def settings_for(
    formats: Iterable[str], given: dict[str, str] | None = None, spark: str | None = None
) -> dict[str, str]:
    """The settings of a session that uses these formats, with those that the user gave.

    A user who names `spark.jars.packages` chooses the connectors, and an empty one says that they are there
    already: then only the settings that they need are added.

    >>> settings_for(["kafka", "parquet"], {"spark.jars.ivy": "/cache"}, "4.2.0")["spark.jars.packages"]
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0'
    """
    own = dict(given or {})
    if "spark.jars.packages" in own:
        delta = _DELTA_SETTINGS if "delta" in formats else {}
        return {name: value for name, value in {**delta, **own}.items() if (name, value) != _INSTALLED}
    needed = [connector(format, spark) for format in sorted(set(formats))]
    settings = {name: value for each in needed for name, value in each.settings}
    if packages := [package for each in needed for package in each.packages]:
        settings["spark.jars.packages"] = ",".join(packages)
    return {**settings, **own}


def installed_spark() -> str:
    """The version of the installed PySpark.

    >>> installed_spark()[0]
    '4'
    """
    import pyspark  # noqa: PLC0415 - connectors of another release can be asked for without it

    return pyspark.__version__
