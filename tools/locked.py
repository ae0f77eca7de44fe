"""Install a dependency group of `pyproject.toml`, pinned by `uv.lock`, into the environment of the tools."""

import os
import sys
from pathlib import Path

from attempt import attempt

ROOT = Path(__file__).resolve().parent.parent
NEEDS = "It needs the network, or a package index that uv is set up to use."


def install(group: str) -> None:
    """Install the packages of `group` in addition to those already installed."""
    here = Path(sys.prefix)
    sync = [here / "bin" / "uv", "sync", "--quiet", "--locked", "--inexact", "--only-group", group]
    settings = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(here)}
    attempt(f"Installing the group `{group}` of uv.lock", NEEDS, sync, cwd=ROOT, env=settings)
