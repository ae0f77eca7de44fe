"""`tamis broker`: one broker of a network, on TCP."""

from pathlib import Path
from typing import Annotated

import typer


def broker(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The broker's name, unique in the network.")],
    *,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on; port 0 takes a free one.")] = (
        "127.0.0.1:7001"
    ),
    neighbour: Annotated[
        list[str] | None,
        typer.Option("--neighbour", "-n", help="NAME=HOST:PORT to connect to, or NAME to wait for."),
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder for what must survive a crash.")] = Path("tamis-data"),
    routing: Annotated[
        str, typer.Option(help="subscriptions, advertisements or flooding.")
    ] = "subscriptions",
    covering: Annotated[bool, typer.Option("--covering", help="Do not send what is covered.")] = False,
    merging: Annotated[str, typer.Option(help="off, perfect or imperfect.")] = "off",
    prune: Annotated[
        str | None, typer.Option(help="Prune routing entries: a share from 0 to 1, or `auto`.")
    ] = None,
    prune_by: Annotated[
        str, typer.Option(help="What is pruned first: accuracy, accuracy-occurrence, efficiency, ...")
    ] = "accuracy-occurrence",
    prune_every: Annotated[int, typer.Option(min=1, help="Events between two prunings.")] = 500,
    nonconforming: Annotated[
        str, typer.Option(help="What was not advertised: refuse, or count (and send everywhere).")
    ] = "refuse",
    types: Annotated[
        Path | None, typer.Option(help="JSON file of event types: type -> attribute -> kind.")
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option(help="JSON file of who may connect; everybody without one.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="TAMIS_TOKEN", help="What this broker shows to its neighbours.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="PEM file: certificate chain for TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file: private key for TLS.")] = None,
    authority: Annotated[
        Path | None, typer.Option(help="PEM file: trusted certificates; connects to neighbours with TLS.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="HOST:PORT for Prometheus.")] = None,
) -> None:
    """Run a broker until it is interrupted. Logs are JSON lines on standard error.

    `tamis broker b1 --listen :7001` and `tamis broker b2 --listen :7002 -n b1=localhost:7001`
    """
    import asyncio
    import json
    import logging
    import signal
    import ssl

    from tamis.cli.failure import UserError
    from tamis.errors import TamisError
    from tamis.pubsub.net.access import Access
    from tamis.pubsub.net.logs import JsonFormatter
    from tamis.pubsub.net.server import Address, BrokerServer, Setup
    from tamis.pubsub.options import PRUNING_MEASURES, Options, PostPruning
    from tamis.pubsub.routing import AdvertisementForwarding, EventFlooding, SubscriptionForwarding

    algorithms = {
        "subscriptions": SubscriptionForwarding(),
        "advertisements": AdvertisementForwarding(),
        "flooding": EventFlooding(),
    }
    if routing not in algorithms:
        raise UserError(f"there is no routing {routing!r}", hint=", ".join(algorithms))
    if merging not in ("off", "perfect", "imperfect"):
        raise UserError(f"there is no merging {merging!r}", hint="off, perfect or imperfect")
    if nonconforming not in ("refuse", "count"):
        raise UserError(f"--nonconforming cannot be {nonconforming!r}", hint="refuse or count")

    def address(text: str) -> Address:
        return Address.parse(text if not text.startswith(":") else f"127.0.0.1{text}")

    try:
        neighbours = {}
        for text in neighbour or []:
            of, _, where = text.partition("=")
            neighbours[of] = address(where) if where else None
        post_pruning = None
        if prune is not None:
            if prune_by not in PRUNING_MEASURES:
                raise UserError(f"there is no measure {prune_by!r}", hint=", ".join(PRUNING_MEASURES))
            post_pruning = PostPruning(
                prune_by,  # type: ignore[arg-type]
                cut_off="auto" if prune == "auto" else float(prune),
                window=prune_every,
            )
        tls = None
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate, key)
        setup = Setup(
            name,
            address(listen),
            data,
            neighbours,
            Options(
                routing=algorithms[routing],  # type: ignore[arg-type]
                covering=covering,
                merging=merging,  # type: ignore[arg-type]
                post_pruning=post_pruning,
                nonconforming=nonconforming,  # type: ignore[arg-type]
                types=json.loads(types.read_text(encoding="utf-8")) if types else {},
            ),
            Access.from_file(credentials) if credentials else Access(),
            token,
            tls,
            ssl.create_default_context(cafile=str(authority)) if authority else None,
            address(metrics) if metrics else None,
        )
    except (ValueError, OSError, TamisError) as error:
        raise UserError(str(error)) from None

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])

    async def serve() -> None:
        server = BrokerServer(setup)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.run()

    try:
        asyncio.run(serve())
    except (OSError, TamisError) as error:
        raise UserError(str(error)) from None
