"""Inputs as people have them: byte-order marks, arrays, compression, misspelt columns; and outputs."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, CompletedProcess, Popen

import pyarrow as pa
import pytest

from cli.conftest import Command

TAMIS = [sys.executable, "-m", "tamis.cli"]
Run = Callable[..., CompletedProcess[bytes]]


@pytest.fixture
def tamis(tamis: Command) -> Run:
    """The command in this process, answering as a process would."""

    def call(*arguments: object, stdin: bytes = b"") -> CompletedProcess[bytes]:
        ran = tamis(*arguments, stdin=stdin)
        return CompletedProcess(arguments, ran.code, ran.out.encode(), ran.err.encode())

    return call


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression,payload\na,x > 1,first\nb,name = 'é',second\n", encoding="utf-8")
    return path


def zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


EVENTS = '{"x": 2}\n{"name": "é"}\n'
WHOLE = '[{"x": 2},\n {"name": "é"}]\n'
PRETTY = '{\n  "x": 2\n}\n{\n  "name": "é"\n}\n'


@pytest.mark.parametrize(
    "stored",
    [
        EVENTS.encode(),
        EVENTS.encode("utf-8-sig"),
        EVENTS.encode("utf-16"),
        WHOLE.encode(),
        WHOLE.encode("utf-8-sig"),
        PRETTY.encode(),
        gzip.compress(EVENTS.encode()),
        zstd(EVENTS.encode()),
        zstd(WHOLE.encode("utf-16")),
    ],
    ids=["lines", "mark", "utf-16", "array", "array-mark", "pretty", "gzip", "zstd", "zstd-utf-16-array"],
)
def test_events_however_they_are_stored(tamis: Run, rules: Path, stored: bytes) -> None:
    ran = tamis("match", rules, "--format", "jsonl", stdin=stored)
    assert ran.stderr == b""
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(row["event"], row["subscription"]) for row in found] == [(0, "a"), (1, "b")]


def test_an_encoding_and_a_separator(tamis: Run, rules: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_bytes("x;name\n0;é\n".encode("latin-1"))
    ran = tamis("match", rules, events, "--encoding", "latin-1", "--separator", ";", "--to", "csv")
    assert ran.stdout.decode() == '"event","subscription"\n0,"b"\n'


def test_what_no_rule_asks_for_may_be_nested_as_deep_as_it_likes(tamis: Run, rules: Path) -> None:
    ran = tamis("match", rules, "--format", "jsonl", stdin=b'{"x": ' * 50_000 + b"1" + b"}" * 50_000)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'[{"x": 1},\n{"x": }]', b"<stdin>:2:7: not valid JSON: Expecting value"),
        (b'[{"x": 1}\n', b"the array is never closed, ] is missing"),
        (b'{\n"x": 1,\n}\n', b"<stdin>:3:1: not valid JSON"),
        (b'{"x": 1}\n{"x": \n', b"<stdin>:2"),
        (b'{\n"x": ' * 50_000 + b"1" + b"}" * 50_000, b"<stdin>:1: nested too deep to be read"),
    ],
)
def test_what_cannot_be_read_says_where(tamis: Run, rules: Path, text: bytes, said: bytes) -> None:
    ran = tamis("match", rules, "--format", "jsonl", stdin=text)
    assert ran.returncode == 2
    assert said in ran.stderr, ran.stderr


def test_a_misspelt_column_is_named(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression,prority\na,x > 1,5\n", encoding="utf-8")
    ran = tamis("match", path, "-e", '{"x": 2}')
    assert b"the column `prority` is not read: did you mean `priority`?" in ran.stderr


def test_payloads_events_and_several_events(tamis: Run, rules: Path) -> None:
    ran = tamis(
        "match", rules, "-e", '{"x": 2}', "-e", '{"x": 0}', "-e", '{"x": 3}', "--with", "payload,event"
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(row["event"], row["payload"], json.loads(row["record"])["x"]) for row in rows] == [
        (0, "first", 2),
        (2, "first", 3),
    ]
    assert b"did you mean `payload`" in tamis("match", rules, "-e", "{}", "--with", "paylod").stderr


@pytest.mark.parametrize("name", ["m.jsonl", "m.csv", "m.parquet", "m.jsonl.gz", "m.csv.zst"])
def test_output_is_whole_or_not_there(tamis: Run, rules: Path, tmp_path: Path, name: str) -> None:
    output = tmp_path / "out" / name
    output.parent.mkdir()
    bad = b'{"x": 2}\n{"x": 3}\n{"x": \n'
    assert tamis("match", rules, "-o", output, "--format", "jsonl", stdin=bad).returncode == 2
    assert list(output.parent.iterdir()) == []
    output.write_bytes(b"before")
    assert tamis("match", rules, "-o", output, "--format", "jsonl", stdin=bad).returncode == 2
    assert output.read_bytes() == b"before"
    assert tamis("match", rules, "-o", output, "--format", "jsonl", stdin=b'{"x": 2}\n').returncode == 0
    assert output.read_bytes() != b"before"
    assert [entry.name for entry in output.parent.iterdir()] == [name]


def test_compressed_output_is_compressed(tamis: Run, rules: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.jsonl.gz"
    tamis("match", rules, "-o", output, "-e", '{"x": 2}')
    assert json.loads(gzip.decompress(output.read_bytes())) == {"event": 0, "subscription": "a"}


def test_a_schema_refuses_rules_and_types_columns(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\na,zip = '01234'\n", encoding="utf-8")
    events = b"zip\n01234\n"
    assert tamis("match", path, "--format", "csv", stdin=events).returncode == 0  # the rule is about text
    assert tamis("match", path, "--format", "csv", "--schema", "zip=string", stdin=events).returncode == 0
    refused = tamis("match", path, "--schema", "zip=int", "-e", "{}")
    assert refused.returncode == 2
    assert b"zip" in refused.stderr
    assert b"did you mean `string`" in tamis("match", path, "--schema", "zip=strng", "-e", "{}").stderr


def test_import_and_match(tamis: Run, tmp_path: Path) -> None:
    given = tmp_path / "patterns.json"
    given.write_text(json.dumps({"big": {"total": [{"numeric": [">", 100]}]}, "no": {"total": [None]}}))
    rules, report = tmp_path / "rules.jsonl", tmp_path / "report.jsonl"
    ran = tamis("import", "event-patterns", given, "-o", rules, "--report", report)
    assert ran.returncode == 0
    assert b"1 of 2 rules imported" in ran.stderr
    reported = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(row["id"], row["imported"]) for row in reported] == [("big", True), ("no", False)]
    assert json.loads(tamis("match", rules, "-e", '{"total": 101}').stdout)["subscription"] == "big"
    assert tamis("import", "event-patterns", given, "--strict").returncode == 1


def test_import_names_the_columns_that_it_does_not_read(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,where,priority\na,x > 1,5\n", encoding="utf-8")
    assert b"rules.csv: not read: `priority`" in tamis("import", "sql", path).stderr
    lines = b'{"id": null, "where": "x > 1"}\n{"where": "x > 2", "tags": ["a"]}\n'
    ran = tamis("import", "sql", "-", stdin=lines)
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["1", "2"]
    assert b"<stdin>: not read: `tags`" in ran.stderr
    text = tmp_path / "rules.txt"
    text.write_bytes("name = '\u00e9'".encode("latin-1"))
    assert b"rules.txt: not UTF-8 text" in tamis("import", "sql", text).stderr


def test_import_tells_of_records_in_arrays(tamis: Run, tmp_path: Path) -> None:
    given = tmp_path / "patterns.json"
    given.write_text(json.dumps({"dear": {"order": {"items": {"price": [5]}}}}))
    ran = tamis("import", "event-patterns", given)
    assert b"1 imported with notes" in ran.stderr
    assert b"array of records at order or order.items" in ran.stderr
    told = tamis("import", "event-patterns", given, "--array", "order.items")
    assert told.returncode == 0
    assert b"notes" not in told.stderr
    assert "exists(order.items, element -> " in json.loads(told.stdout)["expression"]
    misspelt = tamis("import", "event-patterns", given, "--array", "order.itmes")
    assert b"--array order.itmes: no rule looks at it (did you mean `order.items`?)" in misspelt.stderr
    refused = tamis("import", "json-logic", given, "--array", "order.items")
    assert refused.returncode == 2
    assert b"--array is not for json-logic" in refused.stderr


def test_lints_and_examples(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression,colour\na,x > 1,\nb,x > 2 AND x < 1,\n", encoding="utf-8")
    ran = tamis("check", path, "--lint", "--explain")
    assert ran.returncode == 0
    said = ran.stdout.decode()
    assert "rules.csv:3: warning: never true" in said
    assert "the column `colour` is not read" in said
    assert 'rules.csv:2: example: {"x": ' in said
    assert tamis("check", path, "--strict", "-q").returncode == 1


def test_rules_that_do_not_fit_a_schema(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\na,coulor = 'red'\nb,age > 'x'\nc,age >\nd,age > 3\n", encoding="utf-8")
    ran = tamis("check", path, "--schema", "age=int,colour=string")
    assert ran.returncode == 1
    said = ran.stdout.decode()
    assert (
        "rules.csv:2:1: attribute `coulor` is not in the schema\n  coulor = 'red'\n  ^\n  hint: did" in said
    )
    assert "rules.csv:3:1: `age` is an int; " in said
    assert "rules.csv:4:6: " in said
    assert b"3 of 4 rules are bad" in ran.stderr
    assert tamis("check", path, "--schema", "age=numbr").returncode == 2


def test_a_name_that_stands_twice_in_a_rule(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_text('{"id": 1, "expression": "a = 1", "expression": "b = 2"}\n', encoding="utf-8")
    for command in (["check", path], ["match", path, "--event", '{"a": 1}']):
        ran = tamis(*command)
        assert ran.returncode == 2
        assert b"rules.jsonl:1: not valid JSON: the name 'expression' occurs twice in a record" in ran.stderr


UGLY = "\r\n".join(
    [
        "id ; expression;prority;tags",
        '1;"name = \'Zoé\' AND city IN (\'a;b\', ""x"")";1;a',
        "",
        ";;;",
        "2;age > 20;2;b",
        "2;age > 30;3;b",
    ]
)


def test_rules_of_a_spreadsheet_in_another_encoding(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_bytes(UGLY.encode("latin-1"))
    refused = tamis("check", path)
    assert refused.returncode == 2
    assert b"rules.csv:2:14: not UTF-8 text" in refused.stderr
    assert b"--encoding latin-1" in refused.stderr
    checked = tamis("check", path, "--encoding", "latin-1")
    assert b"rules.csv:6: the id 2 is that of " in checked.stdout
    assert b"1 of 3 rules are bad" in checked.stderr
    assert b"`prority` is not read: did you mean `priority`?" in checked.stderr
    found = tamis("match", path, "--rules-encoding", "latin-1", "--skip-bad", "-e", '{"age": 40}')
    assert json.loads(found.stdout)["subscription"] == 2
    path.write_bytes(UGLY.encode("utf-8-sig"))
    assert b"rules.csv:6: the id 2" in tamis("check", path).stdout


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_the_separator_of_rules_is_seen_from_the_header(tamis: Run, tmp_path: Path, separator: str) -> None:
    path = tmp_path / "rules.csv"
    path.write_text(f"id{separator}expression\na{separator}x > 1\n", encoding="utf-8")
    assert json.loads(tamis("match", path, "-e", '{"x": 2}').stdout)["subscription"] == "a"
    given = tmp_path / "foreign.csv"
    given.write_text(f"id{separator}where\na{separator}x > 1\n", encoding="utf-8")
    assert json.loads(tamis("import", "sql", given).stdout)["expression"] == "x > 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"id,expression,expression\na,x > 1,\n", b"two columns `expression`"),
        (b'id,expression\na,"x > 1\n', b"rules.csv:2: a quoted field opened here is never closed"),
        (b'id,"expression\na,x > 1\n', b"rules.csv:1: a quoted field opened here is never closed"),
        (b'id,expression\na,x > 1\n\nb,"x\n > 1\nc,x = 2', b"rules.csv:4: a quoted field"),
        (b"id;rule\na;x > 1\n", b"rules.csv:1: no column `expression`"),
    ],
)
def test_a_header_that_is_wrong_is_told(tamis: Run, tmp_path: Path, text: bytes, said: bytes) -> None:
    path = tmp_path / "rules.csv"
    path.write_bytes(text)
    ran = tamis("check", path)
    assert ran.returncode == 2
    assert said in ran.stderr


def test_lines_that_end_with_a_carriage_return_alone_are_told(tamis: Run, rules: Path) -> None:
    ran = tamis("match", rules, "--format", "csv", stdin=b"x,name\r2,a\r")
    assert ran.returncode == 2
    assert b"<stdin>:1: the header cannot be read" in ran.stderr
    assert b"carriage return" in ran.stderr


def test_a_cell_of_a_megabyte(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text(f"id,expression\na,\"name = '{'x' * 1_000_000}'\"\n", encoding="utf-8")
    assert tamis("check", path).stdout == b"1 rule, no errors\n"


def test_events_that_share_nothing_with_the_rules_are_mentioned(
    tamis: Run, rules: Path, tmp_path: Path
) -> None:
    events = tmp_path / "events.csv"
    events.write_bytes(b"x;country\n2;a\n")
    ran = tamis("match", rules, events)
    assert ran.returncode == 1
    assert b"they have `x;country`, rules `name`, `x` (see --separator)" in ran.stderr
    assert b"is not one character" in tamis("match", rules, events, "--separator", ";;").stderr
    assert json.loads(tamis("match", rules, events, "--separator", ";").stdout)["subscription"] == "a"
    wrapped = tamis("match", rules, "-e", '{"events": [{"x": 2}]}')
    assert b"no event has an attribute that rules look at: they have `events`" in wrapped.stderr


def test_events_in_another_encoding_say_so(tamis: Run, rules: Path) -> None:
    for kind, stored in (("csv", "name\né\n"), ("jsonl", '{"name": "é"}\n')):
        ran = tamis("match", rules, "--format", kind, stdin=stored.encode("latin-1"))
        assert ran.returncode == 2
        assert b"--encoding latin-1" in ran.stderr


def test_a_full_disk_and_standard_output_by_name(tamis: Run, rules: Path) -> None:
    full = Path("/dev/full")
    if full.exists():
        ran = tamis("match", rules, "-e", '{"x": 2}', "-o", full, "--to", "jsonl")
        assert (ran.returncode, ran.stderr) == (
            2,
            b"tamis: cannot write the output: No space left on device\n",
        )
    assert json.loads(tamis("match", rules, "-e", '{"x": 2}', "-o", "-").stdout)["subscription"] == "a"
    assert b"an index is saved to a file" in tamis("index", "build", rules, "-").stderr


SIGMA = "title: {title}\nlogsource: {{product: windows}}\ndetection: {{s: {{{field}: x}}, condition: s}}\n"


def test_sigma_from_standard_input_with_a_pipeline(tamis: Run, tmp_path: Path) -> None:
    pipeline = tmp_path / "nested.yml"
    pipeline.write_text(
        "name: nested\npriority: 10\ntransformations:\n"
        "  - {id: m, type: field_name_mapping, mapping: {Image: Event.EventData.Image}}\n"
    )
    given = "---\n".join(
        SIGMA.format(title=title, field=field) for title, field in (("one", "Image"), ("two", "Image|nope"))
    )
    ran = tamis("import", "sigma", "-", "--pipeline", pipeline, stdin=given.encode())
    assert json.loads(ran.stdout)["expression"] == "lower(Event.EventData.Image) = 'x'"
    assert b"1 of 2 rules imported" in ran.stderr  # one bad rule refuses itself, not its file
    assert b"refused: two" in ran.stderr
    assert b"--pipeline: there is no" in tamis("import", "sigma", "-", "--pipeline", "nope").stderr
    assert b"--pipeline is not for sql" in tamis("import", "sql", "-", "--pipeline", pipeline).stderr
    assert b"holds no file that ends in .yml" in tamis("import", "sigma", _empty(tmp_path)).stderr


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_an_example_of_a_computed_term_can_be_pasted(tamis: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text("id,expression\na,hour(ts) = 5 AND lower(x) = 'b'\n", encoding="utf-8")
    shown = tamis("check", path, "--explain").stdout.decode().splitlines()[0].partition("example: ")[2]
    assert tamis("match", path, "-e", shown).returncode == 0


@pytest.mark.thorough
def test_a_bad_row_ends_the_command_while_arrow_reads_ahead(rules: Path) -> None:
    """Arrow's thread asks for the interpreter for each block, also for one that is going away."""
    for bad in (b"1,a,b\n", b"1,\xe9\n"):
        for blocks in (1, 20):
            rows = b"x,name\n" + bad + b"2,c\n" * 150_000 * blocks
            command = [*TAMIS, "match", rules, "--format", "csv"]
            ran = subprocess.run(command, input=rows, capture_output=True, check=False)
            assert ran.returncode == 2, ran.stderr
            assert ran.stderr.startswith(b"tamis: <stdin>: not readable as csv: ")


@pytest.mark.parametrize(
    ("bad", "said"),
    [(b"1,a,b\n", b"Expected 2 columns, got 3"), ("1,\u00e9\n".encode("latin-1"), b"--encoding latin-1")],
)
@pytest.mark.parametrize("rows", [100_000, pytest.param(400_000, marks=pytest.mark.slow), 800_000])
def test_a_bad_row_ends_the_command_while_its_pipe_stays_open(
    rules: Path, bad: bytes, said: bytes, rows: int
) -> None:
    """Arrow reads ahead in a thread, which must neither abort the process nor keep it waiting for more."""
    command = [*TAMIS, "match", rules, "--format", "csv"]
    with Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE) as process:
        assert process.stdin
        assert process.stderr
        with suppress(BrokenPipeError):  # it may end before it has read everything
            process.stdin.write(b"x,name\n" + bad + b"2,c\n" * rows)
            process.stdin.flush()
        told = process.stderr.read()
        assert process.wait() == 2, told
        assert said in told
