"""What a release must agree on: one version everywhere, and a changelog that knows it."""

import re
import tomllib
from pathlib import Path

import pytest

import tamis

ROOT = Path(__file__).parent.parent
VERSION = tamis.__version__
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def toml(name: str) -> dict[str, object]:
    return tomllib.loads((ROOT / name).read_text())


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ("Cargo.toml", "workspace.package.version"),
        ("pyproject.toml", "project.version"),
        ("lab/pyproject.toml", "project.version"),
    ],
)
def test_there_is_one_version(manifest: str, path: str) -> None:
    found: object = toml(manifest)
    for key in path.split("."):
        assert isinstance(found, dict)
        found = found[key]
    assert found == VERSION


@pytest.mark.parametrize("lock", ["Cargo.lock", "fuzz/Cargo.lock", "uv.lock"])
def test_lock_files_know_it(lock: str) -> None:
    packages = toml(lock)["package"]
    assert isinstance(packages, list)
    ours = {
        package["name"]: package["version"]
        for package in packages
        if package["name"].startswith("tamis") and package["name"] != "tamis-fuzz"
    }
    assert ours
    assert set(ours.values()) == {VERSION}, ours


def test_the_changelog_begins_with_it() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)(?: \((.+)\))?$", CHANGELOG, re.MULTILINE)
    assert len(versions) == len(re.findall(r"^## ", CHANGELOG, re.MULTILINE))
    assert versions[0][0] == VERSION
    order = [tuple(map(int, version.split("."))) for version, _ in versions]
    assert order == sorted(order, reverse=True)
    assert all(re.fullmatch(r"unreleased|\d{4}-\d{2}-\d{2}|", when) for _, when in versions)


def test_changes_are_sorted_by_kind() -> None:
    newest = CHANGELOG.split("\n## ")[1]
    kinds = re.findall(r"^### (.+)$", newest, re.MULTILINE)
    assert kinds == [kind for kind in ["Added", "Changed", "Removed", "Fixed", "Security"] if kind in kinds]
    before_kinds = newest.split("\n### ")[0].splitlines()[1:]
    assert not any(line.startswith("- ") for line in before_kinds)
