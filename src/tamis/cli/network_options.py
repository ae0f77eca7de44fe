"""Options to reach a site: shared by `tamis publish`, `tamis subscribe` and `tamis pubsub`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub import Site

T = TypeVar("T")

Log = Annotated[
    str,
    typer.Option(
        "--log",
        metavar="URL",
        envvar="TAMIS_LOG",
        help="The site's log: sqlite:PATH or nats://HOST:PORT/SITE.",
    ),
]
Name = Annotated[str, typer.Option("--name", help="Who you are: a queue belongs to a name.")]
Credentials = Annotated[Path | None, typer.Option(help="Credentials file for NATS.")]
Authority = Annotated[Path | None, typer.Option(help="PEM file: trusted certificates, for tls:// URLs.")]


@dataclass(frozen=True)
class Way:
    """How to reach a site: the options as they were given."""

    log: str
    credentials: Path | None = None
    authority: Path | None = None


def with_site(way: Way, use: "Callable[[Site], Awaitable[T]]") -> T:
    """Open a site, use it, and close it; errors become one line."""
    import asyncio
    import os
    import signal
    import sys

    from tamis.errors import TamisError
    from tamis.pubsub import connect

    async def session() -> T:
        # As after Ctrl-C: what the command would take back at its end is taken back.
        this = asyncio.current_task()
        assert this is not None, "a coroutine runs in a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
        credentials = str(way.credentials) if way.credentials else None
        authority = str(way.authority) if way.authority else None
        async with connect(way.log, credentials=credentials, authority=authority) as site:
            return await use(site)

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        return asyncio.run(session())
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except (ValueError, TamisError) as error:
        raise UserError(str(error)) from None
