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
