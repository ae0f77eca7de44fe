"""`tamis pubsub`: inspect and maintain a site."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli import network_options as n
from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub.site import Site

app = typer.Typer(help="Look at a site's queues and routers, and put them in order.", no_args_is_help=True)
Subscriber = Annotated[str, typer.Argument(metavar="SUBSCRIBER", help="The subscriber's name.")]


@app.command("status")
def status(log: n.Log, *, credentials: n.Credentials = None, authority: n.Authority = None) -> None:
    """Show partitions, routers, other sites and sizes, as JSON."""
    _print(n.with_site(n.Way(log, credentials, authority), _status))


@app.command("ls")
def ls(log: n.Log, *, credentials: n.Credentials = None, authority: n.Authority = None) -> None:
    """List subscribers, with what waits for them and what was dropped: one JSON line each."""

    async def run(site: "Site") -> None:
        from tamis.pubsub.operating import subscribers

        for found in await subscribers(site):
            _print(found)

    n.with_site(n.Way(log, credentials, authority), run)


@app.command("rm")
def rm(
    subscriber: Subscriber, log: n.Log, *, credentials: n.Credentials = None, authority: n.Authority = None
) -> None:
    """Forget a subscriber: its queue, its position and its subscriptions."""

    async def run(site: "Site") -> None:
        from tamis.pubsub.operating import knows
        from tamis.pubsub.subscriber import remove_subscriber

        await _need(await knows(site, subscriber), subscriber)
        await remove_subscriber(site.log, subscriber)

    n.with_site(n.Way(log, credentials, authority), run)


@app.command("replay")
def replay(
    subscriber: Subscriber,
    log: n.Log,
    *,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Go back so far; by default, to the oldest that is kept.")
    ] = None,
    credentials: n.Credentials = None,
    authority: n.Authority = None,
) -> None:
    """Deliver again what a subscriber has read, as far as it is kept."""

    async def run(site: "Site") -> None:
        from tamis.pubsub.operating import knows
        from tamis.pubsub.operating import replay as move_back

        await _need(await knows(site, subscriber), subscriber)
        typer.echo(f"{await move_back(site, subscriber, seconds)} events again")

    n.with_site(n.Way(log, credentials, authority), run)


@app.command("drain")
def drain(
    router: Annotated[str, typer.Argument(metavar="ROUTER", help="The router's name, as `status` shows it.")],
    log: n.Log,
    *,
    credentials: n.Credentials = None,
    authority: n.Authority = None,
) -> None:
    """Let a router finish what it has begun, give its partitions to others, and end."""

    async def run(site: "Site") -> None:
        from tamis.pubsub.operating import drain as ask

        if not await ask(site, router):
            raise UserError(f"there is no router {router}", hint="see `tamis pubsub status`")

    n.with_site(n.Way(log, credentials, authority), run)


async def _status(site: "Site") -> dict[str, Any]:
    from tamis.pubsub.operating import status

    return await status(site)


async def _need(known: bool, subscriber: str) -> None:
    if not known:
        raise UserError(f"there is no subscriber {subscriber}", hint="see `tamis pubsub ls`")


def _print(found: object) -> None:
    import json

    typer.echo(json.dumps(found))
