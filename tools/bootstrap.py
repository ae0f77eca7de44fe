"""Prepare a folder with what every target of the Makefile needs: a Python that is new enough, and uv.

The Python that runs this script may be older than Tamis needs. Then uv takes a newer one of this machine, or
downloads one into the folder. So this script, and what it imports, is written for Python 3.8: the oldest that
uv can be installed with.

Usage: python tools/bootstrap.py FOLDER UV_VERSION
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from attempt import attempt

OLDEST_PYTHON = (3, 11)
REPLACEMENT = ">=3.11,<3.15"
"""Which Python takes the place of an old one: one that every locked package has a compiled wheel for."""

NETWORK = "The first build needs a package index: check the network, or pip's settings (`pip config list`)."
VENV = "Install the module venv for it (on Debian and Ubuntu: apt install python3-venv), or set PYTHON=..."
DOWNLOAD = (
    f"Tamis needs Python 3.11 or later; {sys.executable} is {platform.python_version()}. uv found no newer\n"
    "one on this machine and could not download one. Install one and set PYTHON=..., or let\n"
    "UV_PYTHON_INSTALL_MIRROR name a mirror of uv's downloads."
)


def environment_with_uv(folder: Path, uv_version: str) -> Path:
    """A virtual environment of the Python that runs this script, with uv in it; returns the path of uv."""
    attempt(f"Making an environment with {sys.executable}", VENV, [sys.executable, "-m", "venv", folder])
    install = ["install", "--quiet", "--disable-pip-version-check", f"uv=={uv_version}"]
    attempt("Installing uv with pip", NETWORK, [folder / "bin" / "python", "-m", "pip", *install])
    return folder / "bin" / "uv"


def environment_with_newer_python(folder: Path, uv_version: str) -> None:
    """The same for a Python that is too old: uv finds or downloads another one."""
    old = folder / "old-python"
    uv = environment_with_uv(old, uv_version)
    settings = {
        **os.environ,
        "UV_PYTHON_DOWNLOADS": "automatic",
        "UV_PYTHON_INSTALL_DIR": str(folder / "python"),
    }
    new = [uv, "venv", "--quiet", "--allow-existing", "--python", REPLACEMENT, folder]
    attempt("Finding a newer Python with uv", DOWNLOAD, new, env=settings)
    python = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", python, f"uv=={uv_version}"]
    attempt("Installing uv with uv", NETWORK, install)
    shutil.rmtree(old)
    version = attempt("Asking the newer Python for its version", DOWNLOAD, [python, "--version"]).strip()
    print(f"{sys.executable} is {platform.python_version()}; using {version} at {python.resolve()}")


def main(folder: Path, uv_version: str) -> None:
    """Fill `folder`: its `bin/python` is Python 3.11 or later, its `bin/uv` the uv of that version."""
    if sys.version_info[:2] >= OLDEST_PYTHON:
        environment_with_uv(folder, uv_version)
    else:
        environment_with_newer_python(folder, uv_version)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
