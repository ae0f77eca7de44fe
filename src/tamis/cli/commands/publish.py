"""`tamis publish`: append events to a site's log."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub import Site


def publish(
    log: n.Log,
    events: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVENT", help="Events as JSON; JSON lines on standard input by default."),
    ] = None,
    *,
    name: n.Name = "publisher",
    credentials: n.Credentials = None,
    authority: n.Authority = None,
) -> None:
    """Publish events; each is safe in the log when its number is printed. A wrong one ends it."""
    from tamis.errors import TamisError

    async def run(site: "Site") -> None:
        publisher = await site.publisher(name)
        number = 0
        async for event in given(events) if events else standard_input():
            number += 1
            if event.strip():
                try:
                    [stored] = await publisher.publish(event.strip())
                except (ValueError, TamisError) as error:
                    place = f"event {number}" if events else f"line {number} of standard input"
                    raise UserError(f"{place}: {error}") from None
                typer.echo(stored)

    n.with_site(n.Way(log, credentials, authority), run)


async def given(events: list[str]) -> AsyncIterator[str]:
    """Events from the command line."""
    for event in events:
        yield event


async def standard_input() -> AsyncIterator[str]:
    """Lines of standard input, without keeping the connection waiting while nobody types."""
    import asyncio
    import sys
    import threading
    from concurrent.futures import CancelledError

    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue(1)

    def hand_over(line: str | None) -> bool:
        putting = lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except (RuntimeError, CancelledError):  # the command has ended
            putting.close()
            return False
        return True

    def read() -> None:
        if all(hand_over(line) for line in sys.stdin):
            hand_over(None)

    # A daemon, so that Ctrl-C does not wait for the next line.
    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line
