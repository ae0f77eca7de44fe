"""The config file of a router: TOML, checked key by key, with an error that says what would be right."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import tamis
from tamis._suggest import suggestion
from tamis.errors import TamisError
from tamis.pubsub.log.contract import LogError
from tamis.pubsub.log.secrets import check_private, has_password, without_password
from tamis.pubsub.names import check_name
from tamis.pubsub.records import LINK_BYTES, LINK_KEEP_SECONDS, Grant, is_number, is_seconds, is_text_list
from tamis.pubsub.site import DEFAULT_PARTITIONS
from tamis.pubsub.sites.interest import Generalising
from tamis.pubsub.sites.told import TOLD_BYTES, TOLD_SITES

MEASURES = ("accuracy", "efficiency", "memory", "accuracy-occurrence", "accuracy-distance", "combined")


class ConfigError(TamisError, ValueError):
    """A config file cannot be used; the message names the key and what would be right.

    >>> config_of({"log": 3})
    Traceback (most recent call last):
    ...
    tamis.pubsub.service.config.ConfigError: `log` must be text, not 3
    """


@dataclass(frozen=True)
class Config:
    """What a router is told.

    >>> config_of({"log": "sqlite:site.db", "site": "paris"}).partitions
    4
    """

    log: str
    """The site's log: `sqlite:PATH` or `nats://HOST:PORT/SITE`."""
    site: str = "main"
    partitions: int = DEFAULT_PARTITIONS
    """How many routers can share the site; fixed with the log."""
    name: str | None = None
    """The router's name, unique within the site; made up if it is not given."""
    listen: str | None = None
    """HOST:PORT for /health, /ready and /metrics."""
    snapshot: str | None = None
    """A file for a faster start."""
    batch: int = 10_000
    lease_seconds: float = 10.0
    link_seconds: float = 5.0
    link_bytes: int = LINK_BYTES
    """So much each neighbour keeps for this site while it is away."""
    link_keep_seconds: float = LINK_KEEP_SECONDS
    housekeeping_seconds: float = 5.0
    snapshot_seconds: float = 60.0
    most_bytes: int | None = None
    credentials: str | None = None
    """A credentials file of NATS."""
    authority: str | None = None
    """A PEM file of trusted certificates."""
    allow_anyone: bool = False
    """Use a remote NATS server without credentials, or listen beyond this machine."""
    neighbours: dict[str, str] = field(default_factory=dict)
    """Other sites: name and log."""
    relays: dict[str, list[str]] = field(default_factory=dict)
    """By neighbour, the sites that it may speak of beside itself; one that is not named may speak of all."""
    told_bytes: int = TOLD_BYTES
    """What other sites may tell, as it is kept here."""
    told_sites: int = TOLD_SITES
    interest: Generalising = field(default_factory=Generalising)
    grants: dict[str, Grant] = field(default_factory=dict)
    """What clients may have; written to the log when the router starts, and again on SIGHUP."""


