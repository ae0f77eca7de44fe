"""The sessions in `docs/pubsub.md` are run as they stand, on other ports and in another folder."""

import re
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from servers import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "pubsub.md"
SESSIONS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def start(line: str, folder: Path, running: ExitStack, number: int) -> tuple[Any, Path, Path]:
    """A command in the background, and files with what it prints."""
    out, err = folder / f"{number}.out", folder / f"{number}.err"
    command = [sys.executable, "-m", "tamis.cli", *shlex.split(line)[1:]]
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(command, stdout=to_out, stderr=to_err)
    running.callback(process.wait)
    running.callback(process.terminate)
    return process, out, err


def wait_for(text: str, file: Path, process: Any) -> None:
    while text not in file.read_text():
        assert process.poll() is None, file.read_text()
        time.sleep(0.05)


@pytest.mark.parametrize("session", SESSIONS, ids=["tcp", "nats"])
def test_a_session(session: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for documented, free in zip(("7001", "7002", "9102"), free_ports(3), strict=True):
        session = session.replace(documented, str(free))
    session = session.replace("/var/lib/tamis", str(tmp_path))
    if "nats://" in session:
        session = session.replace("nats://127.0.0.1:4222", request.getfixturevalue("nats").url)
    with ExitStack() as running:
        commands = {}
        for number, line in enumerate(line for line in session.splitlines() if line):
            name = shlex.split(line)[1]
            process, out, err = start(line, tmp_path, running, number)
            commands[name] = process, out
            if name in ("broker", "subscribe"):
                wait_for("listening" if name == "broker" else "subscribed as ann/cli", err, process)
            else:
                assert process.wait() == 0, err.read_text()
        process, out = commands["subscribe"]
        wait_for('{"number": 1, "type": null, "event": {"title": "Emma", "price": 12}}', out, process)
        assert commands["publish"][1].read_text() == "1\n"
