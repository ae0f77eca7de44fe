"""The package of a commit, compiled with that commit's release profile and kept for the next comparison.

    .compare/checkout          one working tree, moved from commit to commit
    .compare/target            what cargo compiled, shared by all commits
    .compare/built/<tree>/     the unpacked wheel of one tree: a folder that holds `tamis` with its library

Builds are identified by the hash of the tree, so two commits with the same files share one.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".compare"
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench/compare"), ("EMAIL", "compare@localhost"))
}


class BuildError(Exception):
    """A side of the comparison could not be made, and why."""


@dataclass(frozen=True)
class Build:
    """One side: what it is called, and the folder in which Python finds its `tamis`."""

    name: str
    folder: Path


def library(folder: Path) -> Build:
    """A package that was built before, perhaps on another machine."""
    if not any(folder.glob("tamis/_kernel*.so")):
        raise BuildError(
            f"{folder} has no compiled tamis: expected tamis/_kernel*.so in it, "
            "as in the folders of .compare/built"
        )
    return Build(folder.name[:12], folder.resolve())


def build(commit: str | None, cache: Path) -> Build:
    """The package of a commit; of the working tree as it is, with changes and new files, if there is none."""
    hash_, name = _resolve(commit) if commit else _working_tree()
    tree = _git("rev-parse", f"{hash_}^{{tree}}")
    folder = cache / "built" / tree
    with _lock(cache):
        if not folder.exists():
            _compile(hash_, cache, folder)
    return Build(name, folder)


def _resolve(commit: str) -> tuple[str, str]:
    try:
        hash_ = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise BuildError(f"{commit!r} is no commit; name a branch, a tag or a hash") from None
    return hash_, _git("rev-parse", "--short", hash_)


def _working_tree() -> tuple[str, str]:
    """A commit of the working tree that no branch points to, and its name."""
    head = _git("rev-parse", "HEAD")
    name = _git("rev-parse", "--short", "HEAD")
    if not _git("status", "--porcelain"):
        return head, name
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        _git("read-tree", "HEAD", env=index)
        _git("add", "--all", env=index)
        tree = _git("write-tree", env=index)
    return _git("commit-tree", tree, "-p", head, "-m", "working tree", env=AUTHOR), f"{name}+changes"


def _compile(commit: str, cache: Path, folder: Path) -> None:
    checkout = cache / "checkout"
    if (checkout / ".git").exists():
        _git("checkout", "--quiet", "--force", "--detach", commit, folder=checkout)
    else:
        _git("worktree", "prune")
        _git("worktree", "add", "--quiet", "--force", "--detach", str(checkout), commit)
    wheels = cache / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet"]
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(cache / "target"),
        "PYO3_PYTHON": sys.executable,
    }
    finished = subprocess.run(
        [*command, "--interpreter", sys.executable, "--out", str(wheels)],
        cwd=checkout,
        env=environment,
        check=False,
    )
    if finished.returncode:
        raise BuildError(f"commit {commit} does not compile: maturin ended with {finished.returncode}")
    (wheel,) = wheels.glob("tamis-*.whl")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial)
    partial.rename(folder)


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """One build at a time in a cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _git(*arguments: str, folder: Path | None = None, env: dict[str, str] | None = None) -> str:
    finished = subprocess.run(
        ["git", "-C", str(folder or ROOT), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(env or {})},
    )
    return finished.stdout.strip()
