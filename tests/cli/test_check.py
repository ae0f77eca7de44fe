"""`tamis check`: every error, each with its place."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cli.conftest import Command


def test_good_rules(tamis: Command, rules: Path) -> None:
    finished = tamis("check", rules)
    assert (finished.code, finished.out) == (0, "3 rules, no errors\n")


def test_every_error_with_line_and_column(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text('id,expression\n1,"x = 1\nAND y = 2"\n2,x >\n3,x = 1\n3,x = 2\n4,"x = 1 AND AND y = 2"\n')
    finished = tamis("check", path)
    assert finished.code == 1
    heads = [line for line in finished.out.splitlines() if line.startswith(str(path))]
    places = [head.removeprefix(str(path)).split(": ")[0] for head in heads]
    # The second record starts on line 4, because the first one has two lines.
    assert places[0].startswith(":4:")
    assert places[1] == ":6"
    assert places[2] == ":7:11"
    assert "  x = 1 AND AND y = 2\n            ^\n" in finished.out
    assert "3 of 5 rules are bad" in finished.err


def test_errors_as_json(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_text('{"id": "a", "expression": "x = 1"}\n{"id": "b", "expression": "x = "}\n')
    finished = tamis("check", path, "--json")
    (problem,) = [json.loads(line) for line in finished.out.splitlines()]
    assert finished.code == 1
    assert (problem["file"], problem["line"], problem["id"]) == (str(path), 2, "b")
    assert problem["expression"] == "x = "
    assert problem["column"] >= 1


def test_text_has_one_expression_per_line(tamis: Command) -> None:
    finished = tamis("check", "-", "--format", "text", stdin=b"x = 1\n-- a comment\ny >\n")
    assert finished.code == 1
    assert finished.out.startswith("<stdin>:3:")


def test_rows_where_there_are_no_lines(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.parquet"
    pq.write_table(pa.table({"id": [1, 2], "expression": ["x = 1", "x ="]}), path)
    assert f"{path}:row 2:" in tamis("check", path).out


def test_several_files(tamis: Command, rules: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("id,expression\n1,x >\n")
    finished = tamis("check", rules, other)
    assert finished.code == 1
    assert "1 of 4 rules are bad" in finished.err


def test_too_many_fields_are_a_quoting_mistake(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\n1,x IN (1, 2)\n")
    finished = tamis("check", path)
    assert finished.code == 2
    assert "double quotes" in finished.err


def test_bad_values_of_every_column_are_listed_and_checking_goes_on(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text(
        "id,expression,priority,weights,tags,expires\n"
        "1,x = 1,high,,,\n"
        '2,x = 2,1.5,"{""age"": 0.7",,\n'
        '3,x = 3,,"{""age"": -1}","[""q4""",soon\n'
        "4,x = 4,2.5,,q4;q5,2026-12-31\n"
        "5,x >,inf,,,\n"
        "6,,,,,\n"
        '7,x = 7,,"[0.7, 0.2]",,\n'
    )
    finished = tamis("check", path)
    assert finished.code == 1
    heads = [
        line.removeprefix(f"{path}:")[:35] for line in finished.out.splitlines() if line.startswith(str(path))
    ]
    assert heads == [
        "2: priority: expected a number, suc",
        "3: weights: not valid JSON: Expecti",
        "4: weights: the weight of age is -1",
        "4: tags: not valid JSON: Expecting ",
        "4: expires: expected a timestamp, s",
        "6: priority: expected a finite numb",
        "6:4: expected a value, found the en",
        "7: expression: there is none",
        "8: weights: expected a JSON object,",
    ]
    assert "6 of 7 rules are bad" in finished.err


def test_bad_values_as_json(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.parquet"
    table = {"id": [1, 2], "expression": ["x = 1", "x = 2"], "expires": [None, "2026-13-01"]}
    pq.write_table(pa.table(table), path)
    (problem,) = [json.loads(line) for line in tamis("check", path, "--json").out.splitlines()]
    assert (problem["row"], problem["id"], problem["field"]) == (2, 2, "expires")
    assert "'2026-13-01'" in problem["message"]


def test_bad_values_stop_a_match_unless_they_are_skipped(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression,priority\n1,x = 1,1\n2,x = 1,high\n3,x =,1\n4,x = 1,1\n4,x = 1,1\n")
    stopped = tamis("match", path, "--event", '{"x": 1}')
    assert stopped.code == 2
    assert f"{path}:3: priority: expected a number" in stopped.err
    assert stopped.err.count("\n") == 1
    skipped = tamis("match", path, "--event", '{"x": 1}', "--skip-bad")
    assert [json.loads(line)["subscription"] for line in skipped.out.splitlines()] == [1, 4]
    assert "3 of 5 rules left out" in skipped.err


def test_an_id_that_was_there_before_stops_a_match_with_both_places(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\na,x = 1\nb,x = 1\na,x = 2\n")
    finished = tamis("match", path, "--event", '{"x": 1}')
    assert f"{path}:4: the id a is that of {path}:2" in finished.err