def read_config(path: Path) -> Config:
    """Read a config file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from None
    try:
        config = config_of(found)
        if any(map(has_password, [config.log, *config.neighbours.values()])):
            check_private(path, "a password")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except LogError as error:
        raise ConfigError(str(error)) from None
    return config


def _is_share(value: object) -> bool:
    return is_seconds(value) and value <= 1  # type: ignore[operator]


_TEXT = ("text", lambda value: isinstance(value, str))
_COUNT = ("a whole number above 0", lambda value: is_number(value) and value > 0)
_SECONDS = ("a number of seconds above 0", lambda value: is_seconds(value) and value > 0)
_YES = ("true or false", lambda value: isinstance(value, bool))
_KINDS: dict[str, Any] = {
    "log": _TEXT,
    "site": _TEXT,
    "partitions": ("a whole number from 1 to 256", lambda value: is_number(value) and 1 <= value <= 256),
    "name": _TEXT,
    "listen": _TEXT,
    "snapshot": _TEXT,
    "batch": ("a whole number from 1 to 10000", lambda value: is_number(value) and 1 <= value <= 10_000),
    "lease_seconds": _SECONDS,
    "link_seconds": _SECONDS,
    "link_bytes": _COUNT,
    "link_keep_seconds": _SECONDS,
    "housekeeping_seconds": _SECONDS,
    "snapshot_seconds": _SECONDS,
    "most_bytes": _COUNT,
    "credentials": _TEXT,
    "authority": _TEXT,
    "allow_anyone": _YES,
    "neighbours": (
        "a table of names and logs",
        lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    ),
    "relays": (
        "lists of sites by neighbour",
        lambda value: isinstance(value, dict) and all(map(is_text_list, value.values())),
    ),
    "told_bytes": _COUNT,
    "told_sites": _COUNT,
    "interest": ("a table", lambda value: isinstance(value, dict)),
    "grants": (
        "tables by client",
        lambda value: isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()),
    ),
}
_INTEREST_KINDS: dict[str, Any] = {
    "covering": _YES,
    "subsumption": _YES,
    "merging": ("off, perfect or imperfect", lambda value: value in ("off", "perfect", "imperfect")),
    "merge_prunings": _COUNT,
    "summaries": _COUNT,
    "predicates": _COUNT,
    "measure": (", ".join(MEASURES), lambda value: value in MEASURES),
    "pruning": ('a number from 0 to 1, or "auto"', lambda value: value == "auto" or _is_share(value)),
    "replacement": ("a number from 0 to 1", _is_share),
    "table_weight": ("a number that is not negative", is_seconds),
    "advertisements": _YES,
    "advertisement_prunings": ("a whole number", is_number),
}
_GRANT_KINDS: dict[str, Any] = {
    "filter": _TEXT,
    "attributes": (
        "a list of names",
        lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    ),
    "subscriptions": _COUNT,
    "most_bytes": _COUNT,
    "keep_seconds": _SECONDS,
}


def config_of(found: Mapping[str, Any]) -> Config:
    """Check what a config file says."""
    _check(found, _KINDS, "")
    if "log" not in found:
        raise ConfigError('`log` is missing: log = "sqlite:PATH" or "nats://HOST:PORT/SITE"')
    _check(found.get("interest", {}), _INTEREST_KINDS, "interest.")
    grants = {name: _grant(name, grant) for name, grant in found.get("grants", {}).items()}
    made: dict[str, Any] = {**found, "grants": grants, "interest": Generalising(**found.get("interest", {}))}
    config = Config(**made)
    for name in config.relays:
        if name not in config.neighbours:
            raise ConfigError(f"`relays.{name}`: there is no such neighbour")
    for name in [config.site, *config.neighbours, *(site for far in config.relays.values() for site in far)]:
        try:
            check_name("site", name)
        except TamisError as error:
            raise ConfigError(str(error)) from None
    if config.site in config.neighbours:
        raise ConfigError(f"`neighbours.{config.site}`: a site is not its own neighbour")
    if not config.allow_anyone:
        _refuse_anyone(config)
    return config


def _check(found: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> None:
    for key, value in found.items():
        if key not in kinds:
            hint = suggestion(key, list(kinds))
            raise ConfigError(f"there is no key `{where}{key}`" + (f": {hint}" if hint else ""))
        what, good = kinds[key]
        if not good(value):
            raise ConfigError(f"`{where}{key}` must be {what}, not {without_password(str(value))[:60]}")


def _grant(name: str, found: Mapping[str, Any]) -> Grant:
    _check(found, _GRANT_KINDS, f"grants.{name}.")
    if "filter" in found:
        try:
            tamis.parse(found["filter"])
        except TamisError as error:
            raise ConfigError(f"`grants.{name}.filter`: {error}") from None
    attributes = found.get("attributes")
    return Grant(**{**found, "attributes": None if attributes is None else tuple(attributes)})


def _refuse_anyone(config: Config) -> None:
    """Nobody opens a door without a lock by accident."""
    for key, url in [("log", config.log), *((f"neighbours.{n}", u) for n, u in config.neighbours.items())]:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise ConfigError(f"`{key}` is no address: {error}") from None
        is_known = config.credentials or parts.username or "certificate" in parse_qs(parts.query)
        if parts.scheme not in ("nats", "tls") or is_known:
            continue
        for address in parts.netloc.split(","):
            if not is_loopback(address.rpartition(":")[0] or address):
                raise ConfigError(
                    f"`{key}` is on another machine, and anyone may read and write it there: give "
                    "`credentials`, or a user and password in the URL, or set `allow_anyone = true`"
                )
    if config.listen is not None and not is_loopback(config.listen.rpartition(":")[0]):
        raise ConfigError(
            f"`listen` = {config.listen} is reached from other machines and asks for no password: listen on "
            "127.0.0.1, or set `allow_anyone = true` if that is meant"
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
