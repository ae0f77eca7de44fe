"""Who may import whom: `tamis_lab` uses `tamis` and never the other way round, docstrings included."""

import ast
import doctest
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "src" / "tamis"
LAB = ROOT / "lab" / "src" / "tamis_lab"


def imports(source: str) -> Iterator[str]:
    """The modules that a text imports, wherever in it: at the top, in functions, in docstring examples."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "modules are imported by their full names"
            yield str(node.module)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for example in doctest.DocTestParser().get_examples(ast.get_docstring(node) or ""):
                yield from imports(example.source)


def tops(module: Path) -> set[str]:
    """The top-level packages that a module imports."""
    return {name.partition(".")[0] for name in imports(module.read_text(encoding="utf-8"))}


@cache
def declared(folder: Path) -> set[str]:
    """The packages that a distribution says it needs, extras included, as they are imported."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed: list[Any] = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        needed += extra
    names = {normal(need.split("[")[0].split(">")[0].split("=")[0]) for need in needed}
    return {
        module
        for module, distributions in packages_distributions().items()
        if names & {normal(distribution) for distribution in distributions}
    }


def normal(name: str) -> str:
    return name.strip().lower().replace("_", "-")


@pytest.mark.parametrize(
    "module", sorted(LIBRARY.rglob("*.py")), ids=lambda path: str(path.relative_to(LIBRARY))
)
def test_the_library_needs_nothing_of_the_laboratory(module: Path) -> None:
    allowed = {"tamis", *sys.stdlib_module_names, *declared(ROOT), "pydantic_core"}
    assert tops(module) <= allowed


@pytest.mark.parametrize("module", sorted(LAB.rglob("*.py")), ids=lambda path: str(path.relative_to(LAB)))
def test_the_laboratory_needs_the_library_and_what_it_declares(module: Path) -> None:
    # PySpark comes with the extra; rivals and an S3 server are tried where they are installed.
    tried = {"pyspark", "zen", "json_logic", "moto"}
    allowed = {"tamis", "tamis_lab", *sys.stdlib_module_names, *declared(ROOT / "lab"), *tried}
    assert tops(module) <= allowed


@pytest.mark.parametrize("module", sorted((LIBRARY / "store").rglob("*.py")), ids=lambda path: path.name)
def test_the_store_needs_no_spark(module: Path) -> None:
    named = set(imports(module.read_text(encoding="utf-8")))
    assert not {name for name in named if name.startswith(("tamis.spark", "pyspark"))}


def test_the_check_sees_every_kind_of_import() -> None:
    source = (
        '"""Doc.\n\n>>> import a.b\n"""\nimport c\ndef f():\n    """F.\n\n    >>> from d import x\n    """\n'
        "    from e.f import g\nif TYPE_CHECKING:\n    import h\n"
    )
    assert set(imports(source)) == {"a.b", "c", "d", "e.f", "h"}
    assert any("tamis" in tops(module) for module in LAB.rglob("*.py"))
