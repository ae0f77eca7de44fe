"""`tamis explain`, `tamis why-not` and `tamis index`."""

import json
from pathlib import Path

from cli.conftest import Command


def test_explain_says_what_each_predicate_saw(tamis: Command, rules: Path, events: Path) -> None:
    finished = tamis("explain", rules, "ad-1", events)
    assert finished.code == 0
    assert "age" in finished.out
    assert "27" in finished.out
    assert tamis("explain", rules, "ad-1", events, "--row", 1).code == 1


def test_explain_as_json(tamis: Command, rules: Path) -> None:
    finished = tamis("explain", rules, "ad-2", "--event", '{"age": 40}', "--json")
    assert isinstance(json.loads(finished.out), dict)


def test_why_not_names_what_would_have_to_change(tamis: Command, rules: Path) -> None:
    finished = tamis("why-not", rules, "ad-1", "--event", '{"age": 27, "country": "FR"}')
    assert finished.code == 0
    assert "country" in finished.out
    assert tamis("why-not", rules, "ad-1", "--event", '{"age": 27, "country": "CA"}').code == 1


def test_an_unknown_rule_or_event_is_an_error(tamis: Command, rules: Path, events: Path) -> None:
    unknown = tamis("explain", rules, "ad-77", events)
    assert unknown.code == 2
    assert "no rule with the id ad-77" in unknown.err
    assert "not that many events" in tamis("explain", rules, "ad-1", events, "--row", 9).err


def test_index_info_and_verify(tamis: Command, rules: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "rules.tamis"
    assert tamis("index", "build", rules, snapshot).code == 0
    assert "subscriptions" in tamis("index", "info", snapshot).out
    assert json.loads(tamis("index", "info", snapshot, "--json").out)["subscriptions"] == 3
    assert tamis("index", "verify", snapshot).code == 0

    damaged = bytearray(snapshot.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    snapshot.write_bytes(damaged)
    assert tamis("index", "verify", snapshot).code == 1
    assert tamis("index", "verify", rules).code == 2
