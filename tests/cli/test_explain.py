"""`tamis explain`, `tamis why-not` and `tamis index`."""

import json
from pathlib import Path

import pytest

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


def test_tags_and_time_decide_as_they_do_for_a_match(tamis: Command, tmp_path: Path) -> None:
    rules = tmp_path / "expiring.csv"
    rules.write_text("id,expression,tags,expires\na,x > 1,q4,2026-01-31\n")

    def ask(command: str, *options: object) -> tuple[int, str]:
        finished = tamis(command, rules, "a", "--event", '{"x": 2}', *options)
        return finished.code, finished.out

    assert ask("explain", "--now", "2026-01-30T12:00", "--tag", "q4") == (0, "✓ x > 1 (x is 2)\n")
    assert ask("why-not", "--now", "2026-01-30T12:00", "--tag", "q4") == (1, "it matches\n")
    code, shown = ask("explain", "--now", "2026-01-31", "--tag", "q5", "--tag", "q6")
    assert code == 1
    assert shown.startswith("no match: it expired at 2026-01-31 00:00:00 UTC")
    assert "no match: its tags are `q4`; needs one of the tags `q5`, `q6`" in shown
    assert ask("why-not", "--now", "2026-01-30", "--tag", "q5") == (
        0,
        "its tags are `q4`; needs the tag `q5`\n",
    )
    assert ask("explain", "--now", "2026-01-30", "--tag-none", "q4") == (
        1,
        "no match: it has the tag `q4`; needs to be without it\n✓ x > 1 (x is 2)\n",
    )
    assert ask("why-not", "--now", "2026-01-30", "--tag-all", "q4") == (1, "it matches\n")
    assert ask("explain")[0] == 1, "it has expired by now"
    bad = tamis("explain", rules, "a", "--event", "{}", "--now", "tomorrow")
    assert bad.code == 2
    assert "--now: expected a timestamp, such as 2026-12-31T23:59:59Z" in bad.err


def test_an_unknown_rule_or_event_is_an_error(
    tamis: Command, rules: Path, events: Path, tmp_path: Path
) -> None:
    unknown = tamis("explain", rules, "ad-77", events)
    assert unknown.code == 2
    assert "no rule with the id ad-77" in unknown.err
    assert "did you mean `ad-" in unknown.err
    one = tmp_path / "one.csv"
    one.write_text("id,expression\na,x > 1\n")
    assert "(hint: the index holds 1 rule: a)" in tamis("explain", one, "zz", events).err
    beyond = tamis("explain", rules, "ad-1", events, "--row", 9)
    assert beyond.code == 2
    assert "has 3 events, no row 9 (hint: rows count from 0, so the last is --row 2)" in beyond.err


def test_an_event_that_cannot_be_read_is_shown_with_its_place(
    tamis: Command, rules: Path, tmp_path: Path
) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"age": 1}\n\n{"age": \n')
    for command in ("explain", "why-not"):
        finished = tamis(command, rules, "ad-1", events, "--row", 1)
        assert finished.code == 2
        assert f"{events}:3:9: " in finished.err


@pytest.mark.parametrize("command", ["match", "topk", "explain", "index info", "index verify", "check"])
@pytest.mark.parametrize("damage", ["empty", "garbage", "first byte"])
def test_what_is_named_like_a_saved_index_is_opened_as_one(
    tamis: Command, rules: Path, tmp_path: Path, command: str, damage: str
) -> None:
    snapshot = tmp_path / "rules.tamis"
    assert tamis("index", "build", rules, snapshot).code == 0
    written = {"empty": b"", "garbage": bytes(range(256)), "first byte": b"X" + snapshot.read_bytes()[1:]}
    snapshot.write_bytes(written[damage])
    ran = tamis(*command.split(), snapshot, *(["a"] if command == "explain" else []), stdin=b"{}")
    said = "reads rules as text, not a saved index" if command == "check" else "not a Tamis snapshot"
    assert ran.code == (1 if command == "index verify" else 2)
    assert ran.out == ""
    assert ran.err.startswith(f"tamis: {snapshot}: ")
    assert said in ran.err


def test_a_format_reads_any_name_as_rules(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    path.write_text("id,expression\na,x > 1\n")
    ran = tamis("match", path, "--rules-format", "csv", "--event", '{"x": 2}')
    assert json.loads(ran.out)["subscription"] == "a"


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


def test_files_that_cannot_be_read_or_written_are_named_once(
    tamis: Command, rules: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "no" / "rules.tamis"
    for arguments in (["index", "build", rules, missing], ["index", "verify", missing]):
        finished = tamis(*arguments)
        assert finished.code == 2
        assert finished.err.count(str(missing)) == 1
        assert "No such file or directory" in finished.err
    cut = tmp_path / "cut.tamis"
    assert tamis("index", "build", rules, cut).code == 0
    cut.write_bytes(cut.read_bytes()[:300])
    for arguments, code in ((["index", "verify", cut], 1), (["match", cut, "--event", "{}"], 2)):
        finished = tamis(*arguments)
        assert finished.code == code
        assert finished.err.count(str(cut)) == 1
        assert "truncated" in finished.err
