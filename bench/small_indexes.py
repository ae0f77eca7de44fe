"""`make bench-small`: indexes of a few rules, next to the same rules as comparisons written by hand.

The rules of each workload become a Rust program that compares fields of a struct with constants, compiled
with `rustc -O`. It counts the matches of events that were read into such structs. The kernel counts those of
events that were read and resolved (`crates/tamis-core/examples/small_indexes.rs`). Both run in turns, and
must find as many.

The comparisons are those that a person would write: an absent number is the smallest one, which is below no
constant, and a rule is an expression of `&&` and `||`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.workloads import AbeGen, Conjunctive, Dense, Equality, Workload

ROOT = Path(__file__).parent.parent
WITH_RUST = [sys.executable, str(ROOT / "tools" / "with_rust.py")]
RESULTS = ROOT / "bench" / "results"
SEED = 1
EVENTS = 256
ABSENT = "i32::MIN"

WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "conjunctive": lambda rules: Conjunctive(count=rules, seed=SEED),
    "equality": lambda rules: Equality(count=rules, seed=SEED),
    "arbitrary": lambda rules: AbeGen(count=rules, seed=SEED),
    "dense": lambda rules: Dense(count=rules, seed=SEED),
}

PROGRAM = """
use std::hint::black_box;
use std::time::Instant;

pub struct Event {{ {fields} }}

#[inline(never)]
pub fn count(e: &Event) -> usize {{
    {rules}
}}

fn events() -> Vec<Event> {{
    vec![{events}]
}}

