"""Describes the built files as a version."""

from dataclasses import dataclass, field
from typing import Any

from tamis.spark.building.on_executors import Built, all_attributes
from tamis.spark.plans.choose import Plan
from tamis.store.versions import IndexFile, Router, Version


@dataclass(frozen=True)
class LaidOut:
    """The files that were built, how events find them, and what a report should say of it."""

    files: list[Built]
    router: Router | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def version_of(
    laid_out: LaidOut, plan: Plan, ids: str, schema: dict[str, Any] | None, *, bound: bool, build: str
) -> Version:
    """The version that has these files; `build` is the same for all attempts to publish it.

    >>> plan = Plan("replicated", 1, "as asked for")
    >>> version_of(LaidOut([]), plan, "int", None, bound=False, build="0f").shards
    [[]]
    """
    shards: list[list[IndexFile]] = [[] for _ in range(max(1, plan.shards))]
    for part in laid_out.files:
        if part.file.subscriptions:
            shards[part.shard].append(part.file)
    return Version(
        number=1,
        plan=plan.name,
        ids="int" if ids == "int" else "string",
        shards=shards,
        router=laid_out.router,
        attributes=all_attributes(laid_out.files),
        subscriptions=sum(part.file.subscriptions for part in laid_out.files),
        payloads=any(part.payloads for part in laid_out.files),
        bound=bound,
        notes={"reason": plan.reason, "schema": schema, "build": build, **laid_out.notes},
    )
