"""The command in a real terminal: a table, colours, Ctrl-C, completion."""

import sys
import time
from pathlib import Path

import pexpect
import pytest


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\na,x > 1\n", encoding="utf-8")
    return path


def spawn(*arguments: object) -> pexpect.spawn:
    command = [str(argument) for argument in ("-m", "tamis.cli", *arguments)]
    return pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=60, dimensions=(40, 120))


def test_matches_are_a_table(rules: Path) -> None:
    terminal = spawn("match", rules, "-e", '{"x": 2}')
    terminal.expect("event.*subscription")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_errors_are_in_colour(rules: Path) -> None:
    terminal = spawn("match", f"{rules}x", "-e", "{}")
    terminal.expect(r"\x1b\[1;31merror: ")
    terminal.expect("did you mean")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 2


def test_events_may_be_piped_and_interrupted(rules: Path, tmp_path: Path) -> None:
    output = tmp_path / "found.jsonl"
    command = f"(cat; true) | {sys.executable} -m tamis.cli match {rules} --format jsonl -o {output}"
    terminal = pexpect.spawn("bash", ["-c", command], encoding="utf-8", timeout=60)
    terminal.sendline('{"x": 2}')
    terminal.expect('"x": 2')
    time.sleep(2)  # so that it is in the middle of reading; before that there is no file either
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["rules.csv"]


def test_completion_is_offered() -> None:
    # The command asks which shell it was started from.
    command = f"{sys.executable} -m tamis.cli --show-completion; true"
    terminal = pexpect.spawn("bash", ["-c", command], encoding="utf-8", timeout=60)
    terminal.expect("_TAMIS_COMPLETE|complete ")
    terminal.expect(pexpect.EOF)


def test_progress_appears_while_events_come_and_goes_when_they_end(rules: Path, tmp_path: Path) -> None:
    output = tmp_path / "found.jsonl"
    command = f"cat | {sys.executable} -m tamis.cli match {rules} --format jsonl > {output}"
    terminal = pexpect.spawn("bash", ["-c", command], encoding="utf-8", timeout=60, dimensions=(40, 120))
    terminal.setecho(False)
    sent = 0
    while terminal.expect(["matching.*events/s", pexpect.TIMEOUT], timeout=0.2) == 1:
        terminal.sendline('{"x": 2}')
        sent += 1
        assert sent < 1000, "there is no progress"
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    assert "\x1b[2K" in terminal.before  # the bar is taken away
    terminal.close()
    assert terminal.exitstatus == 0
    assert output.read_text(encoding="utf-8").count("\n") == sent


def test_the_tab_key_completes_commands_and_options() -> None:
    folder = Path(sys.executable).parent
    terminal = pexpect.spawn("bash", ["--norc", "-i"], encoding="utf-8", timeout=60, dimensions=(40, 200))
    terminal.sendline(f"PS1='ready> '; PATH={folder}:$PATH; bind 'set bell-style none'")
    terminal.sendline('eval "$(_TAMIS_COMPLETE=source_bash tamis)"; echo loa""ded')
    terminal.expect("loaded")
    terminal.send("tamis expl\t")
    terminal.expect("tamis explain")
    terminal.send("\x15tamis import --str\t")
    terminal.expect("tamis import --strict")
    terminal.send("\x15exit\r")
    terminal.expect(pexpect.EOF)
