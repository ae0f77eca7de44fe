"""Reaching a NATS server: connecting within a time, one attempt for all who wait, and certificates."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tamis.pubsub.log.contract import LogError, LogUnavailableError
from tamis.pubsub.log.nats_answers import ANSWER_SECONDS

if TYPE_CHECKING:
    from nats.aio.client import Client


async def connected(connecting: Coroutine[Any, Any, "Client"]) -> "Client":
    """The client once it is connected; `TimeoutError` if that takes too long.

    It tries again for ever, and now and then swallows that it is cancelled: it is told so until it stops.
    """
    attempt, is_taken = asyncio.ensure_future(connecting), False
    try:
        done, _ = await asyncio.wait({attempt}, timeout=ANSWER_SECONDS)
        if not done:
            raise TimeoutError
        is_taken = True
        return attempt.result()
    finally:
        while not attempt.done():
            attempt.cancel()
            await asyncio.wait({attempt}, timeout=0.1)
        if not is_taken and not attempt.cancelled() and attempt.exception() is None:
            await attempt.result().close()


class Attempts:
    """Makes a connection again: one attempt at a time, whose end all who wait for it share."""

    def __init__(self, attempt: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`attempt` leaves nothing behind when it fails or is cancelled."""
        self._attempt = attempt
        self._running: asyncio.Task[None] | None = None
        self._is_over = False

    async def made(self) -> None:
        """Return once an attempt has succeeded, or raise what it raised."""
        if self._is_over:
            raise LogUnavailableError("this log is closed")
        if self._running is None:
            self._running = asyncio.ensure_future(self._run())
            self._running.add_done_callback(self._ended)
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        """End the attempt, if there is one, and make no other."""
        self._is_over = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        try:
            await self._attempt()
        except asyncio.CancelledError:
            if not self._is_over:
                raise
            # Who waits was not cancelled.
            raise LogUnavailableError("this log is closed") from None

    def _ended(self, attempt: asyncio.Task[None]) -> None:
        self._running = None
        if not attempt.cancelled():
            attempt.exception()  # nobody may be left who asks for it


def tls_of(authority: str | None, certificate: str | None) -> ssl.SSLContext | None:
    """Whom we trust, and who we are; None leaves both to the URL."""
    if not authority and not certificate:
        return None
    file = authority
    try:
        context = ssl.create_default_context(cafile=authority)
        file = certificate
        if certificate:
            context.load_cert_chain(certificate)
    except (OSError, ValueError) as error:
        raise LogError(f"cannot use the certificates in {file}: {error}") from None
    return context
