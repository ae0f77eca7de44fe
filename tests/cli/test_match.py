"""`tamis match` and `tamis topk`: the same rows from every format and to every format."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cli.conftest import EVENTS, RULES, Command

MATCHES = [
    {"event": 0, "subscription": "ad-1"},
    {"event": 0, "subscription": "ad-2"},
    {"event": 2, "subscription": "ad-2"},
    {"event": 2, "subscription": "ad-3"},
]
TABLE = pa.Table.from_pylist([json.loads(line) for line in EVENTS.split("\n") if line])


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_from_a_pipe(tamis: Command, rules: Path) -> None:
    finished = tamis("match", rules, stdin=EVENTS.encode())
    assert (finished.code, finished.err) == (0, "")
    assert rows(finished.out) == MATCHES


def test_rules_from_a_pipe(tamis: Command, events: Path) -> None:
    assert rows(tamis("match", "-", events, stdin=RULES.encode()).out) == MATCHES


def _write_jsonl(path: Path) -> None:
    path.write_text(EVENTS)


def _write_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(EVENTS.encode()))


def _write_csv(path: Path) -> None:
    pyarrow.csv.write_csv(TABLE, path)


def _write_tsv(path: Path) -> None:
    path.write_text("age\tcountry\tuser\n27\tCA\tann\n12\tCH\tbob\n40\tFR\teve\n")


def _write_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


WRITERS = {
    "events.jsonl": _write_jsonl,
    "events.jsonl.gz": _write_gzip,
    "events.csv": _write_csv,
    "events.tsv": _write_tsv,
    "events.parquet": lambda path: pq.write_table(TABLE, path),
    "events.feather": lambda path: pyarrow.feather.write_feather(TABLE, str(path)),
    "events.arrow": _write_arrow_stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_of_events(tamis: Command, rules: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert rows(tamis("match", rules, path).out) == MATCHES


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "events.tsv"])
def test_a_pipe_needs_no_format(tamis: Command, rules: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert rows(tamis("match", rules, stdin=path.read_bytes()).out) == MATCHES


@pytest.mark.parametrize("name", ["rules.jsonl", "rules.parquet", "rules.arrow"])
def test_every_format_of_rules(tamis: Command, events: Path, tmp_path: Path, name: str) -> None:
    records = [
        {"id": "ad-1", "expression": "age BETWEEN 20 AND 30 AND country IN ('CA', 'US')", "tags": ["q4"]},
        {"id": "ad-2", "expression": "age > 25", "priority": 9.0},
        {"id": "ad-3", "expression": "country = 'FR'", "weights": {"country": 0.5}},
    ]
    path = tmp_path / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        columns = {
            name: [record.get(name) for record in records]
            for name in ("id", "expression", "priority", "tags")
        }
        table = pa.table(columns)
        pq.write_table(table, path) if name.endswith(".parquet") else pyarrow.feather.write_feather(
            table, str(path)
        )
    assert rows(tamis("match", path, events).out) == MATCHES


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet", "out.arrow"])
def test_every_format_of_output(tamis: Command, rules: Path, events: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    finished = tamis("match", rules, events, "--output", path)
    assert (finished.code, finished.out) == (0, "")
    if name.endswith(".jsonl"):
        found = rows(path.read_text())
    elif name.endswith(".csv"):
        found = pyarrow.csv.read_csv(path).to_pylist()
    elif name.endswith(".parquet"):
        found = pq.read_table(path).to_pylist()
    else:
        found = pyarrow.feather.read_table(str(path)).to_pylist()
    assert found == MATCHES


def test_output_without_matches_is_a_readable_file(tamis: Command, rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert tamis("match", rules, "--event", "{}", "--output", path).code == 1
    assert pq.read_table(path).column_names == ["event", "subscription"]


def test_exit_code_says_whether_anything_matched(tamis: Command, rules: Path) -> None:
    hit, miss = '{"age": 27}', '{"age": 3}'
    assert tamis("match", rules, "--event", hit).code == 0
    assert tamis("match", rules, "--event", miss).code == 1
    quiet = tamis("match", rules, "--quiet", "--event", hit)
    assert (quiet.code, quiet.out) == (0, "")
    assert tamis("match", rules, "--quiet", "--event", miss).code == 1


def test_best_k_have_score_and_rank(tamis: Command, rules: Path, events: Path) -> None:
    expected = [
        {"event": 0, "subscription": "ad-2", "score": 9.0, "rank": 1},
        {"event": 2, "subscription": "ad-2", "score": 9.0, "rank": 1},
    ]
    assert rows(tamis("match", rules, events, "-k", 1).out) == expected
    assert rows(tamis("topk", rules, events, "--k", 1).out) == expected
    parquet = events.with_suffix(".parquet")
    pq.write_table(TABLE, parquet)
    assert rows(tamis("topk", rules, parquet, "--k", 1).out) == expected


def test_the_best_k_may_be_narrowed(tamis: Command, rules: Path, events: Path) -> None:
    assert tamis("match", rules, events, "-k", 1, "--min-score", 100).code == 1
    ranked = [("match", "-k", 1), ("topk", "-k", 1)]
    for command, *options in ranked:
        narrowed = tamis(command, rules, events, *options, "--score", "relevance", "--dimension", "age")
        assert {row["score"] for row in rows(narrowed.out)} == {1.0}
        unknown = tamis(command, rules, events, *options, "--score", "relevance", "--dimension", "aged")
        assert (unknown.code, "no rule has the attribute `aged`" in unknown.err) == (2, True)
    assert "--k" in tamis("match", rules, events, "--min-score", 1).err


def test_counts(tamis: Command, rules: Path, events: Path) -> None:
    expected = [{"event": 0, "matches": 2}, {"event": 1, "matches": 0}, {"event": 2, "matches": 2}]
    assert rows(tamis("match", rules, events, "--count").out) == expected
    parquet = events.with_suffix(".parquet")
    pq.write_table(TABLE, parquet)
    assert rows(tamis("match", rules, parquet, "--count").out) == expected


def test_events_named_by_an_attribute(tamis: Command, rules: Path, events: Path) -> None:
    expected = ["ann", "ann", "eve", "eve"]
    assert [row["event"] for row in rows(tamis("match", rules, events, "--key", "user").out)] == expected
    parquet = events.with_suffix(".parquet")
    pq.write_table(TABLE, parquet)
    assert [row["event"] for row in rows(tamis("match", rules, parquet, "--key", "user").out)] == expected


def test_only_rules_with_a_tag(tamis: Command, rules: Path, events: Path) -> None:
    found = rows(tamis("match", rules, events, "--tag", "q4").out)
    assert [row["subscription"] for row in found] == ["ad-1", "ad-3"]


def test_integer_ids_stay_integers_unless_a_zero_would_be_lost(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\n7,x = 1\n12,x = 1\n")
    assert [row["subscription"] for row in rows(tamis("match", path, "-e", '{"x": 1}').out)] == [7, 12]
    path.write_text("id,expression\n7,x = 1\n012,x = 1\n")
    assert [row["subscription"] for row in rows(tamis("match", path, "-e", '{"x": 1}').out)] == ["012", "7"]


def test_a_bad_rule_stops_with_its_place_or_is_skipped(tamis: Command, tmp_path: Path, events: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\nad-2,age > 25\nad-9,age >\n")
    stopped = tamis("match", path, events)
    assert stopped.code == 2
    assert stopped.err.startswith(f"tamis: {path}:3:")
    assert stopped.err.count("\n") == 1
    skipped = tamis("match", path, events, "--skip-bad")
    assert skipped.code == 0
    assert "1 of 2 rules left out" in skipped.err


def test_a_bad_event_stops_with_its_line_or_is_skipped(tamis: Command, rules: Path) -> None:
    stdin = b'{"age": 27}\n\n{"age": \n{"age": 99}\n'
    stopped = tamis("match", rules, stdin=stdin)
    assert stopped.code == 2
    assert "<stdin>:3:" in stopped.err
    skipped = tamis("match", rules, "--skip-bad", stdin=stdin)
    assert skipped.code == 0
    assert len(rows(skipped.out)) == 2
    assert "1 event was skipped" in skipped.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "missing.csv"], "cannot read missing.csv"),
        (["match", "RULES", "missing.jsonl"], "cannot read missing.jsonl"),
        (["match", "RULES", "--event", "{"], "not valid JSON"),
        (["match", "RULES", "--event", "[1]"], "not a JSON object"),
        (["match", "RULES", "--event", "{}", "--output", "out.xyz"], "cannot tell the format"),
        (["match", "RULES", "--event", "{}", "--algorithm", "magic"], "magic"),
        (["match", "RULES", "--nonsense"], "no such option"),
        (["match", "RULES", "--event", "{}", "--score", "relevance"], "add --k"),
        (["match", "RULES", "--event", "{}", "--count", "--k", "1"], "leave out --k or --count"),
        (["workload", "write", "equality", "--out", "/dev/null/x"], "/dev/null/x: Not a directory"),
        (["topk", "RULES", "--k", "-1"], "k"),
        (["nonsense"], "nonsense"),
    ],
)
def test_errors_are_one_line(tamis: Command, rules: Path, arguments: list[str], message: str) -> None:
    finished = tamis(*[str(rules) if argument == "RULES" else argument for argument in arguments])
    assert finished.code == 2
    assert finished.out == ""
    assert message in finished.err
    assert finished.err.count("\n") == 1
    assert finished.err.startswith("tamis: ")


def test_a_missing_column_is_named(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expresion\n1,x = 1\n")
    finished = tamis("match", path, "--event", "{}")
    assert finished.code == 2
    assert "no column `expression`" in finished.err


def test_a_saved_index_stands_for_its_rules(
    tamis: Command, rules: Path, events: Path, tmp_path: Path
) -> None:
    snapshot = tmp_path / "rules.tamis"
    built = tamis("index", "build", rules, snapshot)
    assert built.code == 0
    assert "3 rules" in built.out
    assert rows(tamis("match", snapshot, events).out) == MATCHES
    assert rows(tamis("topk", snapshot, events, "-k", 1).out)[0]["score"] == 9.0


def test_a_key_that_no_event_has_is_an_error(
    tamis: Command, rules: Path, events: Path, tmp_path: Path
) -> None:
    table = tmp_path / "events.csv"
    table.write_text("user,age\nann,27\n")
    for path in (events, table):
        finished = tamis("match", rules, path, "--key", "usr")
        assert finished.code == 2
        assert "no attribute `usr`" in finished.err
        assert "did you mean `user`?" in finished.err


def test_a_choice_that_is_misspelt_is_suggested(tamis: Command, rules: Path, events: Path) -> None:
    finished = tamis("match", rules, events, "--format", "josnl")
    assert finished.code == 2
    assert "did you mean `jsonl`?" in finished.err


def test_rules_without_ids_are_numbered_and_that_is_said(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("expression,priority\nage > 25,1\n")
    finished = tamis("match", path, "--event", '{"age": 27}')
    assert rows(finished.out) == [{"event": 0, "subscription": 2}]
    assert finished.err == f"tamis: {path} has no column `id`: rules are named by their line\n"
    assert tamis("match", path, "--event", '{"age": 27}', "--quiet").err == ""
    assert "has no column `id`" in tamis("check", path).err
    assert tamis("check", path, "--quiet").err == ""


def test_values_of_the_wrong_type_are_mentioned_once(tamis: Command, rules: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    table.write_text("age,country\n27,1\nold,2\n")
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"age": "27", "country": 1}\n{"age": "old", "country": 2}\n')
    finished = tamis("match", rules, lines)
    assert finished.err.count("\n") == 1
    assert "2 values of `age` are of type string: rules compare it with number" in finished.err
    assert "2 values of `country` are of type number" in finished.err
    # A cell has no type: `27` is a number to one rule and text to another.
    finished = tamis("match", rules, table)
    assert finished.err.count("\n") == 1
    assert "1 value of `age` is of type string: rules compare it with number" in finished.err
    assert "country" not in finished.err


def test_an_error_in_an_event_has_one_place(tamis: Command, rules: Path) -> None:
    stopped = tamis("match", rules, stdin=b'{"age": 27}\n{"age": \n')
    assert "<stdin>:2:9: " in stopped.err
    assert "line 1" not in stopped.err


@pytest.mark.parametrize("command", ["match", "topk"])
def test_a_tag_that_no_rule_has_is_named(tamis: Command, rules: Path, events: Path, command: str) -> None:
    finished = tamis(command, rules, events, "--tag", "nort")
    assert (finished.code, finished.out) == (1, "")
    assert "no rule has the tag `nort`" in finished.err
    assert "did you mean `north`?" in finished.err
    both = tamis(command, rules, events, "--tag", "q4", "--tag", "xyz")
    assert both.code == 0
    assert "no rule has the tag `xyz`, so nothing matches it (there are north, q4)" in both.err
    assert tamis("match", rules, events, "--tag", "nort", "--quiet").err == ""


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "-"])
def test_no_events_are_no_error(tamis: Command, rules: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("")
    finished = tamis("match", rules, "-" if name == "-" else path)
    assert (finished.code, finished.out, finished.err) == (1, "", "")


def test_rows_of_the_wrong_length_stop_or_are_skipped_and_keep_their_numbers(
    tamis: Command, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "events.csv"
    path.write_text("age,country\n27,CA\n30\n5,FR,more\n28,FR\n" + "1,CA\n" * 2_000 + "7\n99,CH\n")
    stopped = tamis("match", rules, path)
    assert stopped.code == 2
    assert "Row #3" in stopped.err
    skipping = tamis("match", rules, path, "--skip-bad")
    assert rows(skipping.out) == [
        {"event": 0, "subscription": "ad-1"},
        {"event": 0, "subscription": "ad-2"},
        {"event": 3, "subscription": "ad-2"},
        {"event": 3, "subscription": "ad-3"},
        {"event": 2_005, "subscription": "ad-2"},
    ]
    assert skipping.err == "tamis: 3 events were skipped: they could not be read\n"


@pytest.mark.parametrize("arguments", [["match", "-", "-"], ["explain", "-", "ad-1"]])
def test_standard_input_is_read_once(tamis: Command, rules: Path, arguments: list[str]) -> None:
    finished = tamis(*arguments, stdin=rules.read_bytes())
    assert finished.code == 2
    assert "cannot both come from standard input" in finished.err
    assert "name a file of events" in finished.err


def test_the_command_alone_shows_help_and_no_error(tamis: Command) -> None:
    finished = tamis()
    assert (finished.code, finished.err) == (2, "")
    assert "why-not" in finished.out


def test_options_that_take_no_value_show_no_type(tamis: Command) -> None:
    for command in (["match"], ["index", "info"], []):
        assert "<bool>" not in tamis(*command, "--help").out


def test_the_moment_of_the_query(tamis: Command, tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text('id,expression\nfresh,"ts > now() - INTERVAL 1 DAY"\n')
    event = '{"ts": {"$timestamp": "2026-01-31T11:00:00Z"}}'
    found = tamis("match", rules, "--event", event, "--now", "2026-01-31 12:00")
    assert found.code == 0
    assert "fresh" in found.out
    assert tamis("match", rules, "--event", event, "--now", "2026-02-02 12:00").code == 1
