"""What to say when a package of an extra is missing: one sentence, with a command that works.

The command names the packages themselves, as Tamis' own metadata lists them: `pip install 'tamis[spark]'`
would ask a package index for Tamis, and Tamis may come from a wheel or a folder.
"""

import re
from importlib.metadata import PackageNotFoundError, requires


def install_command(extra: str) -> str:
    """The command that installs what an extra brings.

    >>> install_command("nats")
    'pip install "nats-py>=2.9"'
    """
    try:
        listed = [requirement.partition(";") for requirement in requires("tamis") or ()]
    except PackageNotFoundError:  # run from its sources, without being installed
        listed = []
    packages = [
        f'"{package.strip()}"' for package, _, marker in listed if re.search(rf"extra == .{extra}.", marker)
    ]
    return " ".join(["pip install", *packages]) if packages else f"pip install '.[{extra}]' in Tamis' folder"


def missing_extra(what: str, extra: str) -> str:
    """The sentence for `what`, which cannot be used without the packages of an extra.

    >>> missing_extra("the format `nats`", "nats")
    'the format `nats` needs packages that are not installed: pip install "nats-py>=2.9"'
    """
    return f"{what} needs packages that are not installed: {install_command(extra)}"
