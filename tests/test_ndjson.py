"""JSON lines from bytes, files and paths agree with `match_batch`, whatever the pieces."""

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import Query


@pytest.fixture
def index() -> tamis.Index:
    found = tamis.Index()
    found.add("adult", "age >= 18", priority=1.0, tags=["q4"], payload=b"A")
    found.add("old", "age >= 60", priority=2.0)
    found.add("ann", "name ILIKE 'ANN%'", priority=3.0, owner="o")
    found.add("unknown", "age IS NULL", priority=0.5)
    return found


def lines(count: int, seed: int = 1) -> list[bytes]:
    draw = random.Random(seed)
    found = []
    for number in range(count):
        event: dict[str, Any] = {"id": f"e{number}", "name": draw.choice(["ann", "Anna", "böb", "\u2028x"])}
        if draw.random() < 0.8:
            event["age"] = draw.randrange(100)
        found.append(json.dumps(event, ensure_ascii=draw.random() < 0.5).encode())
    return found


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("separator", [b"\n", b"\r\n", b"\n\n \t\n"])
def test_every_source_and_every_piece_agrees_with_a_batch(
    index: tamis.Index, chunk_bytes: int, separator: bytes, tmp_path: Path
) -> None:
    events = lines(50)
    expected = index.match_batch(b"\n".join(events)).to_pydict()
    text = separator.join(events)
    path = tmp_path / "events.jsonl"
    for whole in (text, text + separator, b"\xef\xbb\xbf" + text):
        path.write_bytes(whole)
        sources: list[Any] = [whole, bytearray(whole), memoryview(whole), path, str(path), io.BytesIO(whole)]
        for source in sources:
            found = index.match_ndjson(source, chunk_bytes=chunk_bytes, threads=2)
            assert found.to_pydict() == expected
    with path.open("rb") as file:
        pieces = list(index.stream_ndjson(file, chunk_bytes=chunk_bytes))
    assert [row for piece in pieces for row in piece.to_pylist()] == found.to_pylist()


def test_every_query(index: tamis.Index) -> None:
    text = b"\n".join(lines(40))
    for query in (
        Query("all", tags=["q4"]),
        Query("best", k=1),
        Query("count"),
        Query("exists", tags=["q4"]),
        Query("owners"),
    ):
        expected = index.ask_batch(query, text)
        for chunk_bytes in (1, 300, 1 << 20):
            found = index.match_ndjson(text, query=query, chunk_bytes=chunk_bytes)
            assert found.to_pylist() == expected.to_pylist(), query.ask
    assert (
        index.match_ndjson(text, tags=["q4"]).to_pylist() == index.match_batch(text, tags=["q4"]).to_pylist()
    )
    for chunk_bytes in (1, 300, 1 << 20):
        options: dict[str, Any] = {"key": "id", "payloads": True}
        found = index.match_ndjson(text, chunk_bytes=chunk_bytes, **options)
        assert found.to_pylist() == index.match_batch(text, **options).to_pylist()


