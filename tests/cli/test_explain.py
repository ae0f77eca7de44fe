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
    shown = [line.split(maxsplit=1) for line in tamis("index", "info", snapshot).out.splitlines()]
    names = ["subscriptions", "file", "version", "attributes", "tags", "in"]
    assert [name for name, _ in shown] == names
    assert shown[0][1].strip() == "3"
    assert "bytes, saved 20" in shown[1][1] or "KB, saved 20" in shown[1][1]
    assert shown[3][1].strip() == "2: age (number), country (string)"
    assert shown[4][1].strip() == "2: q4 (2), north (1)"
    everything = tamis("index", "info", snapshot, "--verbose").out.splitlines()
    assert [line.split()[0] for line in everything[: len(names)]] == names
    assert any(line.startswith("bytes.predicates") for line in everything)
    contents = json.loads(tamis("index", "info", snapshot, "--json").out)
    assert (contents["subscriptions"], contents["tags"]) == (3, {"north": 1, "q4": 2})
    assert contents["file_bytes"] == snapshot.stat().st_size
    assert contents["inside"]["predicates"] > 0
    assert tamis("index", "verify", snapshot).code == 0

    damaged = bytearray(snapshot.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    snapshot.write_bytes(damaged)
    assert tamis("index", "verify", snapshot).code == 1
    assert tamis("index", "verify", rules).code == 2
