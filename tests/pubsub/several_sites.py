"""Several sites in one process, each with its log, a router and a network; faults come between steps."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

from pubsub import backups
from pubsub.logs import heard
from pubsub.one_thread import in_this_thread
from tamis.pubsub.log import Log, LogUnavailableError, open_log
from tamis.pubsub.records import fields
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site
from tamis.pubsub.sites.interest import Generalising
from tamis.pubsub.sites.network import Network
from tamis.pubsub.subscriber import Subscriber

TODAY = {"VERSION": fields.VERSION, "WRITTEN": fields.WRITTEN}
NEXT_RELEASE = {"VERSION": fields.VERSION + 1, "WRITTEN": fields.WRITTEN}
"""Reads a version more, and writes what today's routers can read."""


class Cuttable:
    """A log that a link has opened, and that can be cut off."""

    def __init__(self, log: Log, is_cut: Callable[[], bool]) -> None:
        self._log = log
        self._is_cut = is_cut

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        if not callable(found) or name == "close":
            return found

        async def call(*arguments: Any, **more: Any) -> Any:
            if self._is_cut():
                raise LogUnavailableError("the link is cut")
            return await found(*arguments, **more)

        return call


class Sites:
    """A graph of sites, stepped by hand."""

    def __init__(
        self,
        folder: Path,
        edges: list[tuple[str, str]],
        generalising: Generalising | None = None,
        **network: Any,
    ) -> None:
        self.folder = folder
        self.edges = edges
        self.names = sorted({name for edge in edges for name in edge})
        self.now = 0.0
        self.cut: set[frozenset[str]] = set()
        self.dead: set[str] = set()
        self.sites: dict[str, Site] = {}
        self.routers: dict[str, Router] = {}
        self.networks: dict[str, Network] = {}
        self.releases: dict[str, dict[str, int]] = {}
        """The versions of records that a site's router reads and writes, where they are not today's."""
        self._generalising = generalising
        self._network = network

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.db"

    async def __aenter__(self) -> "Sites":
        for name in self.names:
            await self.start(name)
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self.sites):
            await self.stop(name)

    async def start(self, name: str) -> None:
        site = await Site.open(f"sqlite:{self.path(name)}", name=name, partitions=2)
        in_this_thread(site.log)
        router = Router(site.log, site.settings, name=f"router-{name}", clock=lambda: self.now, batch=50)
        neighbours = {b if a == name else a for a, b in self.edges if name in (a, b)}
        self.sites[name], self.routers[name] = site, router
        self.networks[name] = Network(
            site.log,
            site.settings,
            router.table,
            {other: self._opening(name, other) for other in sorted(neighbours)},
            router.counters,
            generalising=self._generalising,
            clock=lambda: self.now,
            arrivals=router.arrivals,
            **{"patience_seconds": 500, **self._network},  # a busy machine is no fault
        )
        self.dead.discard(name)

    async def stop(self, name: str) -> None:
        self.dead.add(name)
        await self.networks.pop(name).close()
        self.routers.pop(name)
        await self.sites.pop(name).close()

    def keeping(self, name: str, log: Log | None = None) -> Retention:
        """What keeps the log of a site small."""
        router = self.routers[name]
        return Retention(log or router.log, router.settings, router.table, router.counters)

    def back_up(self, name: str) -> None:
        """Keep a copy of a site's log, for `restore`."""
        backups.back_up(self.path(name))

    async def restore(self, name: str) -> None:
        """Stop a site, put the copy of its log in place, and start it again."""
        await self.stop(name)
        await self.step()
        backups.restore(self.path(name))
        await self.start(name)

    def _opening(self, here: str, other: str) -> Callable[[], Awaitable[Log]]:
        def is_cut() -> bool:
            return other in self.dead or frozenset((here, other)) in self.cut

        async def opening() -> Log:
            if is_cut():
                raise LogUnavailableError(f"{other} is away")
            log = await open_log(f"sqlite:{self.path(other)}")
            in_this_thread(log)
            return Cuttable(log, is_cut)  # type: ignore[return-value]

        return opening

    async def step(self, seconds: float = 0.5) -> int:
        done = 0
        for name in self.names:
            if name not in self.dead:
                with mock.patch.multiple(fields, **self.releases.get(name, TODAY)):
                    done += await self.routers[name].step()
                    done += await self.networks[name].step()
        self.now += seconds
        return done

    async def settle(self, steps: int = 12) -> None:
        """Until nothing has happened for a while, which also lets signs of life grow old."""
        quiet = 0
        while quiet < steps:
            quiet = 0 if await self.step() else quiet + 1

    async def heard(self, subscriber: Subscriber) -> list[Any]:
        return await heard(subscriber)
