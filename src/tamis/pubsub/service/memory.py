"""Sparing Python's cyclic garbage collector what a router keeps.

A router makes many objects for every batch, so the collector runs often, and each of its full runs looks at
all subscriptions and all that other sites want. It finds nothing there: what they leave behind when they are
removed has no cycles. Frozen objects are not looked at.

A batch has no cycles either, and its objects are gone when the next one comes. Python would look for cycles
after each 700 objects, a hundred times in one batch.
"""

import asyncio
import gc

FIRST_SECONDS = 60.0
EVERY_SECONDS = 3_600.0
NEW_OBJECTS = 50_000
"""The collector runs after so many: about what a batch makes."""


def freeze() -> None:
    """Collect everything once, and spare what is left from now on; look at what is new less often."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


async def keep_frozen(ready: asyncio.Event) -> None:
    """Freeze what was read at the start, what was made of it, and later what is still there."""
    await ready.wait()
    freeze()
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        freeze()
        await asyncio.sleep(EVERY_SECONDS)
