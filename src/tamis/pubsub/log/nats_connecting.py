"""Reaching a NATS server: connecting within a time, and certificates."""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tamis.pubsub.log.contract import LogError
from tamis.pubsub.log.nats_answers import ANSWER_SECONDS

if TYPE_CHECKING:
    from nats.aio.client import Client


async def connected(connecting: Coroutine[Any, Any, "Client"]) -> "Client":
    """The client once it is connected; `TimeoutError` if that takes too long.

    It tries again for ever, and now and then swallows that it is cancelled: it is told so until it stops.
    """
    attempt = asyncio.ensure_future(connecting)
    try:
        done, _ = await asyncio.wait({attempt}, timeout=ANSWER_SECONDS)
        if done:
            return attempt.result()
        raise TimeoutError
    finally:
        given_up = not attempt.done()
        while not attempt.done():
            attempt.cancel()
            await asyncio.wait({attempt}, timeout=0.1)
        if given_up and not attempt.cancelled() and attempt.exception() is None:
            await attempt.result().close()


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
