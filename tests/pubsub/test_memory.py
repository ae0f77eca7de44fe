"""A router keeps what it has read from the cyclic garbage collector; new garbage is collected later."""

import asyncio
import gc
import weakref

from pubsub.logs import run
from tamis.pubsub.service import memory


class Cycle:
    def __init__(self) -> None:
        self.own = self


def test_what_was_read_is_frozen_once_it_is_there_and_cycles_are_collected_later() -> None:
    """Fault: a connection that was frozen and is made again leaves cycles behind, for ever."""

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(memory.keep_frozen(ready))
        await asyncio.sleep(0)
        assert gc.get_freeze_count() == 0
        cycle = Cycle()
        gone = weakref.ref(cycle)
        ready.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert gc.get_freeze_count() > 0
        del cycle
        gc.collect()
        assert gone() is not None
        memory.freeze()
        assert gone() is None
        task.cancel()

    gc.unfreeze()  # the test runner has frozen what it imported
    before = gc.get_threshold()
    try:
        run(main)
        assert gc.get_threshold()[0] == memory.NEW_OBJECTS
    finally:
        gc.freeze()
        gc.set_threshold(*before)
