"""`tamis subscribe`: hear the events that satisfy an expression."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n

if TYPE_CHECKING:
    from tamis.pubsub import Client

UNSUBSCRIBE_SECONDS = 5.0


def subscribe(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help='Such as "price < 15".')],
    *,
    broker: n.Broker = None,
    name: n.Name = "subscriber",
    id: Annotated[str, typer.Option(help="The id of the subscription.")] = "cli",
    type: n.Type = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="End after so many notifications.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the subscription there at the end.")] = False,
    token: n.Token = None,
    authority: n.Authority = None,
    nats: n.Nats = None,
    nats_credentials: n.NatsCredentials = None,
) -> None:
    """Subscribe and print each notification as one JSON line.

    It ends with the command. With --keep it stays, and notifications wait for the same --name.
    """
    import asyncio
    import json

    from tamis.pubsub.net.client import Gap

    async def listen(client: "Client") -> None:
        heard = 0
        async for note in client:
            if isinstance(note, Gap):
                typer.echo(json.dumps({"gap": [note.first, note.last], "reason": note.reason}))
                continue
            typer.echo(json.dumps({"number": note.number, "type": note.type, "event": note.event}))
            heard += 1
            if heard == count:
                client.acknowledge(note.number)
                return

    async def run(client: "Client") -> None:
        await client.subscribe(id, expression, type=type)
        end = f"after {count} notification{'s' if count > 1 else ''}" if count else "with Ctrl-C"
        typer.echo(f"subscribed as {name}/{id}; ends {end}", err=True)
        try:
            await listen(client)
        finally:  # also after Ctrl-C
            if not keep:
                await asyncio.wait_for(client.unsubscribe(id), UNSUBSCRIBE_SECONDS)

    n.with_client(n.Way(broker, name, token, authority, nats, nats_credentials), run)
