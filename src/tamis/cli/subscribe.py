"""`tamis subscribe`: hear the events that satisfy an expression."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n

if TYPE_CHECKING:
    from tamis.pubsub import Client


def subscribe(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help='Such as "price < 15".')],
    *,
    broker: n.Broker = n.DEFAULT_BROKER,
    name: n.Name = "subscriber",
    id: Annotated[str, typer.Option(help="The id of the subscription.")] = "cli",
    type: n.Type = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="End after so many notifications.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the subscription there at the end.")] = False,
    token: n.Token = None,
    authority: n.Authority = None,
) -> None:
    """Subscribe and print each notification as one JSON line."""
    import json

    from tamis.pubsub.net.client import Gap

    async def run(client: "Client") -> None:
        await client.subscribe(id, expression, type=type)
        heard = 0
        async for note in client:
            if isinstance(note, Gap):
                typer.echo(json.dumps({"gap": [note.first, note.last], "reason": note.reason}))
                continue
            typer.echo(json.dumps({"number": note.number, "type": note.type, "event": note.event}))
            heard += 1
            if heard == count:
                client.acknowledge(note.number)
                break
        if not keep:
            await client.unsubscribe(id)

    n.with_client(broker, name, token, authority, run)
