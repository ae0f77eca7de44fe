"""Brokers in separate processes, for a simulator that carries their messages.

Each process runs the same state machine; inputs and effects cross a pipe. The simulator cannot look into
such a broker, so it runs without its checks.
"""

import multiprocessing
import time
from collections.abc import Iterable, Mapping
from typing import Any

from tamis_lab.brokers import Broker, Options
from tamis_lab.brokers.counters import Counters
from tamis_lab.brokers.effects import Effect


class BrokerProcess:
    """A broker in a process; what the simulator needs of one."""

    def __init__(
        self,
        name: str,
        neighbours: Iterable[str],
        options: Options | None = None,
        stored: Mapping[str, Any] | None = None,
        stopwatch: object = None,
    ) -> None:
        """Start it; a stopwatch cannot cross the pipe, the process uses its own."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, name, list(neighbours), options, dict(stored or {}))
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.idle = True
        self.counters = Counters()

    def handle(self, input: Any, now: float) -> list[Effect]:
        """Hand an input over; returns the effects."""
        self._pipe.send((input, now))
        effects: list[Effect]
        effects, self.idle, counters = self._pipe.recv()
        self.counters = Counters(**counters)
        return effects

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


def _serve(pipe: Any, name: str, neighbours: list[str], options: Options, stored: dict[str, Any]) -> None:
    broker = Broker(name, neighbours, options, stored, time.perf_counter)
    while True:
        try:
            input, now = pipe.recv()
        except EOFError:
            return
        pipe.send((broker.handle(input, now), broker.idle, broker.counters.as_dict()))
