"""Names of sites, publishers, subscribers and subscriptions, and how they become parts of keys."""

import re
from functools import lru_cache

from tamis.errors import ArgumentError

MOST_NAME_BYTES = 128
_OTHER_BYTE = re.compile(rb"[^A-Za-z0-9_-]")
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


def check_name(what: str, name: object) -> str:
    """A name as it is, or an error: not empty, printable, at most 128 bytes.

    >>> check_name("subscriber", "ann")
    'ann'
    >>> check_name("subscriber", "")
    Traceback (most recent call last):
    ...
    tamis.errors.ArgumentError: a subscriber's name is 1 to 128 bytes of printable text, not ''
    """
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or not 1 <= len(name.encode("utf-8", "surrogatepass")) <= MOST_NAME_BYTES
    ):
        raise ArgumentError(f"a {what}'s name is 1 to 128 bytes of printable text, not {name!r}")
    return name


@lru_cache(maxsize=10_000)
def token(name: str) -> str:
    """A name as one part of a key: letters, digits, `-` and `_` stay, other bytes become `=XX`.

    >>> token("ann"), token("ad:7"), token("@b")
    ('ann', 'ad=3A7', '=40b')
    """
    return _OTHER_BYTE.sub(lambda found: b"=%02X" % ord(found[0]), name.encode("utf-8")).decode("ascii")


@lru_cache(maxsize=10_000)
def name_of(text: str) -> str:
    """The name that a part of a key stands for.

    >>> name_of("ad=3A7")
    'ad:7'
    >>> name_of("a.b")
    Traceback (most recent call last):
    ...
    ValueError: 'a.b' is no part of a key
    """
    if not _TOKEN.fullmatch(text):
        raise ValueError(f"{text!r} is no part of a key")
    plain = re.sub(r"=([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
    return plain.encode("latin-1").decode("utf-8")


def names_in(detail: str) -> int:
    """How many names a part of a key consists of; 0 if it is none that `token` could have made.

    >>> names_in("ann"), names_in("ann.ad=3A7"), names_in("ann."), names_in("a|b"), names_in("=FF")
    (1, 2, 0, 0, 0)
    """
    if _PLAIN.fullmatch(detail):  # nearly all, and there are millions
        return detail.count(".") + 1
    parts = detail.split(".")
    try:
        for part in parts:
            name_of(part)
    except ValueError:
        return 0
    return len(parts)
