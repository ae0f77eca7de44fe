"""Running a job: a session, the index, the query, the sink; then the report.

>>> import tempfile, tamis
>>> from pyspark.sql import SparkSession
>>> from tamis.spark.jobs import parse_job, run_job
>>> spark = SparkSession.builder.getOrCreate()
>>> folder = tempfile.mkdtemp()
>>> spark.sql("SELECT 1 AS event_id, 27 AS age").write.parquet(f"{folder}/events")
>>> spark.sql("SELECT 'ad-7' AS id, 'age > 21' AS expression").write.parquet(f"{folder}/rules")
>>> job = parse_job(f'''
... events: {{format: parquet, path: {folder}/events}}
... subscriptions: {{format: parquet, path: {folder}/rules}}
... sink: {{format: json, path: {folder}/matches}}
... ''')
>>> report = run_job(job, spark)
>>> report.events, report.matches
(1, 1)
"""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark import api
from tamis.spark.building.build_index import build
from tamis.spark.built_index import BuiltIndex, report_of
from tamis.spark.connectors.jars import settings_for
from tamis.spark.jobs import frames
from tamis.spark.jobs.model import Job, Matching, SnapshotSubscriptions, StoredSubscriptions
from tamis.spark.jobs.progress import OBSERVED, SECONDS_BETWEEN_LOOKS, Display, Figures, display, watched
from tamis.spark.jobs.report import JobReport
from tamis.spark.session import on_executor
from tamis.spark.store.subscription_store import SubscriptionStore
from tamis.store.directory import open_directory
from tamis.store.versions import latest_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_QUARANTINED = 5


def run_job(job: Job, spark: "SparkSession | None" = None, shown: Display | None = None) -> JobReport:
    """Run a job to its end; an endless stream runs until it is interrupted.

    Without a session, one is started as the job's section `spark` says, and stopped at the end.
    """
    session = spark if spark is not None else start_session(job)
    screen = display() if shown is None else shown
    try:
        if "nats" in job.formats:
            from tamis.spark.connectors.nats_source import NatsDataSource  # noqa: PLC0415 - an extra

            session.dataSource.register(NatsDataSource)
        return _run_stream(job, session, screen) if job.streaming else _run_batch(job, session, screen)
    finally:
        screen.close()
        if spark is None:
            session.stop()