fn main() {{
    let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let events = events();
    let mut matches = 0;
    for _ in 0..rounds {{
        let start = Instant::now();
        matches = 0;
        for event in &events {{
            matches += count(black_box(event));
        }}
        println!("{{}}", start.elapsed().as_nanos() as f64 / events.len() as f64);
    }}
    println!("{{matches}}");
}}
"""


@dataclass(frozen=True)
class Truth:
    """Rust for "it is true" and "it is false"; neither holds where an attribute is absent."""

    true: str
    false: str


def truth(node: dict[str, Any]) -> Truth:
    """An expression as Rust.

    >>> truth(json.loads(tamis.parse("NOT (a < 5 AND b <> 3)").to_json())).true
    '(e.a >= 5 || e.b == 3)'
    """
    if "not" in node:
        inner = truth(node["not"])
        return Truth(inner.false, inner.true)
    for operator in "and", "or", "xor", "xnor":
        if operator in node:
            return _joined(operator, [truth(child) for child in node[operator]])
    return _predicate(node)


def _joined(operator: str, parts: list[Truth]) -> Truth:
    def join(symbol: str, texts: list[str]) -> str:
        return "(" + f" {symbol} ".join(texts) + ")"

    if operator in ("and", "or"):
        symbols = ("&&", "||") if operator == "and" else ("||", "&&")
        return Truth(join(symbols[0], [p.true for p in parts]), join(symbols[1], [p.false for p in parts]))
    first, second = parts
    same = f"(({first.true} && {second.true}) || ({first.false} && {second.false}))"
    other = f"(({first.true} && {second.false}) || ({first.false} && {second.true}))"
    return Truth(other, same) if operator == "xor" else Truth(same, other)


def _predicate(node: dict[str, Any]) -> Truth:
    name, operands = f"e.{node['attribute']}", [json.dumps(operand) for operand in node["operands"]]
    is_text = isinstance(node["operands"][0], str)
    absent = '""' if is_text else ABSENT

    def present(text: str) -> str:
        return f"({name} != {absent} && {text})"

    opposites = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    operator = node["operator"]
    if operator in opposites:
        tests = {symbol: f"{name} {symbol} {operands[0]}" for symbol in opposites}
        guarded = {symbol: present(test) if "<" in symbol else test for symbol, test in tests.items()}
        both = Truth(guarded[operator], guarded[opposites[operator]])
    elif operator == "BETWEEN":
        low, high = operands
        both = Truth(
            f"({low} <= {name} && {name} <= {high})", present(f"({name} < {low} || {name} > {high})")
        )
    elif operator in ("=", "IN"):
        equal = " || ".join(f"{name} == {operand}" for operand in operands)
        both = Truth(f"({equal})" if len(operands) > 1 else equal, present(f"!({equal})"))
    else:
        raise ValueError(f"no workload has {operator}")
    return Truth(both.false, both.true) if node.get("negated") else both


def program(expressions: Sequence[str], events: Sequence[dict[str, Any]]) -> str:
    """A Rust program of the rules, with the events."""
    parsed = [tamis.parse(expression) for expression in expressions]
    names = sorted({name for expression in parsed for name in expression.attributes})
    texts = {name for event in events for name, value in event.items() if isinstance(value, str)}
    types = {name: "&'static str" if name in texts else "i32" for name in names}
    absent = {name: '""' if name in texts else ABSENT for name in names}
    structs = [
        "Event {"
        + ", ".join(f"{n}: {json.dumps(event[n]) if n in event else absent[n]}" for n in names)
        + "}"
        for event in events
    ]
    rules = [f"({truth(json.loads(expression.to_json())).true}) as usize" for expression in parsed]
    return PROGRAM.format(
        fields=", ".join(f"{name}: {types[name]}" for name in names),
        rules=" +\n    ".join(rules),
        events=",\n".join(structs),
    )


def compile_comparisons(source: str, folder: Path) -> Path:
    """The program, compiled."""
    (folder / "comparisons.rs").write_text(source)
    program = folder / "comparisons"
    command = [*WITH_RUST, "rustc", "-O", "--edition", "2024", "-A", "warnings"]
    subprocess.run([*command, "-o", str(program), str(folder / "comparisons.rs")], check=True)
    return program


def compile_kernel(profile: str) -> Path:
    """The example of the kernel, compiled."""
    command = [*WITH_RUST, "cargo", "build", "--quiet", "--locked", "--profile", profile]
    subprocess.run([*command, "-p", "tamis-core", "--example", "small_indexes"], check=True, cwd=ROOT)
    return ROOT / "target" / profile / "examples" / "small_indexes"


def run(command: Sequence[str]) -> tuple[float, int]:
    """The least nanoseconds per event over the rounds of a program, and the matches that it found."""
    *times, matches = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return min(map(float, times)), int(matches)


def measure(kernels: Sequence[Path], workload: Workload, turns: int, rounds: int) -> dict[str, Any]:
    """Nanoseconds per event of each program, in the median over the turns."""
    expressions = workload.subscriptions_table()["expression"].to_pylist()
    events = workload.events_dicts(EVENTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rules.txt").write_text("".join(f"{expression}\n" for expression in expressions))
        (folder / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
        comparisons = compile_comparisons(program(expressions, events), folder)
        files = [str(folder / "rules.txt"), str(folder / "events.jsonl")]
        commands = [[str(comparisons), str(rounds)]]
        commands += [[str(kernel), *files, str(rounds)] for kernel in kernels]
        measured = [[run(command) for command in commands] for _ in range(turns)]
    found = {matches for turn in measured for _, matches in turn}
    if len(found) > 1:
        raise SystemExit(f"both must find the same, not {sorted(found)}")
    by_hand, *by_kernels = (
        statistics.median(turn[at][0] for turn in measured) for at in range(len(commands))
    )
    return {"matches": found.pop() / EVENTS, "comparisons": by_hand, "kernels": by_kernels}


def main() -> None:
    """Measure, print a table, write bench/results/small_indexes.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", nargs="*", type=int, default=[5, 10, 30, 100], help="how many")
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--turns", type=int, default=5, help="how often each program runs")
    parser.add_argument("--rounds", type=int, default=300, help="how often a program sees the events")
    parser.add_argument("--profile", default="release", help="how the kernel is compiled")
    parser.add_argument(
        "--kernels", nargs="*", type=Path, help="compiled examples, instead of that of this tree"
    )
    arguments = parser.parse_args()
    environment = describe(SEED)
    console = Console()
    console.print(one_line(environment))
    kernels = arguments.kernels or [compile_kernel(arguments.profile)]
    columns = [column for _ in kernels for column in ("kernel, ns", "ratio")]
    table = Table("workload", "rules", "matches", "comparisons, ns", *columns)
    results = []
    for name in arguments.workloads:
        for rules in arguments.rules:
            result = measure(kernels, WORKLOADS[name](rules), arguments.turns, arguments.rounds)
            results.append({"workload": name, "rules": rules, **result})
            by_hand = result["comparisons"]
            times = [text for ns in result["kernels"] for text in (f"{ns:.0f}", f"{ns / by_hand:.2f}")]
            table.add_row(name, str(rules), f"{result['matches']:.2f}", f"{by_hand:.0f}", *times)
    console.print(table)
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = {"environment": environment, "results": results}
    (RESULTS / "small_indexes.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
