"""A router as a process: routing, housekeeping, links to neighbours, health, and a clean shutdown."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from tamis.errors import TamisError
from tamis.pubsub import keys
from tamis.pubsub.log.contract import STATE, Entry, Log
from tamis.pubsub.log.opening import open_log
from tamis.pubsub.names import token
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.router import Router
from tamis.pubsub.service.config import Config, ConfigError
from tamis.pubsub.service.web import Web
from tamis.pubsub.site import Site
from tamis.pubsub.sites.network import Network
from tamis.pubsub.sites.told import Trust

logger = logging.getLogger("tamis.router")

IDLE_SECONDS = 0.05
TROUBLE_SECONDS = 1.0


class RouterServer:
    """Runs one router until `stop`.

    >>> import tempfile
    >>> async def example(folder):
    ...     server = RouterServer(Config(f"sqlite:{folder}/site.db"))
    ...     running = asyncio.create_task(server.run())
    ...     await server.ready.wait()
    ...     server.stop()
    ...     await running
    ...     return server.router.leases
    >>> asyncio.run(example(tempfile.mkdtemp()))
    {}
    """

    router: Router
    network: Network
    retention: Retention
    web: Web | None = None

    def __init__(self, config: Config) -> None:
        """Take a config; nothing is opened before `run`."""
        self.config = config
        self.ready = asyncio.Event()
        """Set once the subscriptions are read."""
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Finish the batch at hand, give the partitions back, and end."""
        self._stopping.set()
        if hasattr(self, "router"):
            self.router.stop()

    async def run(self) -> None:
        """Run until `stop` is called; an error that no waiting helps ends it."""
        config = self.config
        site = await Site.open(
            config.log,
            name=config.site,
            partitions=config.partitions,
            most_bytes=config.most_bytes,
            credentials=config.credentials,
            authority=config.authority,
        )
        try:
            if site.name != config.site:
                raise ConfigError(f"the log is that of the site {site.name}, not of {config.site}")
            await self._run(site)
        finally:
            await site.close()

    async def _run(self, site: Site) -> None:
        config = self.config
        name = config.name or f"router-{os.getpid()}-{os.urandom(3).hex()}"
        self.router = Router(
            site.log,
            site.settings,
            name=name,
            batch=config.batch,
            lease_seconds=config.lease_seconds,
            snapshot=Path(config.snapshot) if config.snapshot else None,
        )
        self.retention = Retention(site.log, site.settings, self.router.table, self.router.counters)
        self.network = Network(
            site.log,
            site.settings,
            self.router.table,
            {name: self._opening(url) for name, url in config.neighbours.items()},
            self.router.counters,
            generalising=config.interest,
            link_seconds=config.link_seconds,
            link_bytes=config.link_bytes,
            link_keep_seconds=config.link_keep_seconds,
            trust=Trust(config.relays, config.told_bytes, config.told_sites),
            arrivals=self.router.arrivals,
        )
        await self.write_grants(site.log)
        if config.listen is not None:
            self.web = Web(config.listen, self)
            logger.info("listening", extra={"address": self.web.address})
        await self.router.table.catch_up()
        logger.info(
            "ready", extra={"router": name, "site": site.name, "subscriptions": len(self.router.table.index)}
        )
        self.ready.set()
        if self._stopping.is_set():
            self.router.stop()
        others = [
            asyncio.create_task(self._leading(self.network.step, IDLE_SECONDS)),
            asyncio.create_task(self._leading(self.retention.tidy, config.housekeeping_seconds)),
            asyncio.create_task(self._watching()),
        ]
        try:
            await self.router.run()
        finally:
            self._stopping.set()
            await asyncio.gather(*others, return_exceptions=True)
            self._save()
            await self.network.close()
            if self.web is not None:
                self.web.close()
            logger.info("stopped", extra={"counters": vars(self.router.counters)})

    async def write_grants(self, log: Log) -> None:
        """Write down what clients may have, as the config says; others' grants stay."""
        if self.config.grants:
            entries = [
                Entry(keys.GRANT, token(name), grant.body()) for name, grant in self.config.grants.items()
            ]
            await log.append(STATE, entries)

    async def reload(self, config: Config) -> None:
        """Take new grants and neighbours' addresses without a restart; the log and the site stay."""
        self.config = config
        await self.write_grants(self.router.log)
        self.network.reconnect({name: self._opening(url) for name, url in config.neighbours.items()})
        logger.info("reloaded")

    def _opening(self, url: str) -> Callable[[], Awaitable[Log]]:
        async def opening() -> Log:
            return await open_log(url, credentials=self.config.credentials, authority=self.config.authority)

        return opening

    async def _leading(self, work: Callable[[], Awaitable[int | None]], seconds: float) -> None:
        """Do what only one router of a site does: the one that has partition 0."""
        while not self._stopping.is_set():
            pause = seconds
            if 0 in self.router.leases and not self.router.table.is_lost:
                try:
                    if await work():
                        continue
                except TamisError as error:
                    logger.warning("again later", extra={"error": str(error)})
                    pause = TROUBLE_SECONDS
                except Exception:  # a fault of ours must not end for ever what only one router does
                    logger.exception("again later")
                    pause = TROUBLE_SECONDS
            await self._pause(pause)

    async def _watching(self) -> None:
        """Snapshots, and an operator who wants this router to end."""
        next_snapshot = asyncio.get_running_loop().time() + self.config.snapshot_seconds
        while not self._stopping.is_set():
            await self._pause(0.5)
            if (keys.DRAIN, token(self.router.name)) in self.router.table.others:
                logger.info("draining, as an operator wants")
                self.stop()
            elif asyncio.get_running_loop().time() >= next_snapshot:
                self._save()
                next_snapshot = asyncio.get_running_loop().time() + self.config.snapshot_seconds

    def _save(self) -> None:
        """A snapshot only makes the next start faster: a full disk is no reason to end."""
        try:
            self.router.table.save()
        except (OSError, TamisError) as error:
            logger.warning("no snapshot", extra={"error": str(error)})

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    @property
    def is_ready(self) -> bool:
        """Whether subscriptions are read and the log answers."""
        return self.ready.is_set() and not self._stopping.is_set() and self.router.counters.trouble is None
