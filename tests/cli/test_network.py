"""`tamis publish`, `subscribe`, `advertise` and `broker`, against a broker in a thread of its own."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Command
from pubsub.inside import Inside, on_nats, on_tcp
from pubsub.processes import BrokerProcess
from servers import free_ports
from tamis.cli.commands.broker import _pre_pruning, _routing
from tamis.cli.failure import UserError
from tamis.pubsub.broker.options import Options, PrePruning
from tamis.pubsub.routing import AdvertisementForwarding, Rendezvous


@contextlib.contextmanager
def in_thread(make: Any) -> Iterator[tuple[Inside, asyncio.AbstractEventLoop]]:
    """Run a broker on another thread, so that commands can wait for it on this one."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def wait(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    async def enter() -> tuple[Any, Inside]:
        context = make()
        return context, await context.__aenter__()

    context, broker = wait(enter())
    try:
        yield broker, loop
    finally:
        wait(context.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)


@pytest.fixture(params=["tcp", "nats"])
def broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Inside, asyncio.AbstractEventLoop, list[str]]]:
    if request.param == "nats":
        url, name = request.getfixturevalue("nats").url, f"cli-{request.node.originalname[:20]}"
        with in_thread(lambda: on_nats(name, url)) as (inside, loop):
            yield inside, loop, ["--nats", url, "--broker", name]
    else:
        with in_thread(lambda: on_tcp("b1", tmp_path)) as (inside, loop):
            yield inside, loop, ["--broker", str(inside.address)]


def subscriptions(broker: Inside) -> list[str]:
    clients = broker.server._broker.clients.values()
    return [id for client in clients for id in client.subscriptions]


def test_publish_subscribe_and_advertise(tamis: Command, broker: Any) -> None:
    inside, loop, way = broker

    async def publish_once_subscribed() -> None:
        while "cli" not in subscriptions(inside):
            await asyncio.sleep(0.01)
        async with inside.client("bob") as bob:
            await bob.publish({"title": "Émile", "price": 12})

    publishing = asyncio.run_coroutine_threadsafe(publish_once_subscribed(), loop)
    heard = tamis("subscribe", "price < 15", "--count", 1, "--name", "ann", *way)
    publishing.result(60)
    assert json.loads(heard.out) == {"number": 1, "type": None, "event": {"title": "Émile", "price": 12}}
    assert heard.err == "subscribed as ann/cli; ends after 1 notification\n"
    assert subscriptions(inside) == []

    assert tamis("advertise", "price > 3", "--name", "eve", *way).err == "advertised as eve/cli\n"
    refused = tamis("publish", '{"price": 2}', "--name", "eve", *way)
    assert refused.code == 2
    assert "conforms to no advertisement of eve, of which there are 1" in refused.err
    assert tamis("advertise", "--withdraw", "--name", "eve", *way).err == "withdrawn as eve/cli\n"
    published = tamis("publish", "--name", "eve", *way, stdin=b'{"price": 2}\n\n{"price": 3}\n')
    assert published.out == "1\n2\n"


@pytest.mark.parametrize("broker", ["tcp"], indirect=True)
def test_of_many_events_the_one_that_is_wrong_is_named(tamis: Command, broker: Any) -> None:
    _, _, way = broker
    published = tamis("publish", *way, stdin=b'{"x": 1}\n\n{x: 2}\n{"x": 3}\n')
    assert (published.out, published.code) == ("1\n", 2)
    assert "line 3 of standard input: an event is a JSON object" in published.err
    published = tamis("publish", '{"x": 4}', "5", *way)
    assert (published.out, published.code) == ("2\n", 2)
    assert "event 2: " in published.err


