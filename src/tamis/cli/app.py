"""The command `tamis`: all subcommands, exit codes, and one-line errors.

`plugins` finds the commands that other packages add.

Exit codes are those of grep: 0 found something (or finished), 1 found nothing (or a check failed), 2 the
command or its input is wrong, 130 interrupted. A closed pipe (`| head`) ends the process silently.
"""

import errno
import re
import sys
from typing import Annotated, Any, NoReturn

import typer

from tamis._suggest import suggestion
from tamis.cli.commands import (
    check,
    demo,
    explain,
    flow,
    import_rules,
    index,
    match,
    publish,
    pubsub,
    router,
    spark,
    subscribe,
    topk,
    why_not,
)
from tamis.cli.failure import BAD_INPUT, INTERRUPTED, UserError, complain
from tamis.cli.plugins import SETTINGS, Commands, tidy

EPILOG = "Exit codes: 0 found or done, 1 nothing found or a check failed, 2 bad usage or input."

app = typer.Typer(
    name="tamis",
    cls=Commands,
    help="Sift events through standing Boolean expressions.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)
app.command("match")(match.match)
app.command("topk")(topk.topk)
app.command("explain")(explain.explain)
app.command("why-not")(why_not.why_not)
app.command("check")(check.check)
app.command("import")(import_rules.import_rules)
app.add_typer(flow.app, name="flow")
app.add_typer(index.app, name="index")
app.add_typer(spark.app, name="spark")
app.command("demo")(demo.demo)
app.command("router")(router.router)
app.command("publish")(publish.publish)
app.command("subscribe")(subscribe.subscribe)
app.add_typer(pubsub.app, name="pubsub")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tamis {version('tamis')}")
        raise typer.Exit


@app.callback()
def _tamis(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# Typer exports one of its usage errors; the class above it has what all of them share.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def _nearest_choice(message: str) -> str | None:
    """For an option that takes one of a few words, the one that was probably meant.

    >>> _nearest_choice("Invalid value for '--format': 'cvs' is not one of 'jsonl', 'csv'.")
    'did you mean `csv`?'
    """
    found = re.search(r"'([^']*)' is not one of (.*)", message)
    return suggestion(found[1], re.findall(r"'([^']*)'", found[2])) if found else None


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _command() -> Any:
    """The commands as a tree, without types for options that take no value."""
    command = typer.main.get_command(app)
    tidy(command)
    return command


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    try:
        code = _command()(arguments, prog_name="tamis", standalone_mode=False)
    except UserError as error:
        complain(error)
        code = error.code
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "tamis"
        message = error.format_message()  # type: ignore[attr-defined]
        if message:  # there is none after `tamis` alone, which has shown its help
            hint = _nearest_choice(message) or f"see `{command} --help`"
            complain(UserError(message[:1].lower() + message[1:].rstrip("."), hint=hint))
        code = BAD_INPUT
    except OSError as error:
        what = error.strerror or str(error)
        where = error.filename or ("cannot write the output" if error.errno in _FULL else None)
        complain(UserError(f"{where}: {what}" if where else what))
        code = BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)
