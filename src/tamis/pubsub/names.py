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
    if not isinstance(name, str) or not is_name(name):
        raise ArgumentError(f"a {what}'s name is 1 to 128 bytes of printable text, not {name!r}")
    return name


def is_name(value: object) -> bool:
    """Whether a value can be a name: also of what others have written, who check nothing.

    >>> is_name("ann"), is_name(""), is_name("a" * 129), is_name("\\ud800"), is_name(7)
    (True, False, False, False, False)
    """
    if not isinstance(value, str) or not value.isprintable():  # halves of surrogate pairs are not
        return False
    return 1 <= len(value.encode()) <= MOST_NAME_BYTES


def is_plain(name: str) -> bool:
    """Whether a name is a part of a key, or of a subject, as it is.

    >>> is_plain("_INBOX_ann"), is_plain("a.b"), is_plain("")
    (True, False, False)
    """
    return bool(name) and token(name) == name


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
