"""The pipeline that `tamis spark init` writes: files to start from, and to change."""

import shutil
from pathlib import Path

from tamis.errors import ArgumentError

FILES = ("README.md", "pipeline.py", "events/first.json", "rules/first.json", "queries/first.json")


def write_template(folder: Path) -> list[Path]:
    """Write the files of the pipeline into a folder that has none of them; their paths.

    >>> import tempfile
    >>> [path.name for path in write_template(Path(tempfile.mkdtemp()) / "alerts")]
    ['README.md', 'pipeline.py', 'first.json', 'first.json', 'first.json']
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise ArgumentError(f"{folder} already has {', '.join(there)}: name another folder, or remove them")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(__file__).parent / name, folder / name)
    return [folder / name for name in FILES]
