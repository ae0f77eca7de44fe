"""Run the Python blocks of a Markdown page: in the tests, and by itself where only Tamis is installed.

Blocks run in order and share their names. A line that ends in `# -> X` must have a value that Python shows
as X.

Usage: python tests/code_blocks.py PAGE [PACKAGE ...]    leaves out blocks that import one of the packages
"""

import ast
import re
import sys
from pathlib import Path
from typing import Any


def blocks(page: Path, language: str) -> list[str]:
    """The fenced code blocks of one language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(code: str, names: dict[str, Any]) -> None:
    """Run a block; check each expression that ends in `# -> X`."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        source = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        if isinstance(statement, ast.Expr) and "  # -> " in source:
            shown = source.rsplit("  # -> ", 1)[1]
            value = eval(compile(ast.Expression(statement.value), "<docs>", "eval"), names)
            assert repr(value) == shown, f"{source}\n{value!r}"
        else:
            exec(compile(ast.Module([statement], []), "<docs>", "exec"), names)


def main(page: Path, absent: list[str]) -> None:
    """Run the blocks of a page that need no absent package, and say how many those were."""
    imports = re.compile(rf"^\s*(import|from) ({'|'.join(map(re.escape, absent))})\b", re.MULTILINE)
    wanted = [block for block in blocks(page, "python") if not (absent and imports.search(block))]
    names: dict[str, Any] = {}
    for block in wanted:
        run(block, names)
    print(f"{page.name}: {len(wanted)} blocks run")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
