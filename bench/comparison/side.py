"""The handle on a process that measures one side: requests go out and answers come in, a line each."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from comparison.builds import CACHE

BENCH = Path(__file__).parents[1]


class SideError(Exception):
    """A measuring process ended before it was asked to."""


def _environment(package: Path) -> dict[str, str]:
    """Python finds `tamis` in the package, and this folder beside it."""
    path = os.pathsep.join([str(package), str(BENCH)])
    return {
        **os.environ,
        "PYTHONPATH": path,
        # Sets of strings are walked in an order that depends on this seed.
        "PYTHONHASHSEED": "0",
        # Dozens of processes import the same modules: compile them once, whatever the user's settings are.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode"),
        # Arrow's own pool keeps what reading the inputs took: the peak of a build would not show.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        # The golden events hold values of the wrong kind, on purpose.
        "PYTHONWARNINGS": "ignore",
    }


def golden_answers(package: Path) -> dict[str, str]:
    """The hashes of what a package answers on the fixed set."""
    finished = subprocess.run(
        [sys.executable, "-m", "comparison.golden", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(package),
        check=False,
    )
    if finished.returncode:
        raise SideError(f"{package} cannot answer the golden queries; what it printed above says why")
    answers: dict[str, str] = json.loads(finished.stdout)
    return answers


class Side:
    """A running process with the package of one build and the inputs of one workload."""

    def __init__(self, package: Path, folder: Path) -> None:
        self._package = package
        self._process = subprocess.Popen(
            [sys.executable, "-m", "comparison.child", str(package), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(package),
        )

    def wait_until_ready(self) -> None:
        """Return once the inputs have been read."""
        self._answer()

    def ask(self, request: str, **arguments: Any) -> Any:
        """Send a request and wait for its answer."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps([request, arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `_answer` says what happened
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SideError(
                f"the process that measures {self._package} ended with status {self._process.wait()}; "
                "what it printed above says why"
            )
        return json.loads(line)

    def __enter__(self) -> "Side":
        """Run until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        if kind is not None:
            self._process.kill()
        self._process.wait()
