"""The error for a missing package of an extra: one sentence, with a command that works.

The command names the packages that the metadata of Tamis lists. `pip install 'tamis[spark]'` would look for
Tamis in a package index, but it may come from a wheel or a folder.
"""

import re
from importlib.metadata import PackageNotFoundError, requires


def install_command(*extras: str) -> str:
    """The command that installs what extras bring.

    >>> install_command("nats")
    'pip install "nats-py[nkeys]>=2.9"'
    """
    try:
        listed = [requirement.partition(";") for requirement in requires("tamis") or ()]
    except PackageNotFoundError:  # run from its sources, without being installed
        listed = []
    wanted = re.compile(rf"extra == .({'|'.join(extras)}).")
    packages = [f'"{package.strip()}"' for package, _, marker in listed if wanted.search(marker)]
    if not packages:
        return f"pip install '.[{','.join(extras)}]' in Tamis' folder"
    return " ".join(["pip install", *packages])


def missing_extra(what: str, *extras: str) -> str:
    """The sentence for `what`, which cannot be used without the packages of these extras.

    >>> missing_extra("the format `nats`", "nats")
    'the format `nats` needs packages that are not installed: pip install "nats-py[nkeys]>=2.9"'
    """
    return f"{what} needs packages that are not installed: {install_command(*extras)}"
