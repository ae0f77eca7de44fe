"""`make bench-xml`: XML documents against many XPath expressions, next to lxml and libxml2.

Paths and documents are random ones of a DTD (tamis_lab.workloads.xml). The more paths, the more values there
are to compare with, so that matches grow more slowly than paths. Documents come one by one on one thread.

    parse        reading and checking the document alone
    match        Index.count({"doc": text}), parse included
    lxml         etree.fromstring, then every compiled path on its own (up to 10,000 paths)
    bytes        of the index per path, and beyond a subscription of one predicate, `x = 7`
    build        paths per second by Index.add_many and Index.optimize
    insert       paths per second by Index.add, one at a time, into an index of this size

A second table has 1,000 paths without predicates, because libxml2's streaming patterns do not support them:
bench/xml_patterns.c, which is compiled for it, reads a document with all patterns at once. A third one is
about the targets: 1,000,000 paths, 10 KB and about 1,000 matches in 2 ms, and the growth from 10,000 paths.

Each document is matched several times, and its fastest time counts; the table has the median over documents.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from lxml import etree
from rich.console import Console
from rich.table import Table

import tamis
from tamis._kernel import xml_fault
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.workloads.xml import KINDS, documents, paths

ROOT = Path(__file__).parent.parent
MOST_LXML = 10_000
INSERTED = 200
SCALES = {"1K": 1_000, "10K": 10_000, "100K": 100_000, "1M": 1_000_000}
# Predicates per path, so that about 1,000 paths match a document of 10 KB.
CONSTANT_MATCHES = {10_000: 0.7, 1_000_000: 2.5}
# Kind, size and depth of documents.
SHAPES = (("news", 10_000, 8), ("auction", 10_000, 8), ("news", 2_000, 4), ("news", 50_000, 12))


def settings(count: int) -> dict[str, Any]:
    """Paths and documents for this many paths: how many values a name has grows with them."""
    return {"values": max(20, count // 25), "skew": 0.9}


def in_turns(of_documents: list[Callable[[], object]], repeat: int) -> float:
    """Milliseconds a document: the median of the fastest times.

    Documents come in turns, because one that was just read is not read again.
    """
    rounds = [[fastest(once, 1) for once in of_documents] for _ in range(repeat)]
    return statistics.median(min(times) for times in zip(*rounds, strict=True))


def fastest(once: Callable[[], object], repeat: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        once()
        times.append(time.perf_counter() - started)
    return 1e3 * min(times)


def build(expressions: list[str]) -> tuple[tamis.Index, float]:
    """An index, laid out for good, and the seconds that it took."""
    index = tamis.Index()
    started = time.perf_counter()
    index.add_many(range(len(expressions)), expressions)
    index.optimize()
    return index, time.perf_counter() - started


def lxml_side(texts: list[str], written: list[str], expected: list[int], repeat: int) -> float:
    """Milliseconds for all paths, one by one; they must find as many."""
    compiled = [etree.XPath(f"boolean({path})") for path in written]
    times = []
    for text, matches in zip(texts, expected, strict=True):
        data = text.encode()

        def once(data: bytes = data) -> int:
            tree = etree.ElementTree(etree.fromstring(data))
            return sum(path(tree) for path in compiled)

        if once() != matches:
            raise SystemExit("lxml finds other matches")
        times.append(fastest(once, repeat))
    return statistics.median(times)


def compiled_patterns(folder: Path) -> Path | None:
    """The program that runs libxml2's streaming patterns; `None` if it cannot be compiled here."""
    program = folder / "xml_patterns"
    config = shutil.which("xml2-config")
    flags = ["-I/usr/include/libxml2", "-lxml2"]
    if config is not None:
        asked = subprocess.run([config, "--cflags", "--libs"], capture_output=True, text=True, check=True)
        flags = asked.stdout.split()
    command = ["cc", "-O2", "-o", program, ROOT / "bench" / "xml_patterns.c", *flags]
    if shutil.which("cc") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    return program