def start_session(job: Job) -> "SparkSession":
    """The session of a job: what it asks for, with the connectors of its formats."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only a job that runs needs one

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName(job.name)
    if job.spark.remote is not None:
        builder = builder.remote(job.spark.remote)
    elif job.spark.master is not None:
        builder = builder.master(job.spark.master)
    settings = {"spark.ui.showConsoleProgress": "false", **settings_for(job.formats, job.spark.settings)}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _run_batch(job: Job, spark: "SparkSession", shown: Display) -> JobReport:
    started = time.monotonic()
    report = _empty_report(job)
    if isinstance(job.subscriptions, StoredSubscriptions) and job.subscriptions.changes is not None:
        changes = frames.read(spark, job.subscriptions.changes, streaming=False)
        SubscriptionStore(job.subscriptions.store).apply_changes(changes)
    index = _index(job, spark)
    events = frames.read(spark, job.events, streaming=False)
    counted_events = Observation() if not index.keeps_reports else None
    if counted_events is not None:  # tasks write no reports for a snapshot file
        events = events.observe(counted_events, sf.count(sf.lit(1)).alias("rows"))
    result = _ask(index, events, job.match)
    plan = report_of(result)
    report.plan, report.warnings = str(plan), plan.warnings
    observed = Observation()
    rows = result.observe(observed, *_counted(job.match))
    with watched(shown, job.name, plan):
        frames.write(frames.shaped(rows, job.sink, job.match.key), job.sink)
    report.seconds = time.monotonic() - started
    seen = _observed(observed)
    report.rows, report.matches, report.version = seen.get("rows"), seen.get("matches"), index.version.number
    if counted_events is not None:
        report.events = _observed(counted_events).get("rows")
    else:
        report.events = sum(task["rows"] for task in plan.tasks() if task["step"] != "shard")
        report.wrong_types = plan.wrong_types()
    _add_quarantined(report, job, spark, index)
    return report


def _run_stream(job: Job, spark: "SparkSession", shown: Display) -> JobReport:
    assert job.trigger is not None  # or it would be no stream
    assert job.checkpoint is not None
    started = time.monotonic()
    report = _empty_report(job)
    changing = _start_changes(job, spark)
    index = _index(job, spark)
    result = _ask(index, frames.read(spark, job.events, streaming=True), job.match)
    plan = report_of(result)
    report.plan, report.warnings = str(plan), plan.warnings
    rows = result.observe(OBSERVED, *_counted(job.match))
    query = frames.start(
        frames.shaped(rows, job.sink, job.match.key),
        job.sink,
        name=job.name,
        checkpoint=job.checkpoint,
        trigger=job.trigger.as_options(),
    )
    figures = Figures()
    try:
        _follow(query, changing, job.name, figures, shown)
    except KeyboardInterrupt:
        query.stop()
        report.state = "stopped"
    finally:
        if changing is not None:
            changing.stop()
    report.seconds = time.monotonic() - started
    report.events, report.matches, report.rows = figures.events or 0, figures.matches, figures.rows
    report.batches, report.version = figures.batches, figures.version
    report.wrong_types = plan.wrong_types()
    _add_quarantined(report, job, spark, index)
    return report


def _follow(query: Any, changing: Any, name: str, figures: Figures, shown: Display) -> None:
    """Show each micro-batch until the query ends; if it fails, or the changes do, that is raised."""
    last = -1
    ended = False
    while not ended:
        ended = query.awaitTermination(SECONDS_BETWEEN_LOOKS)
        if changing is not None and changing.exception() is not None:
            query.stop()
            raise changing.exception()
        for progress in query.recentProgress:
            # Spark repeats the last micro-batch, without rows, while it waits for more.
            if progress["batchId"] > last and (progress["numInputRows"] or progress["observedMetrics"]):
                last = progress["batchId"]
                figures.add_micro_batch(progress)
                shown.show(name, figures)


def _index(job: Job, spark: "SparkSession") -> BuiltIndex:
    given = job.subscriptions
    if isinstance(given, SnapshotSubscriptions):
        return api.open_index(spark, given.snapshot)
    if isinstance(given, StoredSubscriptions):
        return SubscriptionStore(given.store).built_index(spark)
    rules = frames.read(spark, given, streaming=False)
    return build(rules, directory=job.directory, on_error=job.match.on_error)


def _start_changes(job: Job, spark: "SparkSession") -> Any:
    """Start the stream of changes, if the job has one, after all changes that are there were applied.

    A match needs a version to start from, so the store is first brought up to date.
    """
    given = job.subscriptions
    if not isinstance(given, StoredSubscriptions) or given.changes is None:
        return None
    assert job.trigger is not None
    store = SubscriptionStore(given.store)

    def apply(trigger: dict[str, Any]) -> Any:
        changes = frames.read(spark, given.changes, streaming=True)  # type: ignore[arg-type]
        return store.apply_changes(
            changes, checkpoint=given.checkpoint, trigger=trigger, name=f"{job.name}-changes"
        )

    apply({"availableNow": True}).awaitTermination()
    url = store.url
    if on_executor(spark, lambda: latest_number(open_directory(url))) is None:
        raise ArgumentError(
            f"the store {given.store} is empty and {frames.described(given.changes)} holds no change for it; "
            "add a subscription first"
        )
    return apply({"processingTime": given.every}) if job.trigger.processing_time is not None else None


def _ask(index: BuiltIndex, events: "DataFrame", asked: Matching) -> "DataFrame":
    common: dict[str, Any] = {
        "tags": asked.tags,
        "tags_all": asked.tags_all,
        "tags_none": asked.tags_none,
        "spread": asked.spread,
        "intervals": asked.intervals,
    }
    if asked.mode == "count_by_subscription":
        return index.count_by_subscription(events, **common)
    key: Any = "*" if asked.key == ["*"] else asked.key
    if asked.mode in ("all", "top_k"):
        ranking: dict[str, Any] = {"k": asked.k, "score": asked.score, "min_score": asked.min_score}
        return index.match(events, key=key, payload=asked.payload, **ranking, **common)
    ask = {"count": index.count, "exists": index.exists, "unmatched": index.unmatched}[asked.mode]
    return ask(events, key=key, **common)


def _counted(asked: Matching) -> list[Any]:
    """What a query counts on the way to the sink."""
    matches = {
        "count": sf.sum("matches"),
        "count_by_subscription": sf.sum("matches"),
        "exists": sf.count_if("matched"),
        "unmatched": sf.lit(None).cast("bigint"),
    }.get(asked.mode, sf.count(sf.lit(1)))
    return [
        sf.count(sf.lit(1)).alias("rows"),
        sf.max(matches).alias("matches") if asked.mode == "unmatched" else matches.alias("matches"),
        sf.max("version").alias("version"),
    ]


def _observed(observation: Observation) -> dict[str, Any]:
    """What a query counted on its way; nothing where the sink runs it again, as Delta's catalog does."""
    try:
        return dict(observation.get)
    except Exception:  # Spark's own, which differs between classic and Connect: there was nothing to count
        return {}


def _empty_report(job: Job) -> JobReport:
    return JobReport(job.name, "streaming" if job.streaming else "batch", sink=frames.described(job.sink))


def _add_quarantined(report: JobReport, job: Job, spark: "SparkSession", index: BuiltIndex) -> None:
    bad = index.quarantined
    if isinstance(job.subscriptions, StoredSubscriptions) and job.subscriptions.changes is not None:
        bad = SubscriptionStore(job.subscriptions.store).quarantined(spark)
    if bad is None:
        return
    report.quarantined = bad.count()
    first = bad.select("id", "expression", "error").limit(FIRST_QUARANTINED).collect()
    report.first_quarantined = [row.asDict() for row in first]
