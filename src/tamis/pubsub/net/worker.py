"""Feeds one broker: all inputs go through one queue, and effects are carried out once they are durable.

A batch of inputs is handled, its changes are saved together, and only then is anything sent that relies on
them. The queue is bounded, so that a flood of input slows its senders down instead of filling memory.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tamis.errors import TamisError
from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.effects import Effect, Persist, SetTimer
from tamis.pubsub.broker.machine import Broker
from tamis.pubsub.net.connection import Store

logger = logging.getLogger("tamis.broker")

MOST_QUEUED = 4_096
BATCH = 512


class Worker:
    """A broker's queue, store and timers; `carry_out` is given every other effect."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        carry_out: Callable[[Effect], None],
        refuse: Callable[[i.Input], None],
    ) -> None:
        """`refuse` is told which input the broker could make no sense of."""
        self._broker = broker
        self._store = store
        self._carry_out = carry_out
        self._refuse = refuse
        self._queue: asyncio.Queue[i.Input] = asyncio.Queue(MOST_QUEUED)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def put(self, input: i.Input) -> None:
        """Queue an input, waiting for a place."""
        await self._queue.put(input)

    async def finish(self) -> None:
        """Wait until all that was put has been handled, saved and carried out."""
        await self._queue.join()

    async def run(self) -> None:
        """Work until cancelled; raises `StoreError` if changes cannot be saved.

        Nothing that relies on such changes is sent: nobody is told that they are kept.
        """
        try:
            while True:
                batch = [await self._queue.get()]
                while len(batch) < BATCH and not self._queue.empty():
                    batch.append(self._queue.get_nowait())
                changes, effects = self._handle(batch)
                if changes:
                    await self._store.save(changes)
                for effect in effects:
                    if isinstance(effect, SetTimer):
                        self._set_timer(effect)
                    else:
                        self._carry_out(effect)
                for _ in batch:
                    self._queue.task_done()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _handle(self, batch: list[i.Input]) -> tuple[dict[str, Any], list[Effect]]:
        now = asyncio.get_running_loop().time()
        changes: dict[str, Any] = {}
        effects: list[Effect] = []
        for input in batch:
            try:
                handled = self._broker.handle(input, now)
            except TamisError as error:
                logger.error("input refused", extra={"input": type(input).__name__, "error": str(error)})
                self._refuse(input)
                continue
            for effect in handled:
                if isinstance(effect, Persist):
                    changes.update(effect.changes)
                else:
                    effects.append(effect)
        return changes, effects

    def _set_timer(self, effect: SetTimer) -> None:
        if effect.name in self._timers:
            self._timers[effect.name].cancel()
        loop = asyncio.get_running_loop()
        self._timers[effect.name] = loop.call_at(effect.at, self._fire, effect.name)

    def _fire(self, name: str) -> None:
        try:
            self._queue.put_nowait(i.TimerFired(name))
        except asyncio.QueueFull:
            self._timers[name] = asyncio.get_running_loop().call_later(0.1, self._fire, name)
