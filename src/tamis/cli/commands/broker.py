"""`tamis broker`: one broker of a network, on TCP or on NATS."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tamis.pubsub.broker.options import PostPruning, PrePruning
    from tamis.pubsub.net.connection import Transport
    from tamis.pubsub.net.server import Setup
    from tamis.pubsub.routing import Routing


def broker(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The broker's name, unique in the network.")],
    *,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on; port 0 takes a free one.")] = (
        "127.0.0.1:7001"
    ),
    neighbour: Annotated[
        list[str] | None,
        typer.Option(
            "--neighbour", "-n", help="NAME=HOST:PORT to connect to, or NAME to wait for; on NATS, NAME."
        ),
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder for what must survive a crash.")] = Path("tamis-data"),
    nats: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Use NATS servers with JetStream instead of --listen and --data."),
    ] = None,
    nats_credentials: Annotated[Path | None, typer.Option(help="Credentials file for NATS.")] = None,
    nats_replicas: Annotated[
        int, typer.Option(min=1, max=5, help="On how many NATS servers to keep what must survive.")
    ] = 1,
    routing: Annotated[
        str, typer.Option(help="subscriptions, advertisements, rendezvous or flooding.")
    ] = "subscriptions",
    rendezvous: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TYPE=]BROKER",
            help="With --routing rendezvous: the neighbour on the way to where a TYPE meets, or this broker "
            "itself; without TYPE, for all other types.",
        ),
    ] = None,
    covering: Annotated[bool, typer.Option("--covering", help="Do not send what is covered.")] = False,
    merging: Annotated[str, typer.Option(help="off, perfect or imperfect.")] = "off",
    prune: Annotated[
        str | None, typer.Option(help="Prune routing entries: a share from 0 to 1, or `auto`.")
    ] = None,
    prune_by: Annotated[
        str, typer.Option(help="What is pruned first: accuracy, accuracy-occurrence, efficiency, ...")
    ] = "accuracy-occurrence",
    prune_every: Annotated[int, typer.Option(min=1, help="Events between two prunings.")] = 500,
    pre_prune: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NEIGHBOUR=]PREDICATES",
            help="Prune what is sent to at most so many predicates, or `off`; NEIGHBOUR= is for that one.",
        ),
    ] = None,
    nonconforming: Annotated[
        str, typer.Option(help="What was not advertised: refuse, or count (and send everywhere).")
    ] = "refuse",
    types: Annotated[
        Path | None, typer.Option(help="JSON file of event types: type -> attribute -> kind.")
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option(help="JSON file of who may connect; everybody without one.")
    ] = None,
    allow_anyone: Annotated[
        bool, typer.Option("--allow-anyone", help="Listen beyond this machine without --credentials.")
    ] = False,
    token: Annotated[
        str | None, typer.Option(envvar="TAMIS_TOKEN", help="What this broker shows to its neighbours.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="PEM file: certificate chain for TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file: private key for TLS.")] = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="PEM file: trusted certificates; TLS to neighbours, or to NATS."),
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="HOST:PORT for Prometheus.")] = None,
) -> None:
    """Run a broker until it is interrupted. Logs are JSON lines on standard error.

    Two neighbours name each other: `tamis broker b1 --listen :7001 -n b2` and
    `tamis broker b2 --listen :7002 -n b1=localhost:7001`

    On NATS: `tamis broker b1 -n b2 --nats nats://localhost:4222` and
    `tamis broker b2 -n b1 --nats nats://localhost:4222`
    """
    import asyncio
    import json

    from tamis.cli.network_options import survive_broken_pipes, trusting
    from tamis.errors import TamisError
    from tamis.pubsub.broker.options import Options
    from tamis.pubsub.net.access import Access
    from tamis.pubsub.net.server import Setup
    from tamis.pubsub.net.tcp import Address, TcpTransport

    if merging not in ("off", "perfect", "imperfect"):
        raise UserError(f"there is no merging {merging!r}", hint="off, perfect or imperfect")
    if nonconforming not in ("refuse", "count"):
        raise UserError(f"--nonconforming cannot be {nonconforming!r}", hint="refuse or count")
    neighbours = [text.partition("=")[::2] for text in neighbour or []]

    def transport() -> "Transport":
        if nats is not None:
            from tamis.pubsub.net.nats_peer import NatsPeer
            from tamis.pubsub.net.nats_transport import NatsTransport

            known = str(nats_credentials) if nats_credentials else None
            return NatsTransport(name, NatsPeer(nats, name, trusting(authority), known), nats_replicas)
        addresses = {of: Address.parse(where) if where else None for of, where in neighbours}
        identity = _certificate(certificate, key)
        return TcpTransport(name, Address.parse(listen), data, addresses, identity, trusting(authority))

    try:
        setup = Setup(
            name,
            tuple(of for of, _ in neighbours),
            Options(
                routing=_routing(routing, rendezvous or [], name, [of for of, _ in neighbours]),
                covering=covering,
                merging=merging,  # type: ignore[arg-type]
                pre_pruning=_pre_pruning(pre_prune or [], [of for of, _ in neighbours]),
                post_pruning=_post_pruning(prune, prune_by, prune_every),
                nonconforming=nonconforming,  # type: ignore[arg-type]
                types=json.loads(types.read_text(encoding="utf-8")) if types else {},
            ),
            Access.from_file(credentials) if credentials else Access(),
            token,
            Address.parse(metrics) if metrics else None,
            allow_anyone=allow_anyone,
        )
        survive_broken_pipes()
        asyncio.run(_run(setup, transport))
    except (ValueError, OSError, TamisError) as error:
        raise UserError(str(error)) from None


def _routing(algorithm: str, rendezvous: list[str], name: str, neighbours: list[str]) -> "Routing":
    from tamis.pubsub.routing import (
        AdvertisementForwarding,
        EventFlooding,
        Rendezvous,
        SubscriptionForwarding,
    )

    algorithms: dict[str, Routing] = {
        "subscriptions": SubscriptionForwarding(),
        "advertisements": AdvertisementForwarding(),
        "flooding": EventFlooding(),
    }
    if rendezvous and algorithm != "rendezvous":
        raise UserError(f"--rendezvous means nothing to {algorithm}", hint="add --routing rendezvous")
    if algorithm in algorithms:
        return algorithms[algorithm]
    if algorithm != "rendezvous":
        raise UserError(f"there is no routing {algorithm!r}", hint=", ".join([*algorithms, "rendezvous"]))
    towards: dict[str, str | None] = {}
    default: list[str | None] = []
    for text in rendezvous:
        type, _, way = text.rpartition("=")
        if way not in [name, *neighbours]:
            raise UserError(
                f"--rendezvous {text}: {way or 'nothing'} is neither {name} nor a neighbour of it",
                hint="name the neighbour on the way to the rendezvous broker",
            )
        if type:
            towards[type] = None if way == name else way
        else:
            default.append(None if way == name else way)
    if len(default) != 1:
        raise UserError(
            "rendezvous routing needs one way for all types without their own",
            hint="add --rendezvous BROKER, the same rendezvous broker being meant at all brokers",
        )
    return Rendezvous(towards, default[0])


def _pre_pruning(settings: list[str], neighbours: list[str]) -> "PrePruning | None":
    from tamis.pubsub.broker.options import PrePruning

    if not settings:
        return None
    default: int | None = None
    by_neighbour: dict[str, int | None] = {}
    for text in settings:
        neighbour, _, number = text.rpartition("=")
        if number != "off" and (not number.isdecimal() or int(number) < 1):
            raise UserError(f"--pre-prune cannot be {text!r}", hint="1 or more predicates, or off")
        if neighbour and neighbour not in neighbours:
            raise UserError(
                f"--pre-prune {text}: {neighbour} is no neighbour", hint=f"add -n {neighbour} or take it out"
            )
        most = None if number == "off" else int(number)
        if neighbour:
            by_neighbour[neighbour] = most
        else:
            default = most
    return PrePruning(default, neighbours=by_neighbour)


def _post_pruning(prune: str | None, measure: str, every: int) -> "PostPruning | None":
    from tamis.pubsub.broker.options import PRUNING_MEASURES, PostPruning

    if prune is None:
        return None
    if measure not in PRUNING_MEASURES:
        raise UserError(f"there is no measure {measure!r}", hint=", ".join(PRUNING_MEASURES))
    return PostPruning(measure, cut_off=_cut_off(prune), window=every)  # type: ignore[arg-type]


def _cut_off(prune: str) -> float | Literal["auto"]:
    if prune == "auto":
        return "auto"
    try:
        share = float(prune)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UserError(f"--prune cannot be {prune!r}", hint="a share from 0 to 1, or auto")
    return share


def _certificate(chain: Path | None, key: Path | None) -> "ssl.SSLContext | None":
    import ssl

    if chain is None:
        if key is not None:
            raise UserError("--key without --certificate", hint="TLS needs both")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(chain, key)
    except OSError as error:
        raise UserError(f"cannot use the certificate {chain}: {error}") from None
    return context


async def _run(setup: "Setup", transport: "Callable[[], Transport]") -> None:
    import asyncio
    import logging
    import signal

    from tamis.pubsub.net.logs import JsonFormatter
    from tamis.pubsub.net.server import BrokerServer

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    server = BrokerServer(setup, transport())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    await server.run()
