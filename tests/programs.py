"""Programs for tests: a PATH that hides some of the machine's, and small scripts in the place of others."""

import os
from pathlib import Path

COMPILERS = ("cc", "gcc", "clang", "c99", "c89", "tcc", "zig")
RUST = ("cargo", "rustc", "rustup")


def path_without(folder: Path, *hidden: str) -> str:
    """A PATH with every program of the machine but those that are named (a folder of links)."""
    folder.mkdir(parents=True)
    for place in os.get_exec_path():
        for program in Path(place).glob("*"):
            link = folder / program.name
            if program.name not in hidden and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def script(path: Path, *lines: str) -> Path:
    """A shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path
