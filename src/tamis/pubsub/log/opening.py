"""Opens the log that a URL names."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tamis.pubsub.log.contract import Log, LogError
from tamis.pubsub.log.secrets import without_password
from tamis.pubsub.names import check_name, is_plain


async def open_log(
    url: str, *, most_bytes: int | None = None, credentials: str | None = None, authority: str | None = None
) -> Log:
    """Open a site's log, or make it.

    `sqlite:PATH` is a file. `nats://HOST:PORT/SITE` are streams named after the site, on NATS servers with
    JetStream; several servers are separated by commas, `?replicas=3` keeps each stream on three of them, and
    `tls://` needs `authority`, a PEM file. `credentials` is a credentials file of NATS, and
    `?certificate=FILE` names a PEM file with a client's certificate and its key. Answers come to subjects
    below `_INBOX`, or below `?inbox=NAME`, which a server can keep from other clients. `most_bytes` limits
    what the log may take: beyond it, appending raises `LogFullError`.

    >>> import asyncio, tempfile
    >>> async def example(folder):
    ...     log = await open_log(f"sqlite:{folder}/site.db")
    ...     try:
    ...         return await log.end("events")
    ...     finally:
    ...         await log.close()
    >>> asyncio.run(example(tempfile.mkdtemp()))
    0
    """
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest and "\0" not in rest:
        from tamis.pubsub.log.sqlite import SqliteLog  # noqa: PLC0415

        path = rest[2:] if rest.startswith("///") else rest
        return await SqliteLog.open(Path(path), most_bytes=most_bytes)
    if scheme in ("nats", "tls"):
        from tamis.pubsub.log.nats import NatsLog  # noqa: PLC0415 - an extra

        try:
            parts = urlsplit(url)
        except ValueError:
            raise LogError(f"cannot open {without_password(url)}: it is no URL") from None
        site = check_name("site", parts.path.strip("/") or "main")
        options = parse_qs(parts.query)
        try:
            replicas = int(options.pop("replicas", ["1"])[0])
        except ValueError:
            replicas = 0
        certificate = options.pop("certificate", [None])[0]
        inbox = options.pop("inbox", ["_INBOX"])[0]
        if options or not 1 <= replicas <= 5 or not is_plain(inbox):
            raise LogError(
                f"cannot open {without_password(url)}: after `?` only replicas=1 to 5, certificate=FILE and "
                "inbox=NAME (letters, digits, - and _) are known"
            )
        # A user and password before the first server hold for all servers that have none of their own.
        addresses = parts.netloc.split(",")
        user, at, _ = addresses[0].rpartition("@")
        servers = [f"{scheme}://{each if '@' in each else user + at + each}" for each in addresses]
        return await NatsLog.open(
            servers,
            site,
            replicas=replicas,
            most_bytes=most_bytes,
            credentials=credentials,
            authority=authority,
            certificate=certificate,
            inbox=inbox,
        )
    raise LogError(f"cannot open {without_password(url)!r}: a log is sqlite:PATH or nats://HOST:PORT/SITE")
