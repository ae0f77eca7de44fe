"""Router processes, for what only a killed process shows."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 300.0
"""A busy machine is no fault: starting a process can take a minute."""

STOPPING = 60.0


class RouterProcess:
    """`tamis router` on loopback; its log goes to a file."""

    def __init__(
        self, folder: Path, *arguments: str, name: str = "router", source: Path | None = None
    ) -> None:
        """`source` is the folder of another release's package."""
        self.stderr = folder / f"{name}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "tamis.cli", "router", *arguments]
        environment = {**os.environ, **({"PYTHONPATH": str(source)} if source is not None else {})}
        with self.stderr.open("wb") as output:
            self.process = subprocess.Popen(command, stderr=output, env=environment)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stderr.read_text().splitlines() if line.startswith("{")]

    def until(self, event: str) -> dict[str, Any]:
        """Wait for a line of its log."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for line in self.lines():
                if line["event"] == event:
                    return line
            if self.process.poll() is not None:
                raise AssertionError(f"the router ended:\n{self.stderr.read_text()}")
            time.sleep(0.05)
        raise AssertionError(f"no {event!r} in\n{self.stderr.read_text()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOPPING)

    def __enter__(self) -> "RouterProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def metric(text: str, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    assert found, f"no {name} in\n{text}"
    return float(found[1])
