"""The examples of docs/command-line.md, run in order in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import RULES

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.thorough
def test_every_example(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "tamis"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tamis.cli "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    (tmp_path / "rules.csv").write_text(RULES.replace("q4;north", "north").replace("2.0,q4", "2.0,europe"))
    (tmp_path / "events.jsonl").write_text(
        '{"age": 27, "country": "CA", "user": "ann"}\n'
        '{"age": 12, "country": "CH", "user": "bob"}\n'
        '{"age": 40, "country": "FR", "user": "eve"}\n'
    )
    (tmp_path / "logins.yaml").write_text(
        "streams:\n  logins: {time: ts}\nqueries:\n  burst: count(* WHERE NOT ok BY user LAST 10m) >= 2\n"
    )
    paths = ["id,expression", "1,\"xpath(doc, '//title')\"", "2,\"xpath(doc, '/ad')\""]
    (tmp_path / "paths.csv").write_text("\n".join(paths) + "\n")
    (tmp_path / "stories").mkdir()
    (tmp_path / "stories" / "one.xml").write_text("<news><title>Rain</title></news>")
    (tmp_path / "bad.csv").write_text("id,expression\n1,age > 20\n2,age > AND\n")

    examples = [example for block in BLOCKS for example in block.split("$ ")[1:]]
    assert len(examples) > 10
    for example in examples:
        line, expected = example.split("\n", 1)
        finished = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        if finished.stdout != expected:
            pytest.fail(f"$ {line}\nexpected:\n{expected}\nshown:\n{finished.stdout}")
