"""Does pruning do to real brokers what it does to simulated ones?

The thesis (Bittner 2008, section 8.3.1) ran on five machines. Here each broker is a process of its own, with
TCP between them and a log on disk, and the same subscriptions and events go through the simulator. What
clients hear must not change, and events must travel as the simulator says.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tamis.pubsub import Client, Options
from tamis_lab.experiments.bittner2008.auction_network import auction_like, expressions_of, measure, network
from tamis_lab.experiments.bittner2008.broker_processes import BrokerLine
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.simulation import Topology

PRUNED = ("--prune", "0.9", "--prune-every", "10")
AT_ONCE = 50


@dataclass(frozen=True)
class Traffic:
    """What a line of brokers did with the measured events."""

    network_load: float
    notified: float
    milliseconds: float
    """Of filtering, per published event, in all brokers together, by the clock on the wall."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Publish the same events on brokers that prune and on brokers that do not."""
    count = scale.of(small=300, paper=5_000)
    brokers = 5 if count >= 300 else 3
    auction = auction_like(count, 200_000, int(rng.integers(2**32)))
    expressions = expressions_of(auction)
    events = list(auction.events_json(2 * count))
    whole = _run_line(brokers, (), expressions, events)
    pruned = _run_line(brokers, PRUNED, expressions, events)
    simulator = network(expressions, Options(), Topology.line(brokers))
    simulated = measure(simulator, events[count:]).network_load
    rows = [
        Row("network load unpruned", 0.08, whole.network_load),
        Row("network load pruned", 0.17, pruned.network_load, "paper: after all pruning, by occurrence"),
        Row("network load simulated, unpruned", None, simulated),
        Row(
            "network load, processes / simulated", None, whole.network_load / simulated if simulated else 1.0
        ),
        Row("notifications, pruned / unpruned", 1.0, pruned.notified / max(1.0, whole.notified)),
        Row("filter time, pruned / unpruned", None, pruned.milliseconds / whole.milliseconds),
    ]
    note = (
        f"{brokers} processes in a line, {count:,} subscriptions, {count:,} events; production index. The "
        "loads of the paper are those of its many subscriptions. What is checked here is that processes "
        "forward what the simulator says, and that clients hear the same with pruning and without."
    )
    return Result(rows, note=note)


def _run_line(brokers: int, options: tuple[str, ...], expressions: list[str], events: list[str]) -> Traffic:
    with tempfile.TemporaryDirectory() as folder, BrokerLine(brokers, Path(folder), options) as line:
        return asyncio.run(_drive(line, expressions, events))


async def _drive(line: BrokerLine, expressions: list[str], events: list[str]) -> Traffic:
    await line.until_ready()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client("127.0.0.1", port, f"client{place}"))
            for place, port in enumerate(line.ports)
        ]
        hearing = [asyncio.create_task(_hear(client)) for client in clients]
        for start in range(0, len(expressions), AT_ONCE):
            await asyncio.gather(
                *(
                    clients[number % len(clients)].subscribe(f"s{number}", expressions[number])
                    for number in range(start, min(start + AT_ONCE, len(expressions)))
                )
            )
        half = len(events) // 2
        await _publish(clients, events[:half])
        before = await _quiet(line)
        await _publish(clients, events[half:])
        after = await _quiet(line)
        for task in hearing:
            task.cancel()
    grown = {name: after[name] - before[name] for name in after}
    published = grown["published"]
    return Traffic(
        (grown["filtered"] - published) / published / (len(line.ports) - 1),
        grown["notified"],
        1_000 * grown["filter_seconds"] / published,
    )


async def _publish(clients: list[Client], events: list[str]) -> None:
    for number, event in enumerate(events):
        await clients[number % len(clients)].publish(event)


async def _quiet(line: BrokerLine) -> dict[str, float]:
    """The counters once nothing changes them any more."""
    before: dict[str, float] = {}
    while True:
        now = await asyncio.to_thread(line.counters)
        if now == before and not now["waiting_events"]:
            return now
        before = now
        await asyncio.sleep(0.3)


async def _hear(client: Client) -> None:
    async for note in client:
        if hasattr(note, "number"):
            client.acknowledge(note.number)


EXPERIMENT = Experiment(
    name="pruning-processes",
    paper="Bittner 2008",
    figure="section 8.3.1, on processes",
    question="Does pruning do to real brokers what it does to simulated ones?",
    run=run,
)
