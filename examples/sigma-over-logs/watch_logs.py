"""Sigma rules over a stream of log records: tail -F events.jsonl | python watch_logs.py rules/.

Each line is one record as JSON. Alerts are JSON lines too, the most severe first, as soon as a line is read.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tamis
from tamis.importers import sigma

LEVELS = ("informational", "low", "medium", "high", "critical")


def load_rules(folder: str) -> tamis.Index:
    """The rules of a folder as one index; rules that cannot be imported are reported."""
    report = sigma.read(sorted(Path(folder).rglob("*.yml")), keywords_in=["message"])
    print(report, file=sys.stderr)
    return report.to_index()


def alerts(rules: tamis.Index, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The matches of the lines of a log; a line that is not a record is reported as an error."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = rules.top_k(line, k=len(rules))
        except tamis.TamisError as error:
            yield {"line": number, "error": str(error).splitlines()[0]}
            continue
        for match, payload in zip(found, rules.payloads([match.id for match in found]), strict=True):
            title = json.loads(payload)["title"] if payload else match.id
            yield {"line": number, "level": LEVELS[int(match.score)], "rule": match.id, "title": title}


if __name__ == "__main__":
    for alert in alerts(load_rules(sys.argv[1]), sys.stdin):
        print(json.dumps(alert), flush=True)
