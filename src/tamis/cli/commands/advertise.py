"""`tamis advertise`: say which events will be published."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub import Client


def advertise(
    expression: Annotated[
        str | None, typer.Argument(metavar="[EXPRESSION]", help='Such as "price > 3"; not for --withdraw.')
    ] = None,
    *,
    broker: n.Broker = None,
    name: n.Name = "publisher",
    id: Annotated[str, typer.Option(help="The id of the advertisement.")] = "cli",
    type: n.Type = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take the advertisement of that id back instead.")
    ] = False,
    token: n.Token = None,
    authority: n.Authority = None,
    nats: n.Nats = None,
    nats_credentials: n.NatsCredentials = None,
) -> None:
    """Advertise; ends once every broker knows. The advertisement stays until it is withdrawn."""
    if expression is None and not withdraw:
        raise UserError("what is to be advertised?", hint='such as tamis advertise "price > 3"')

    async def run(client: "Client") -> None:
        if expression is None or withdraw:
            await client.withdraw(id)
        else:
            await client.advertise(id, expression, type=type)

    n.with_client(n.Way(broker, name, token, authority, nats, nats_credentials), run)
    typer.echo(f"{'withdrawn' if withdraw else 'advertised'} as {name}/{id}", err=True)
