"""`tools/release_notes.py`: what a release says of itself, and which tags are refused."""

from pathlib import Path

import pytest

import release_notes

CHANGELOG = """# Changelog

## 0.3.0 (2027-01-31)

### Added

- Something.

## 0.2.0 (2026-12-01)

- More.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_the_changes_of_one_version_are_printed(project: Path) -> None:
    assert release_notes.notes("0.3.0", project) == "### Added\n\n- Something."


@pytest.mark.parametrize(
    ("version", "old", "new", "reason"),
    [
        ("0.2.0", "", "", "the tag says 0.2.0, pyproject.toml 0.3.0"),
        ("0.3.0", "## 0.3.0", "## 0.3.1", "no section for 0.3.0"),
        ("0.3.0", "2027-01-31", "unreleased", "calls 0.3.0 unreleased"),
        ("0.3.0", " (2027-01-31)", "", "calls 0.3.0 undated"),
    ],
)
def test_what_is_not_ready_is_refused(project: Path, version: str, old: str, new: str, reason: str) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG.replace(old, new))
    with pytest.raises(SystemExit, match=reason):
        release_notes.notes(version, project)
