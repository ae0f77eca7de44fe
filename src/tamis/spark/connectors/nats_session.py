"""A NATS client for code that is not asynchronous: tasks of Spark, and the driver between micro-batches.

The client runs on its own thread, so that it answers the server's pings even when it is idle.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tamis._extras import missing_extra
from tamis.errors import ArgumentError, TamisError

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

T = TypeVar("T")

DEFAULT_SERVER = "nats://127.0.0.1:4222"
DEFAULT_TIMEOUT = 10.0


class NatsError(TamisError):
    """A NATS server that cannot be reached, or that refuses what it is asked.

    >>> issubclass(NatsError, TamisError)
    True
    """


class NatsSession:
    """A connection to JetStream; use it in a `with` statement.

    The options are those of the data source: `servers`, `user`, `password`, `token`, `credentials` (a file)
    and `timeout` in seconds.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        """Remember how to connect."""
        self._servers = [part.strip() for part in options.get("servers", DEFAULT_SERVER).split(",")]
        self.timeout = float(options.get("timeout", DEFAULT_TIMEOUT))
        names = {"user": "user", "password": "password", "token": "token", "credentials": "user_credentials"}
        self._identity = {ours: options[name] for name, ours in names.items() if name in options}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tamis-nats", daemon=True)

    def __enter__(self) -> "NatsSession":
        """Connect."""
        try:
            import nats  # noqa: PLC0415 - an extra
        except ImportError as missing:
            raise ArgumentError(missing_extra('the format "nats"', "nats")) from missing
        self._thread.start()
        try:
            self._client = self.wait(
                nats.connect(
                    servers=self._servers,
                    connect_timeout=self.timeout,
                    max_reconnect_attempts=3,
                    allow_reconnect=True,
                    error_cb=_ignore,
                    **self._identity,
                )
            )
        except Exception as error:
            self._stop()
            reason = str(error) or type(error).__name__
            raise NatsError(f"cannot connect to NATS at {', '.join(self._servers)}: {reason}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Disconnect."""
        try:
            self.wait(self._client.close())
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the client's thread and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def jetstream(self) -> "JetStreamContext":
        """The JetStream of the connection; its coroutines run through `wait`."""
        stream: JetStreamContext = self._client.jetstream(timeout=self.timeout)
        return stream

    def stream(self, name: str) -> "StreamInfo":
        """What the server knows of a stream."""
        from nats.js.errors import Error, NotFoundError  # noqa: PLC0415 - an extra

        try:
            return self.wait(self.jetstream.stream_info(name))
        except NotFoundError:
            raise NatsError(
                f"{', '.join(self._servers)} has no stream {name!r}; make one with "
                f"`nats stream add {name} --subjects ...`"
            ) from None
        except Error as error:
            raise NatsError(f"cannot look at the stream {name!r}: {error}") from error


async def _ignore(_error: Exception) -> None:
    """The client reports every lost connection here; what matters comes back as the result of a call."""
