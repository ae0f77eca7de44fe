"""A site: one log and its users. Programs start here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    QUEUES,
    STATE,
    STATE_IS_GONE,
    Entry,
    FencedError,
    Log,
    LogError,
    StreamLostError,
)
from tamis.pubsub.log.opening import open_log
from tamis.pubsub.names import check_name
from tamis.pubsub.publisher import MOST_EVENT_BYTES, Publisher
from tamis.pubsub.records import QueueLimits, RecordError, Settings
from tamis.pubsub.subscriber import Subscriber

DEFAULT_PARTITIONS = 4


class Site:
    """A site's log, opened; made by `connect`."""

    def __init__(self, log: Log, settings: Settings) -> None:
        """Use `connect` or `Site.open` instead."""
        self.log = log
        self.settings = settings

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        name: str = "main",
        partitions: int = DEFAULT_PARTITIONS,
        most_bytes: int | None = None,
        credentials: str | None = None,
        authority: str | None = None,
    ) -> "Site":
        """Open a site; the first to open it sets the name and the partitions."""
        wanted = Settings(check_name("site", name), partitions)
        try:
            Settings.read(wanted.body())
        except RecordError as error:
            raise LogError(str(error)) from None
        log = await open_log(url, most_bytes=most_bytes, credentials=credentials, authority=authority)
        try:
            return cls(log, await _settings(log, wanted))
        except BaseException:
            await log.close()
            raise

    @property
    def name(self) -> str:
        """The site's name among others."""
        return self.settings.site

    async def publisher(
        self, name: str, *, timeout: float = 30.0, most_event_bytes: int = MOST_EVENT_BYTES
    ) -> Publisher:
        """A publisher of that name, with its own session."""
        return Publisher(self.log, self.settings, name, timeout=timeout, most_event_bytes=most_event_bytes)

    async def subscriber(self, name: str, limits: QueueLimits | None = None) -> Subscriber:
        """The subscriber of that name, which takes over its queue."""
        return await Subscriber(self.log, self.settings, name, limits).open()

    async def close(self) -> None:
        """Close the log."""
        await self.log.close()


async def _settings(log: Log, wanted: Settings) -> Settings:
    while True:
        found = (await log.last(STATE, [keys.SETTINGS])).get(keys.SETTINGS)
        if found is not None:
            return Settings.read(found.body)
        if await log.end(STATE) or await log.end(QUEUES):
            # Others were here: they have just fixed the settings, or somebody has removed them.
            if keys.SETTINGS in await log.last(STATE, [keys.SETTINGS]):
                continue
            raise StreamLostError(STATE_IS_GONE)
        try:
            await log.append(STATE, [Entry(*keys.SETTINGS, wanted.body())], {keys.SETTINGS: 0})
        except FencedError:
            continue  # somebody else has just fixed them


@asynccontextmanager
async def connect(
    url: str,
    *,
    name: str = "main",
    partitions: int = DEFAULT_PARTITIONS,
    most_bytes: int | None = None,
    credentials: str | None = None,
    authority: str | None = None,
) -> AsyncIterator[Site]:
    """Open a site for a while; see `open_log` for URLs.

    >>> import asyncio, tempfile
    >>> async def example(folder):
    ...     async with connect(f"sqlite:{folder}/site.db") as site:
    ...         publisher = await site.publisher("bob")
    ...         return await publisher.publish([{"price": 12}, {"price": 15}])
    >>> asyncio.run(example(tempfile.mkdtemp()))
    [1, 2]
    """
    site = await Site.open(
        url,
        name=name,
        partitions=partitions,
        most_bytes=most_bytes,
        credentials=credentials,
        authority=authority,
    )
    try:
        yield site
    finally:
        await site.close()
