"""Every example in the documentation is run: Python blocks, expression examples and docstrings.

Those about Spark are run by `spark/test_docs.py`.

Python blocks of one page run in order and share their names. A line that ends in `# -> X` must have a value
that Python shows as X. On the page about expressions, `tamis-example` blocks are expressions with events and
their truth, and `tamis-error` blocks are expressions with a part of the error they give.
"""

import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tamis
import tamis_lab
from code_blocks import blocks, run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
EXPRESSIONS = ROOT / "docs" / "expressions.md"


@pytest.fixture
def folders_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples make folders and leave them there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def needs_spark(name: str) -> bool:
    """Whether a page or a module has examples about Spark."""
    return "README" in name or bool(re.search(r"\bspark\b", name))


def run_blocks(page: Path) -> None:
    """Run the Python blocks of a page."""
    names: dict[str, Any] = {}
    for code in blocks(page, "python"):
        run(code, names)


@pytest.mark.usefixtures("folders_of_its_own")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if not needs_spark(page.stem)], ids=lambda page: page.name
)
def test_python_blocks(page: Path) -> None:
    run_blocks(page)


def lines(language: str) -> list[str]:
    """The lines of the blocks on the page about expressions."""
    return [line for block in blocks(EXPRESSIONS, language) for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("page", [*ROOT.glob("*.md")], ids=lambda page: page.name)
def test_links_of_pages_outside_the_site(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *PAGES[1:]], ids=lambda page: page.name)
def test_every_table_has_a_header(page: Path) -> None:
    """Rows behind an empty line are no table: they are shown as text."""
    rows = page.read_text().split("\n")
    for number, (before, row, after) in enumerate(zip(["", *rows], rows, [*rows[1:], ""], strict=False), 1):
        if row.startswith("|") and not before.startswith("|"):
            assert re.fullmatch(r"\|[-:| ]+", after), f"line {number}: {row}"


@pytest.mark.thorough
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    for folder in ("docs", "src", "tools"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "site" / "api" / "library" / "index.html").exists()


TRUTHS = {"true": True, "false": False, "undefined": None, "either": "either"}


@pytest.mark.parametrize("line", lines("tamis-example"))
def test_expression_examples(line: str) -> None:
    text, event, truth = line.rsplit(" | ", 2)
    assert tamis.parse(text).evaluate(event) == TRUTHS[truth]


@pytest.mark.parametrize("line", lines("tamis-error"))
def test_expression_errors(line: str) -> None:
    text, part = line.rsplit(" | ", 1)
    with pytest.raises(tamis.ExpressionError, match=re.escape(part)):
        tamis.parse(text)


@cache
def modules() -> list[ModuleType]:
    names = [
        found.name
        for package in (tamis, tamis_lab)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [tamis, tamis_lab, *(importlib.import_module(name) for name in names if name != "tamis._kernel")]


def run_docstrings(module: ModuleType) -> None:
    """Run the examples in the docstrings of a module."""
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.usefixtures("folders_of_its_own")
@pytest.mark.parametrize(
    "module",
    [module for module in modules() if not needs_spark(module.__name__)],
    ids=lambda module: module.__name__,
)
def test_docstrings(module: ModuleType) -> None:
    run_docstrings(module)


@pytest.mark.usefixtures("folders_of_its_own")
def test_kernel_docstrings() -> None:
    """Classes of the compiled module are invisible to `testmod`, which looks for Python source."""
    import tamis._kernel

    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    run_any = 0
    for name, item in vars(tamis._kernel).items():
        for example in finder.find(item, name, module=False, globs={}):
            runner.run(example)
            run_any += len(example.examples)
    assert run_any > 0
    assert runner.failures == 0


def public_items() -> list[tuple[str, Any]]:
    import tamis.spark

    return [
        (f"{module.__name__}.{name}", getattr(module, name))
        for module in (tamis, tamis.spark)
        for name in module.__all__
        if callable(getattr(module, name))
    ]


@pytest.mark.parametrize(("name", "item"), public_items(), ids=[name for name, _ in public_items()])
def test_public_names_have_an_example(name: str, item: Any) -> None:
    assert item.__doc__, f"{name} has no docstring"
    assert ">>> " in item.__doc__, f"the docstring of {name} has no example"
