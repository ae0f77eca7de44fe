"""`tamis publish`: hand events to a broker."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n

if TYPE_CHECKING:
    from tamis.pubsub import Client


def publish(
    events: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EVENT]...", help="Events as JSON; JSON lines on standard input by default."),
    ] = None,
    *,
    broker: n.Broker = n.DEFAULT_BROKER,
    name: n.Name = "publisher",
    type: n.Type = None,
    advertise: Annotated[
        str | None, typer.Option(help="Advertise this expression first, and publish under it.")
    ] = None,
    token: n.Token = None,
    authority: n.Authority = None,
) -> None:
    """Publish events; each is on the broker's disk when its number is printed."""
    import sys

    async def run(client: "Client") -> None:
        if advertise is not None:
            await client.advertise("cli", advertise, type=type)
        for event in events if events else sys.stdin:
            if event.strip():
                typer.echo(await client.publish(event.strip(), type=type))

    n.with_client(broker, name, token, authority, run)
