"""`tamis advertise`: say which events will be published."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n

if TYPE_CHECKING:
    from tamis.pubsub import Client


def advertise(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help='Such as "price > 3".')],
    *,
    broker: n.Broker = n.DEFAULT_BROKER,
    name: n.Name = "publisher",
    id: Annotated[str, typer.Option(help="The id of the advertisement.")] = "cli",
    type: n.Type = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take the advertisement of that id back instead.")
    ] = False,
    token: n.Token = None,
    authority: n.Authority = None,
) -> None:
    """Advertise; ends once every broker knows. The advertisement stays until it is withdrawn."""

    async def run(client: "Client") -> None:
        if withdraw:
            await client.withdraw(id)
        else:
            await client.advertise(id, expression, type=type)

    n.with_client(broker, name, token, authority, run)
    typer.echo(f"{'withdrawn' if withdraw else 'advertised'} as {name}/{id}", err=True)
