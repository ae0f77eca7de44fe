"""`tamis flow`: rules with memory over files and pipes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.conftest import Command

RULES = """\
streams:
  logins: {time: ts}
queries:
  burst: count(* WHERE NOT ok BY user LAST 10m) >= 3
  travel:
    on: logins
    query: >-
      SEQUENCE (a: NOT ok){2,} THEN (b: ok AND b.country != a.country) WITHIN 10 MINUTES BY user
"""
LOGINS = [
    {"ts": 0, "user": "ann", "ok": False, "country": "CA"},
    {"ts": 10, "user": "ann", "ok": False, "country": "CA"},
    {"ts": 20, "user": "ann", "ok": False, "country": "CA"},
    {"ts": 30, "user": "ann", "ok": True, "country": "FR"},
]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def lines(logins: list[dict[str, object]]) -> str:
    return "".join(json.dumps(login) + "\n" for login in logins)


def test_rules_tell_as_json_lines(tamis: Command, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "logins.jsonl").write_text(lines(LOGINS))
    for arguments, stdin in ([tmp_path / "logins.jsonl"], b""), ([], lines(LOGINS).encode()):
        done = tamis("flow", rules, *arguments, stdin=stdin)
        assert done.code == 0, done.err
        told = [json.loads(line) for line in done.out.splitlines()]
        assert [(out["query"], out["events"][-1]["ts"]) for out in told] == [
            ("burst", 20),
            ("burst", 30),
            ("travel", 30),
        ]
    assert tamis("flow", rules, stdin=b"").code == 1


def test_state_is_kept_between_runs(tamis: Command, rules: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    told = []
    for login in LOGINS:
        told += tamis("flow", rules, "--state", state, stdin=lines([login]).encode()).out.splitlines()
    assert [json.loads(line)["query"] for line in told] == ["burst", "burst", "travel"]


def test_backtest_counts_what_would_have_fired(tamis: Command, rules: Path) -> None:
    done = tamis("flow", "backtest", rules, stdin=lines(LOGINS).encode())
    assert done.out.splitlines() == [
        "query   fired  first                last",
        "burst       2  1970-01-01 00:00:20  1970-01-01 00:00:30",
        "travel      1  1970-01-01 00:00:30  1970-01-01 00:00:30",
    ]
    done = tamis("flow", "backtest", rules, "--json", stdin=lines(LOGINS).encode())
    assert json.loads(done.out.splitlines()[0])["fired"] == 2


def test_a_file_that_grows_is_followed(rules: Path, tmp_path: Path) -> None:
    growing = tmp_path / "logins.jsonl"
    growing.write_text(lines(LOGINS[:3]))
    command = [sys.executable, "-m", "tamis.cli", "flow", str(rules), str(growing), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["events"][-1]["ts"] == 20
        with growing.open("a") as file:
            file.write(lines(LOGINS[3:])[:10])
            file.flush()
            time.sleep(0.01)
            file.write(lines(LOGINS[3:])[10:])
        assert json.loads(following.stdout.readline())["query"] == "burst"
        assert json.loads(following.stdout.readline())["query"] == "travel"
        following.terminate()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("streams: {s: {tim: ts}}\nqueries: {q: a = 1}", "unknown setting 'tim'; did you mean `time`?"),
        ("streams: {s: {time: ts}}\nqueries: {q: count(*) > 1}", "query 'q': count needs a window"),
        ("streams: {s: {time: ts}}", "names its queries"),
        ("streams: [", "rules.yaml"),
    ],
)
def test_bad_rules_are_named(tamis: Command, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    done = tamis("flow", path, stdin=b"")
    assert done.code == 2
    assert message in done.err


def test_bad_events_are_named(tamis: Command, rules: Path) -> None:
    done = tamis("flow", rules, stdin=b'{"ts": 1}\n\n{"user": "ann"}\n')
    assert done.code == 2
    assert 'line 3: an event of stream "logins" has no `ts`' in done.err


def test_late_events_are_counted(tamis: Command, rules: Path) -> None:
    done = tamis("flow", rules, stdin=b'{"ts": 5}\n{"ts": 4}\n')
    assert "1 event was too late for stream logins" in done.err


def test_events_of_several_streams_say_which(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    streams = {"a": {"time": "ts"}, "b": {"time": "ts"}}
    path.write_text(
        json.dumps({"streams": streams, "queries": {"q": {"query": "count(* LAST 1m) >= 1", "on": "b"}}})
    )
    (tmp_path / "b.jsonl").write_text('{"ts": 1}\n')
    assert tamis("flow", path, f"b={tmp_path / 'b.jsonl'}").code == 0
    done = tamis("flow", path, tmp_path / "b.jsonl")
    assert done.code == 2
    assert "which stream" in done.err
