"""Continuous queries that change while streams run: a store of versions."""

from collections.abc import Mapping

from tamis.spark.flows.definition import Query


def queries_of_micro_batch(url: str) -> Mapping[str, Query]:
    """The queries of the version that the micro-batch of this task uses."""
    raise NotImplementedError(url)
