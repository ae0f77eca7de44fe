"""The notebook is executed from its first cell, and its stored outputs and pictures are what it shows."""

from pathlib import Path

import nbformat
import pytest

import run_notebook

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "campaigns.ipynb"


@pytest.mark.thorough
def test_the_notebook_runs_and_shows_what_is_stored() -> None:
    shown, stored = run_notebook.executed(NOTEBOOK), nbformat.read(NOTEBOOK, as_version=4)
    assert [kinds(cell) for cell in shown.cells] == [kinds(cell) for cell in stored.cells]
    texts = [[output["data"]["text/plain"] for output in cell.get("outputs", [])] for cell in shown.cells]
    assert texts == [
        [output["data"]["text/plain"] for output in cell.get("outputs", [])] for cell in stored.cells
    ]
    tree, chart = run_notebook.pictures(shown)
    assert tree == (ROOT / "docs" / "images" / "campaigns-1.svg").read_text(encoding="utf-8")
    assert "winter-sale" in tree + chart
    assert (ROOT / "docs" / "images" / "campaigns-2.svg").read_text(encoding="utf-8").startswith("<svg")


def kinds(cell: nbformat.NotebookNode) -> list[list[str]]:
    return [sorted(output.get("data", {})) for output in cell.get("outputs", [])]
