"""A site on SQLite that is restored from an older copy."""

import shutil
import sqlite3
from pathlib import Path


def back_up(path: Path) -> None:
    """Keep a copy beside a log, made as SQLite wants it."""
    source, target = sqlite3.connect(path), sqlite3.connect(path.with_suffix(".backup"))
    with target:
        source.backup(target)
    source.close()
    target.close()


def restore(path: Path) -> None:
    """Put the copy in place, as another file: links may still have the old one open."""
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(path.with_suffix(".backup"), path.with_suffix(".restored"))
    path.with_suffix(".restored").replace(path)
