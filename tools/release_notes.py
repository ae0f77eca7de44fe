"""Print the changes of a version from CHANGELOG.md; refuse a version that is not ready to be released.

Usage: python tools/release_notes.py VERSION
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notes(version: str, root: Path = ROOT) -> str:
    """The changes of `version`, without its heading."""
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if version != declared:
        sys.exit(f"the tag says {version}, pyproject.toml {declared}: set the version first")
    heading = rf"^## {re.escape(version)}(?: \((?P<when>[^)\n]+)\))?\n(?P<changes>.*?)(?=^## |\Z)"
    found = re.search(heading, (root / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"CHANGELOG.md has no section for {version}")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found["when"] or ""):
        state = found["when"] or "undated"
        sys.exit(f"CHANGELOG.md calls {version} {state}: give it the date of its release")
    return found["changes"].strip()


if __name__ == "__main__":
    print(notes(sys.argv[1]))
