"""Every example in the documentation about Spark is run.

The examples find the session of the tests by `getOrCreate`.
"""

from pathlib import Path
from types import ModuleType

import pytest

from test_docs import PAGES, folders_of_its_own, modules, needs_spark, run_blocks, run_docstrings

__all__ = ["folders_of_its_own"]  # a fixture

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark", "folders_of_its_own")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if needs_spark(page.stem)], ids=lambda page: page.name
)
@pytest.mark.thorough
def test_python_blocks(page: Path) -> None:
    run_blocks(page)


@pytest.mark.parametrize(
    "module",
    [module for module in modules() if needs_spark(module.__name__)],
    ids=lambda module: module.__name__,
)
@pytest.mark.thorough
def test_docstrings(module: ModuleType) -> None:
    run_docstrings(module)
