"""Files that use Spark share three sessions: none is missed by how it writes the type of the fixture."""

import ast
from pathlib import Path

from scheduling import ROOT, uses_spark


def takes_spark(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(
        test.name.startswith("test_") and "spark" in [argument.arg for argument in test.args.args]
        for test in tests
    )


def test_every_file_that_uses_spark_is_known() -> None:
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if takes_spark(file)]
    assert len(files) > 10
    assert [str(file) for file in files if not uses_spark(str(file.relative_to(ROOT)))] == []