@pytest.mark.parametrize("nothing", [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf"])
def test_no_events(index: tamis.Index, nothing: bytes) -> None:
    assert index.match_ndjson(nothing).to_pydict() == {"event": [], "subscription": []}
    assert index.match_ndjson(io.BytesIO(nothing)).to_pydict() == {"event": [], "subscription": []}
    assert index.match_ndjson(nothing, query=Query("count")).to_pylist() == []
    table, refused = index.match_ndjson(nothing, on_error="collect", key="id")
    assert (table.num_rows, refused) == (0, [])


@pytest.mark.parametrize("chunk_bytes", [1, 25, 1 << 20])
def test_errors_name_line_and_column(index: tamis.Index, chunk_bytes: int) -> None:
    text = b'{"age": 20}\r\n\r\n{"age": 30}\n{"age": 01}\n{"age": 40}\n'
    with pytest.raises(tamis.EventError, match=r"start with 0 .line 4, column 9"):
        index.match_ndjson(text, chunk_bytes=chunk_bytes)
    for wrong in (b'{"name": "\xff"}', b"[1]", b"5", b"{", b'{"age": 1} x', b"\x0b", b'{"age": 1, "age": 2}'):
        with pytest.raises(tamis.EventError, match=r"line 3, column"):
            index.match_ndjson(b"{}\n\n" + wrong + b"\n{}\n", chunk_bytes=chunk_bytes)


@pytest.mark.parametrize("chunk_bytes", [1, 60, 1 << 20])
def test_lines_that_cannot_be_read_are_collected(index: tamis.Index, chunk_bytes: int) -> None:
    draw = random.Random(5)
    good = lines(60)
    rows = [(number, line) for number, line in enumerate(good)]
    bad = [b"{", b'{"name": "\xff"}', b'{"age": 1} x', b"\x0b", b"nul", b'{"age": 1, "age": 2}']
    text, expected, numbers = b"", [], []
    row = line = 0
    kept = []
    for _, event in rows:
        while draw.random() < 0.4:
            if draw.random() < 0.5:
                text += b" \r\n"
            else:
                expected.append((line + 1, row))
                text += draw.choice(bad) + b"\n"
                row += 1
            line += 1
        text += event + b"\n"
        numbers.append(row)
        kept.append(event)
        row += 1
        line += 1
    table, refused = index.match_ndjson(text, on_error="collect", chunk_bytes=chunk_bytes)
    assert [(one.line, one.row) for one in refused] == expected
    assert all(f"line {one.line}, " in str(one.error) for one in refused)
    clean = index.match_batch(b"\n".join(kept)).to_pylist()
    assert table.to_pylist() == [{**match, "event": numbers[match["event"]]} for match in clean]
    named, _ = index.match_ndjson(text, on_error="collect", chunk_bytes=chunk_bytes, key="id")
    assert named.to_pylist() == index.match_batch(b"\n".join(kept), key="id").to_pylist()
    counts, _ = index.match_ndjson(text, on_error="collect", query=Query("count"), chunk_bytes=chunk_bytes)
    assert counts.to_pylist() == index.count_batch(b"\n".join(kept)).to_pylist()


def test_a_pipe_is_read_as_it_comes(index: tamis.Index) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb", buffering=0) as out, os.fdopen(reader, "rb", buffering=0) as pipe:
        stream = index.stream_ndjson(pipe)
        out.write(b'{"age": 20}\n{"ag')
        assert next(stream).to_pydict() == {"event": [0], "subscription": ["adult"]}
        out.write(b'e": 70}')
        out.close()
        assert [piece.to_pydict()["event"] for piece in stream] == [[1, 1]]


def test_what_is_not_a_source_is_refused(index: tamis.Index, tmp_path: Path) -> None:
    with pytest.raises(tamis.ArgumentError, match=r"write text.encode"):
        index.match_ndjson('{"age": 5}')
    with pytest.raises(TypeError, match="not list"):
        index.match_ndjson([b"{}"])  # type: ignore[arg-type]
    with pytest.raises(tamis.ArgumentError, match="for reading bytes"):
        index.match_ndjson(io.StringIO("{}\n"))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        index.match_ndjson(tmp_path / "nothing")
    with pytest.raises(tamis.ArgumentError, match="1 or more"):
        index.match_ndjson(b"{}", chunk_bytes=0)
    with pytest.raises(tamis.ArgumentError, match="with the query"):
        index.match_ndjson(b"{}", query=Query("count"), tags=["q4"])
    with pytest.raises(tamis.ArgumentError, match="names neither"):
        index.match_ndjson(b"{}", query=Query("count"), key="id")
    with pytest.raises(tamis.ArgumentError, match="differ in type"):
        index.match_ndjson(b'{"id": 1}\n{"id": "x"}', key="id", chunk_bytes=1)
