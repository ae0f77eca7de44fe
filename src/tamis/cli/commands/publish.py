"""`tamis publish`: hand events to a broker."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub import Client


def publish(
    events: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVENT", help="Events as JSON; JSON lines on standard input by default."),
    ] = None,
    *,
    broker: n.Broker = None,
    name: n.Name = "publisher",
    type: n.Type = None,
    advertise: Annotated[
        str | None, typer.Option(help="Advertise this expression first, and publish under it.")
    ] = None,
    token: n.Token = None,
    authority: n.Authority = None,
    nats: n.Nats = None,
    nats_credentials: n.NatsCredentials = None,
) -> None:
    """Publish events; each is safe with the broker when its number is printed. A wrong one ends it."""
    from tamis.errors import TamisError

    async def run(client: "Client") -> None:
        if advertise is not None:
            await client.advertise("cli", advertise, type=type)
        number = 0
        async for event in given(events) if events else standard_input():
            number += 1
            if event.strip():
                try:
                    typer.echo(await client.publish(event.strip(), type=type))
                except (ValueError, TamisError) as error:
                    place = f"event {number}" if events else f"line {number} of standard input"
                    raise UserError(f"{place}: {error}") from None

    n.with_client(n.Way(broker, name, token, authority, nats, nats_credentials), run)


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
