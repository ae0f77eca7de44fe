"""On what machine, at which commit and with which versions a figure was measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def describe(seed: int) -> dict[str, Any]:
    """Everything one needs to judge or repeat a measurement.

    >>> sorted(describe(seed=1))
    ['commit', 'machine', 'seed', 'time', 'versions']
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gb": _memory_gb(),
            "system": platform.platform(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("tamis", "numpy", "pyarrow")},
        },
    }


def one_line(environment: dict[str, Any]) -> str:
    """The circumstances in one line, for the foot of a table.

    >>> "seed 1" in one_line(describe(seed=1))
    True
    """
    machine = environment["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"commit {environment['commit']}; seed {environment['seed']}; {environment['time']}"
    )


def _commit() -> str:
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        return commit + ("+changes" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    finished = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return finished.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gb() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