def without_predicates(options: argparse.Namespace) -> list[dict[str, Any]]:
    """1,000 paths of names and axes only, on documents of 10 KB: Tamis, libxml2's patterns, lxml."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        program = compiled_patterns(folder)
        for kind in dict.fromkeys(kind for kind, _, _ in SHAPES):
            shape = {"kind": kind, "seed": options.seed}
            written = list(paths(1000, predicates=0, depth=8, wildcard=0.2, descendant=0.3, **shape))
            texts = list(documents(min(10, options.documents), size=10_000, depth=8, **shape))
            index, _ = build([f"xpath(doc, '{path}')" for path in written])
            found = [index.count({"doc": text}) for text in texts]
            match = in_turns([partial(index.count, {"doc": text}) for text in texts], options.repeat)
            row = {"kind": kind, "matches": statistics.mean(found), "match_ms": match}
            row["lxml_ms"] = lxml_side(texts, written, found, 2)
            if program is not None:
                row["patterns_ms"] = patterns_side(program, folder, texts, written, found)
            rows.append(row)
    return rows


def patterns_side(
    program: Path, folder: Path, texts: list[str], written: list[str], expected: list[int]
) -> float:
    """Milliseconds of libxml2's patterns for a document, reading included; they must find as many."""
    (folder / "patterns").write_text("\n".join(written))
    files = [folder / f"{number}.xml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    run = subprocess.run(
        [program, "3", folder / "patterns", *files], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in run.stdout.splitlines()]
    if [int(found) for found, _, _ in lines] != expected:
        raise SystemExit("libxml2's patterns find other matches")
    return statistics.median(float(microseconds) for _, _, microseconds in lines) / 1e3


def at_constant_matches(options: argparse.Namespace) -> list[dict[str, Any]]:
    """News at 10,000 and at 1,000,000 paths, with so many predicates that about 1,000 paths match in both."""
    rows = []
    for count, predicates in CONSTANT_MATCHES.items():
        some = {"kind": "news", "values": 40_000, "skew": 0.9, "seed": options.seed}
        written = list(paths(count, predicates=predicates, depth=8, **some))
        texts = list(documents(options.documents, size=10_000, depth=8, **some))
        escaped = [path.replace("'", "\\'") for path in written]
        index, _ = build([f"xpath(doc, '{path}')" for path in escaped])
        found = [index.count({"doc": text}) for text in texts]
        match = in_turns([partial(index.count, {"doc": text}) for text in texts], options.repeat)
        parse = in_turns([partial(xml_fault, text) for text in texts], options.repeat)
        rows.append(
            {
                "paths": count,
                "matches": statistics.mean(found),
                "parse_ms": parse,
                "match_ms": match,
                "bytes_per_path": index.stats()["index_bytes"] / count,
            }
        )
    return rows


