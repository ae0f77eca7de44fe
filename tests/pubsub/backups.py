"""A site on SQLite that is restored from an older copy."""

import shutil
import sqlite3
from pathlib import Path


def back_up(path: Path) -> None:
    """Keep a copy beside a log."""
    _copy(path, path.with_suffix(".backup"))


def restore(path: Path, *, is_in_place: bool = False) -> None:
    """Put the copy in place: as another file, as links may still have the old one open; or into the same."""
    if is_in_place:
        _copy(path.with_suffix(".backup"), path)
        return
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(path.with_suffix(".backup"), path.with_suffix(".restored"))
    path.with_suffix(".restored").replace(path)


def _copy(path: Path, target_path: Path) -> None:
    """As SQLite wants it."""
    source, target = sqlite3.connect(path), sqlite3.connect(target_path)
    with target:
        source.backup(target)
    source.close()
    target.close()
