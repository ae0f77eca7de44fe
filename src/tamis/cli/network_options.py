"""What `tamis publish`, `tamis subscribe` and `tamis advertise` share: how to reach a broker, and as whom."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub import Client

T = TypeVar("T")

Broker = Annotated[str, typer.Option("--broker", "-b", help="HOST:PORT of the broker.")]
Name = Annotated[str, typer.Option("--name", help="Who you are; subscriptions belong to a name.")]
Token = Annotated[str | None, typer.Option(envvar="TAMIS_TOKEN", help="Your token, if the broker wants one.")]
Authority = Annotated[Path | None, typer.Option(help="PEM file: trusted certificates; connects with TLS.")]
Type = Annotated[str | None, typer.Option(help="The event type.")]

DEFAULT_BROKER = "127.0.0.1:7001"


def with_client(
    broker: str,
    name: str,
    token: str | None,
    authority: Path | None,
    use: "Callable[[Client], Awaitable[T]]",
) -> T:
    """Connect, use the client, and close; errors become one line."""
    import asyncio
    import ssl

    from tamis.errors import TamisError
    from tamis.pubsub.net.client import Client
    from tamis.pubsub.net.server import Address

    async def session() -> T:
        where = Address.parse(broker)
        tls = ssl.create_default_context(cafile=str(authority)) if authority else None
        client = Client(where.host, where.port, name, token=token, tls=tls)
        try:
            await asyncio.wait_for(client.connect(), 10.0)
        except TimeoutError:
            raise UserError(f"no broker answers at {broker}", hint="start one with `tamis broker`") from None
        try:
            return await use(client)
        finally:
            await client.close()

    try:
        return asyncio.run(session())
    except (ValueError, TamisError) as error:
        raise UserError(str(error)) from None
