"""What `tamis publish`, `tamis subscribe` and `tamis advertise` share: how to reach a broker, and as whom."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    import ssl

    from tamis.pubsub import Client

T = TypeVar("T")

Broker = Annotated[
    str | None,
    typer.Option(
        "--broker", "-b", help="HOST:PORT of the broker, by default 127.0.0.1:7001; with --nats, its name."
    ),
]
OWNED = "Who you are: subscriptions and advertisements belong to a name, and a name to one connection."
Name = Annotated[str, typer.Option("--name", help=OWNED)]
Token = Annotated[str | None, typer.Option(envvar="TAMIS_TOKEN", help="Your token, if the broker wants one.")]
Authority = Annotated[Path | None, typer.Option(help="PEM file: trusted certificates; connects with TLS.")]
Type = Annotated[str | None, typer.Option(help="The event type.")]
Nats = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Reach the broker over these NATS servers, separated by commas."),
]
NatsCredentials = Annotated[Path | None, typer.Option(help="Credentials file for the NATS servers.")]

DEFAULT_BROKER = "127.0.0.1:7001"
ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Way:
    """How to reach a broker, and as whom: the options as they were given."""

    broker: str | None
    name: str
    token: str | None
    authority: Path | None
    nats: str | None
    nats_credentials: Path | None

    def client(self) -> "Client":
        """A client that is not connected yet."""
        from tamis.pubsub.net.client import Client
        from tamis.pubsub.net.tcp import Address

        tls = trusting(self.authority)
        if self.nats is None:
            where = Address.parse(self.broker or DEFAULT_BROKER)
            return Client(where.host, where.port, self.name, token=self.token, tls=tls)
        if self.broker is None:
            raise UserError("which broker on NATS?", hint="name it with --broker, such as --broker b1")
        credentials = str(self.nats_credentials) if self.nats_credentials else None
        return Client.over_nats(
            self.nats, self.broker, self.name, token=self.token, tls=tls, credentials=credentials
        )


def trusting(authority: Path | None) -> "ssl.SSLContext | None":
    """TLS that trusts the certificates in a file; no TLS without one."""
    import ssl

    if authority is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(authority))
    except OSError as error:
        raise UserError(f"cannot read the certificates in {authority}: {error}") from None


def survive_broken_pipes() -> None:
    """Let a peer that hangs up break one connection; other commands end with their first broken pipe."""
    import signal

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def with_client(way: Way, use: "Callable[[Client], Awaitable[T]]") -> T:
    """Connect, use the client, and close; errors become one line."""
    import asyncio
    import os
    import signal
    import sys

    from tamis.errors import TamisError

    async def session() -> T:
        # As after Ctrl-C: what the command would take back at its end is taken back.
        this = asyncio.current_task()
        assert this is not None, "a coroutine runs in a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
        client = way.client()
        try:
            await asyncio.wait_for(client.connect(), ANSWER_SECONDS)
            return await use(client)
        except TimeoutError:
            where = way.broker or DEFAULT_BROKER
            reason = f": {client.trouble}" if client.trouble else ""
            hint = "is `tamis broker` running there, and does it use TLS (--authority) or NATS (--nats)?"
            raise UserError(f"no broker answers at {where}{reason}", hint=hint) from None
        finally:
            await client.close()

    survive_broken_pipes()
    try:
        return asyncio.run(session())
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except (ValueError, TamisError) as error:
        raise UserError(str(error)) from None
