"""`tamis router`: one router of a site."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis.pubsub.service.config import Config


def router(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="TOML file; or use the options below.")
    ] = None,
    *,
    log: Annotated[
        str | None, typer.Option(metavar="URL", help="The site's log: sqlite:PATH or nats://HOST:PORT/SITE.")
    ] = None,
    site: Annotated[str, typer.Option(help="The site's name among others.")] = "main",
    neighbour: Annotated[
        list[str] | None, typer.Option("--neighbour", "-n", metavar="NAME=URL", help="Another site's log.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="For /health, /ready and /metrics.")
    ] = None,
) -> None:
    """Run a router until it is interrupted. Logs are JSON lines on standard error.

    Any number of them share a site: `tamis router --log sqlite:site.db` needs nothing else. SIGTERM lets it
    finish what it has begun; SIGHUP reads the config file again.
    """
    import asyncio

    from tamis.errors import TamisError
    from tamis.pubsub.service.config import config_of, read_config

    def read() -> "Config":
        if config is not None:
            if log is not None or neighbour or listen:
                raise UserError("a config file and options", hint="write the options into the file")
            return read_config(config)
        if log is None:
            raise UserError("which log?", hint="tamis router CONFIG, or --log sqlite:PATH")
        neighbours = dict(text.partition("=")[::2] for text in neighbour or [])
        found = {"log": log, "site": site, "neighbours": neighbours}
        return config_of(found | ({"listen": listen} if listen else {}))

    try:
        asyncio.run(_run(read()))
    except TamisError as error:
        raise UserError(str(error)) from None


async def _run(config: "Config") -> None:
    import asyncio
    import logging
    import signal
    import sys

    from tamis.errors import TamisError
    from tamis.pubsub.service.config import read_config
    from tamis.pubsub.service.logs import JsonFormatter
    from tamis.pubsub.service.memory import keep_frozen
    from tamis.pubsub.service.server import RouterServer

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    server = RouterServer(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    files = [argument for argument in sys.argv[2:] if Path(argument).suffix == ".toml"]

    async def reload() -> None:
        try:
            await server.reload(read_config(Path(files[0])))
        except TamisError as error:
            logging.getLogger("tamis.router").error("not reloaded", extra={"error": str(error)})

    if files:
        tasks: set[asyncio.Task[None]] = set()
        loop.add_signal_handler(signal.SIGHUP, lambda: tasks.add(asyncio.ensure_future(reload())))
    freezing = asyncio.create_task(keep_frozen(server.ready))
    try:
        await server.run()
    finally:
        freezing.cancel()
