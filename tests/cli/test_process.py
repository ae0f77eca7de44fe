"""The command as a process: pipes, signals, help."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [sys.executable, "-m", "tamis.cli"]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from tamis.cli.app import run\n"
        "try: run(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyarrow', 'numpy', 'pandas', 'tamis_lab.workloads'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "why-not" in finished.stdout


def test_head_ends_it_silently(rules: Path, tmp_path: Path) -> None:
    events = tmp_path / "many.jsonl"
    events.write_text('{"age": 27}\n' * 200_000)
    pipeline = f"{' '.join(COMMAND)} match {rules} {events} | head -n 1"
    finished = subprocess.run(
        ["bash", "-c", pipeline], capture_output=True, text=True, check=False, timeout=60
    )
    assert json.loads(finished.stdout) == {"event": 0, "subscription": "ad-2"}
    assert finished.stderr == ""


def test_an_answer_does_not_wait_for_the_end_of_the_pipe(rules: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "match", str(rules)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"age": 27}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["subscription"] == "ad-2"
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_full_disk_is_one_line(rules: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        finished = subprocess.run(
            [*COMMAND, "match", str(rules), "--event", '{"age": 27}'],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert finished.returncode == 2
    assert finished.stderr == "tamis: cannot write the output: No space left on device\n"


def test_an_interrupt_while_it_starts_is_clean() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'tamis.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from tamis.cli import main; main()"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (130, "")


def test_interrupt_is_clean(rules: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "match", str(rules)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write('{"age": 27}\n')
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == ""
