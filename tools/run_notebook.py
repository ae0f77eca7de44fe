"""Execute a notebook and keep its output, in the notebook and as pictures for the docs.

Usage: python tools/run_notebook.py examples/campaigns.ipynb docs/images

Pictures are named after the notebook and numbered in the order in which cells show them. The test of the
notebook executes it as well, and compares.
"""

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def executed(notebook: Path) -> Any:
    """The notebook with new outputs; raises `nbclient.exceptions.CellExecutionError` if a cell fails."""
    cells = nbformat.read(notebook, as_version=4)
    client = NotebookClient(cells, timeout=None, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(notebook.parent))
    cells.metadata.pop("language_info", None)
    return cells


def pictures(cells: Any) -> list[str]:
    """The SVG drawings that cells show, on their own or inside HTML."""
    drawn = []
    for cell in cells.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                drawn.append(str(data["image/svg+xml"]))
            elif "text/html" in data:
                drawn += re.findall(r"<svg.*?</svg>", data["text/html"], re.DOTALL)
    return drawn


def main(notebook: Path, images: Path) -> None:
    """Replace the notebook with the executed one, and write its pictures to the docs."""
    cells = executed(notebook)
    nbformat.write(cells, notebook)
    for number, svg in enumerate(pictures(cells), 1):
        picture = images / f"{notebook.stem}-{number}.svg"
        picture.write_text(svg, encoding="utf-8")
        print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