def measure(count: int, plain_bytes: float, options: argparse.Namespace) -> list[dict[str, Any]]:
    """All shapes of documents on one number of paths."""
    rows = []
    kinds = dict.fromkeys(kind for kind, _, _ in SHAPES)
    for kind in kinds:
        some = settings(count) | {"kind": kind, "seed": options.seed}
        made = paths(count + INSERTED, predicates=2.2, depth=8, **some)
        written = list(islice(made, count))
        escaped = [path.replace("'", "\\'") for path in [*written, *made]]
        expressions = [f"xpath(doc, '{path}')" for path in escaped]
        index, seconds = build(expressions[:count])
        for _, size, depth in (shape for shape in SHAPES if shape[0] == kind):
            texts = list(documents(options.documents, size=size, depth=depth, **some))
            found = [index.count({"doc": text}) for text in texts]
            match = in_turns([partial(index.count, {"doc": text}) for text in texts], options.repeat)
            parse = in_turns([partial(xml_fault, text) for text in texts], options.repeat)
            row = {
                "paths": count,
                "kind": kind,
                "document_bytes": statistics.mean(len(text) for text in texts),
                "depth": depth,
                "matches": statistics.mean(found),
                "parse_ms": parse,
                "match_ms": match,
                "bytes_per_path": index.stats()["index_bytes"] / count,
                "paths_per_second_built": count / seconds,
            }
            row["bytes_beyond_one_predicate"] = row["bytes_per_path"] - plain_bytes
            if count <= MOST_LXML:
                few = max(1, len(texts) * 1000 // count // 4)
                row["lxml_ms"] = lxml_side(texts[:few], written, found[:few], 2)
                row["times_lxml"] = row["lxml_ms"] / row["match_ms"]
            rows.append(row)
        started = time.perf_counter()
        for at in range(count, len(expressions)):
            index.add(at, expressions[at])
        inserted = (len(expressions) - count) / (time.perf_counter() - started)
        for row in rows:
            row.setdefault("paths_per_second_inserted", inserted)
    return rows


def print_table(rows: list[dict[str, Any]], circumstances: str) -> None:
    """A row per number of paths and shape of documents."""
    table = Table(caption=circumstances, caption_justify="left", box=None, pad_edge=False)
    heads = "paths kind bytes depth matches parse match lxml times bytes/path beyond build/s insert/s"
    for head in heads.split():
        table.add_column(head, justify="right")
    for row in rows:
        lxml = [f"{row['lxml_ms']:,.2f}", f"{row['times_lxml']:,.0f}"] if "lxml_ms" in row else ["", ""]
        table.add_row(
            f"{row['paths']:,}",
            row["kind"],
            f"{row['document_bytes']:,.0f}",
            str(row["depth"]),
            f"{row['matches']:,.0f}",
            f"{row['parse_ms']:.3f}",
            f"{row['match_ms']:.3f}",
            *lxml,
            f"{row['bytes_per_path']:.0f}",
            f"{row['bytes_beyond_one_predicate']:.0f}",
            f"{row['paths_per_second_built']:,.0f}",
            f"{row['paths_per_second_inserted']:,.0f}",
        )
    Console(width=max(150, Console().width)).print(table)


def print_without_predicates(rows: list[dict[str, Any]]) -> None:
    """Tamis, libxml2's patterns and lxml on paths without predicates."""
    table = Table(title="1,000 paths without predicates", title_justify="left", box=None, pad_edge=False)
    for head in ("kind", "matches", "match", "libxml2's patterns", "times", "lxml", "times"):
        table.add_column(head, justify="right")
    for row in rows:
        patterns = row.get("patterns_ms")
        table.add_row(
            row["kind"],
            f"{row['matches']:,.0f}",
            f"{row['match_ms']:.3f}",
            "no cc or libxml2" if patterns is None else f"{patterns:.2f}",
            "" if patterns is None else f"{patterns / row['match_ms']:,.0f}",
            f"{row['lxml_ms']:.2f}",
            f"{row['lxml_ms'] / row['match_ms']:,.0f}",
        )
    Console().print(table)


def print_constant_matches(rows: list[dict[str, Any]]) -> None:
    """The two numbers of paths, and how much longer the larger one takes."""
    table = Table(title="at about 1,000 matches", title_justify="left", box=None, pad_edge=False)
    for head in ("paths", "matches", "parse", "match", "growth", "bytes/path"):
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            f"{row['paths']:,}",
            f"{row['matches']:,.0f}",
            f"{row['parse_ms']:.3f}",
            f"{row['match_ms']:.3f}",
            f"{row['match_ms'] / rows[0]['match_ms']:.2f}",
            f"{row['bytes_per_path']:.0f}",
        )
    Console().print(table)


def main() -> None:
    """Read the command line, measure, print, write bench/results/xml.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scales", nargs="+", choices=SCALES, default=list(SCALES), metavar="SCALE")
    parser.add_argument("--documents", type=int, default=40, help="of each shape")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "xml.json")
    options = parser.parse_args()
    assert all(kind in KINDS for kind, _, _ in SHAPES)
    rows = []
    for scale in options.scales:
        count = SCALES[scale]
        plain, _ = build([f"x = {number}" for number in range(count)])
        rows += measure(count, plain.stats()["index_bytes"] / count, options)
        del plain
    environment = describe(options.seed)
    print_table(rows, one_line(environment))
    report: dict[str, Any] = {"environment": environment, "results": rows}
    if "1K" in options.scales:
        report["without_predicates"] = without_predicates(options)
        print_without_predicates(report["without_predicates"])
    if "1M" in options.scales:
        report["constant_matches"] = at_constant_matches(options)
        print_constant_matches(report["constant_matches"])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