@pytest.mark.parametrize("broker", ["tcp"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_subscription(broker: Any, number: signal.Signals) -> None:
    inside, _, way = broker
    command = [sys.executable, "-m", "tamis.cli", "subscribe", "x = 1", *way]
    # A shell lets what it runs in the background ignore Ctrl-C, and the command would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with started as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "subscribed as subscriber/cli; ends with Ctrl-C\n"
        assert subscriptions(inside) == ["cli"]
        process.send_signal(number)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 128 + number
    assert subscriptions(inside) == []


@pytest.mark.parametrize("broker", ["tcp"], indirect=True)
def test_a_reader_that_has_had_enough_ends_the_subscription(broker: Any) -> None:
    inside, loop, way = broker
    command = [sys.executable, "-m", "tamis.cli", "subscribe", "x = 1", *way]

    async def publish() -> None:
        async with inside.client("bob") as bob:
            await bob.publish({"x": 1})

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        process.stderr.readline()
        process.stdout.close()
        asyncio.run_coroutine_threadsafe(publish(), loop).result(60)
        assert process.stderr.read() == ""
        assert process.wait() == 0
    assert subscriptions(inside) == []


def test_a_peer_that_hangs_up_does_not_end_a_broker(tmp_path: Path) -> None:
    """As it would if a broken pipe ended this command as it ends others."""
    broker = BrokerProcess("b1", free_ports(1)[0], tmp_path)
    with broker:
        asyncio.run(broker.until_ready())
        status = Path(f"/proc/{broker.pid}/status").read_text()
        ignored = int(status.split("SigIgn:")[1].split()[0], 16)
        assert ignored & (1 << (signal.SIGPIPE - 1))


def test_what_is_wrong_is_said(tamis: Command, tmp_path: Path) -> None:
    cases = {
        ("advertise",): "what is to be advertised?",
        ("publish", "{}", "--nats", "nats://127.0.0.1:1"): "which broker on NATS?",
        ("publish", "{}", "--broker", "nowhere"): "'nowhere' is no address; write HOST:PORT",
        ("publish", "{}", "--authority", tmp_path / "no.pem"): "cannot read the certificates in",
        ("broker", "b 1"): "'b 1' is no name for a broker",
        ("broker", "b1", "-n", "b1"): "the neighbours of b1 are others, each named once",
        ("broker", "b1", "--prune", "2"): "--prune cannot be '2'",
        ("broker", "b1", "--pre-prune", "none"): "--pre-prune cannot be 'none'",
        ("broker", "b1", "--pre-prune", "0"): "--pre-prune cannot be '0'",
        ("broker", "b1", "-n", "b2", "--pre-prune", "b3=2"): "b3 is no neighbour",
        ("broker", "b1", "--key", "x"): "--key without --certificate",
        ("broker", "b1", "--routing", "random"): "there is no routing 'random'",
        ("broker", "b1", "--rendezvous", "b2"): "--rendezvous means nothing to subscriptions",
    }
    for arguments, reason in cases.items():
        finished = tamis(*arguments)
        assert finished.code == 2
        assert reason in finished.err


def test_rendezvous_from_the_command_line() -> None:
    assert _routing("advertisements", [], "b1", []) == AdvertisementForwarding()
    assert _routing("rendezvous", ["book=b2", "car=b1", "b3"], "b1", ["b2", "b3"]) == Rendezvous(
        {"book": "b2", "car": None}, "b3"
    )
    with pytest.raises(UserError, match="b9 is neither b1 nor a neighbour of it"):
        _routing("rendezvous", ["b9"], "b1", ["b2"])
    with pytest.raises(UserError, match="needs one way for all types without their own"):
        _routing("rendezvous", ["book=b2"], "b1", ["b2"])


def test_pre_pruning_from_the_command_line() -> None:
    assert _pre_pruning([], ["b2"]) is None
    assert _pre_pruning(["4", "b2=1", "b3=off"], ["b2", "b3"]) == PrePruning(
        4, neighbours={"b2": 1, "b3": None}
    )
    assert _pre_pruning(["b2=1"], ["b2"]) == PrePruning(None, neighbours={"b2": 1})


def test_events_meet_at_the_rendezvous_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        def options(name: str, *neighbours: str) -> Options:
            return Options(routing=_routing("rendezvous", ["b2"], name, list(neighbours)))

        async with on_tcp("b2", tmp_path, {"b1": None, "b3": None}, options=options("b2")) as two:
            towards = {"b2": two.address}
            async with (
                on_tcp("b1", tmp_path, towards, options=options("b1", "b2")) as one,
                on_tcp("b3", tmp_path, towards, options=options("b3", "b2")) as three,
                one.client("ann") as ann,
                three.client("bob") as bob,
            ):
                await bob.advertise("a", "price > 3")
                await ann.subscribe("s", "price < 15")
                await bob.publish({"price": 12})
                note = await anext(aiter(ann))
                assert note.event == {"price": 12}

    asyncio.run(scenario())
