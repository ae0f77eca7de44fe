"""`tamis subscribe`: receive the events that satisfy an expression."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import network_options as n

if TYPE_CHECKING:
    from tamis.pubsub import Site, Subscriber

UNSUBSCRIBE_SECONDS = 5.0


def subscribe(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help='Such as "price < 15".')],
    log: n.Log,
    *,
    name: n.Name = "subscriber",
    id: Annotated[str, typer.Option(help="The id of the subscription.")] = "cli",
    priority: Annotated[
        int, typer.Option(min=0, max=9, help="What goes last when the queue is full: 9.")
    ] = 4,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="End after this many events.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the subscription there at the end.")] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for other sites to confirm.")] = 0.0,
    credentials: n.Credentials = None,
    authority: n.Authority = None,
) -> None:
    """Subscribe and print each event as one JSON line.

    It ends with the command. With --keep it stays, and events wait for the same --name.
    """
    import asyncio
    import json

    from tamis.pubsub import Gap

    async def listen(subscriber: "Subscriber") -> None:
        heard = 0
        async for item in subscriber:
            if isinstance(item, Gap):
                typer.echo(json.dumps({"gap": item.count, "reason": item.reason}))
            else:
                typer.echo(json.dumps({"number": item.number, "from": item.publisher, "event": item.event}))
                heard += 1
            await subscriber.acknowledge(item)
            if heard == count:
                return

    async def run(site: "Site") -> None:
        subscriber = await site.subscriber(name)
        known = await subscriber.subscribe(id, expression, priority=priority, wait=wait)
        end = f"after {count} event{'s' if count > 1 else ''}" if count else "with Ctrl-C"
        missing = f", not yet known to {', '.join(known.missing)}" if known.missing else ""
        typer.echo(
            f"subscribed as {name}/{id} at {', '.join(known.confirmed)}{missing}; ends {end}", err=True
        )
        try:
            await listen(subscriber)
        finally:  # also after Ctrl-C
            if not keep:
                await asyncio.wait_for(subscriber.unsubscribe(id), UNSUBSCRIBE_SECONDS)

    n.with_site(n.Way(log, credentials, authority), run)
