"""Run commands in this process, and small files for them."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tamis.cli.app import run

RULES = """\
id,expression,priority,tags
ad-1,"age BETWEEN 20 AND 30 AND country IN ('CA', 'US')",1.5,q4;north
ad-2,age > 25,9.0,
ad-3,country = 'FR',2.0,q4
"""
EVENTS = """\
{"age": 27, "country": "CA", "user": "ann"}
{"age": 12, "country": "CH", "user": "bob"}

{"age": 40, "country": "FR", "user": "eve"}
"""


@dataclass
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Finished]


@pytest.fixture
def tamis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Call the command line: `tamis("match", path, stdin=b"...")`."""

    def call(*arguments: object, stdin: bytes = b"") -> Finished:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in captured.err
        return Finished(ended.value.code, captured.out, captured.err)

    return call


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Three rules as CSV."""
    path = tmp_path / "rules.csv"
    path.write_text(RULES)
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Three events as JSON lines, with a blank line between them."""
    path = tmp_path / "events.jsonl"
    path.write_text(EVENTS)
    return path
