"""Keys and passwords: who can read the file that they are in, and what errors and logs say of them."""

import os
import re
import stat
from pathlib import Path

from tamis.pubsub.log.contract import LogError


def without_password(url: str) -> str:
    """A URL as it may be shown.

    >>> without_password("nats://ann:secret@h1:4222,h2:4222/site"), without_password("sqlite:site@home.db")
    ('nats://***@h1:4222,h2:4222/site', 'sqlite:site@home.db')
    >>> without_password("nats://ann:se/c?r#t@h1,bob:other@h2/site")
    'nats://***@h2/site'
    """
    return re.sub(r"//.*@", "//***@", url)


def has_password(url: str) -> bool:
    """Whether a URL says who we are.

    >>> has_password("nats://ann:secret@h1:4222/site"), has_password("nats://h1:4222/site")
    (True, False)
    """
    return without_password(url) != url


def check_private(path: str | Path, what: str) -> None:
    """Refuse a file with a secret that every user of this machine can read or write.

    >>> check_private("/there/is/none", "a key")
    """
    if os.name != "posix":
        return  # there, other rules say who may read a file
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # whoever opens it says why it cannot
    if stat.S_ISREG(mode) and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise LogError(
            f"every user of this machine can read or change {path}, which has {what}: chmod o-rwx {path}"
        )
