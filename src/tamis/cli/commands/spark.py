"""`tamis spark`: jobs on Spark, described in a YAML file."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tamis.spark.jobs.model import Job

app = typer.Typer(help="Run jobs on Spark.", no_args_is_help=True)

JobPath = Annotated[str, typer.Argument(metavar="JOB", help="The job: a YAML file.")]


@app.command("run")
def run(
    path: JobPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print the final report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> int:
    """Match a table or stream of events against subscriptions, as a job file says.

    Progress goes to standard error, the final report to standard output. A stream without an end runs until
    it is interrupted (Ctrl-C or SIGTERM) and resumes from its checkpoint when it is run again.
    """
    import io
    import json

    from tamis.cli.failure import FOUND, warn

    job = _load(path)
    from tamis.spark.jobs.progress import Lines
    from tamis.spark.jobs.run import run_job

    _stop_on_sigterm()
    if not quiet:
        warn("starting Spark; the messages until then are its own")
    with _explained():
        report = run_job(job, shown=Lines(io.StringIO()) if quiet else None)
    typer.echo(json.dumps(report.to_json()) if as_json else str(report))
    return FOUND


@app.command("check")
def check(path: JobPath) -> int:
    """Check a job file without running it: keys, values, variables of the environment, connectors, paths."""
    from tamis.cli.failure import FOUND, UserError

    job = _load(path)
    from tamis.spark.jobs.frames import described
    from tamis.spark.jobs.load import InvalidJobError
    from tamis.spark.jobs.paths import missing_paths

    if missing := missing_paths(job):
        raise UserError(str(InvalidJobError(path, missing)))

    kind = "stream" if job.streaming else "table"
    typer.echo(
        f"{path}: ok. A {kind} of events from {described(job.events)}, subscriptions from "
        f"{described(job.subscriptions)}, {job.match.mode} to {described(job.sink)}"
    )
    return FOUND


@app.command("init")
def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A new folder, or one without a pipeline.")],
) -> int:
    """Write a pipeline to start from: raw events, rules that change, alerts, windows and a report."""
    from pathlib import Path

    from tamis._extras import missing_extra
    from tamis.cli.failure import FOUND, UserError
    from tamis.errors import ArgumentError

    try:
        from tamis.spark.template import write_template
    except ImportError:
        raise UserError(missing_extra("`tamis spark`", "spark")) from None
    try:
        written = write_template(Path(folder))
    except ArgumentError as error:
        raise UserError(str(error)) from None
    for path in written:
        typer.echo(path)
    typer.echo(f"Run it with: python {Path(folder) / 'pipeline.py'}")
    return FOUND


def _load(path: str) -> "Job":
    from tamis._extras import missing_extra
    from tamis.cli.failure import UserError

    try:
        from tamis.spark.jobs.load import InvalidJobError, load_job
    except ImportError:
        raise UserError(missing_extra("`tamis spark`", "spark")) from None
    try:
        return load_job(path)
    except InvalidJobError as error:
        raise UserError(str(error)) from None


def _stop_on_sigterm() -> None:
    """A cluster manager ends a job with SIGTERM: let it finish as if it were interrupted."""
    import signal
    from typing import NoReturn

    def stop(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


class _explained:  # noqa: N801 - reads as a function
    """Turns what Tamis and Spark raise into an error for the person at the terminal."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        """Raise `UserError` for what the user can fix; let the rest pass."""
        from pyspark.errors import PySparkException

        from tamis.cli.failure import UserError
        from tamis.errors import TamisError

        if isinstance(error, TamisError):
            raise UserError(str(error)) from None
        if isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError":
            raise UserError(_cause(str(error))) from None


def _cause(text: str) -> str:
    """The part of Spark's message that says what is wrong.

    An error of ours that was raised in a task comes with the traceback of the worker; its last line counts.

    >>> _cause("Job aborted\\n  File x\\ntamis.spark.nats_session.NatsError: cannot connect")
    'cannot connect'
    >>> _cause("[PATH_NOT_FOUND] Path does not exist: /x.\\n\\tat org.apache")
    '[PATH_NOT_FOUND] Path does not exist: /x.'
    """
    import re

    ours = re.findall(r"^tamis\.[\w.]+Error: (.*)$", text, re.MULTILINE)
    if ours:
        return str(ours[-1])
    kept = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return "\n".join(kept[:12]).strip()
