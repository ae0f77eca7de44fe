"""`tools/bootstrap.py`: a Python that is new enough, and uv, from whatever Python the machine has."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "bootstrap.py"
UV_VERSION = re.findall(r"^UV_VERSION := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0]

PRETEND_TO_BE_OLD = """
import platform, runpy, sys
sys.version_info = (3, 9, 18, "final", 0)
platform.python_version = lambda: "3.9.18"
del sys.argv[0]
sys.path.insert(0, sys.argv[0].rsplit("/", 1)[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def bootstrap(folder: Path, *, old: bool, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run the script with the Python of the tests, which may pretend to be 3.9."""
    start = [sys.executable, "-c", PRETEND_TO_BE_OLD] if old else [sys.executable]
    command = [*start, SCRIPT, folder, UV_VERSION]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)


@pytest.mark.parametrize("name", ["bootstrap.py", "attempt.py"])
def test_python_3_8_can_read_it(name: str) -> None:
    ast.parse((SCRIPT.parent / name).read_text(), feature_version=(3, 8))


@pytest.mark.thorough
def test_without_a_package_index_it_says_what_is_missing(tmp_path: Path) -> None:
    done = bootstrap(tmp_path / "tools", old=False, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode != 0
    assert "Installing uv with pip failed" in done.stderr
    assert "The first build needs a package index" in done.stderr


@pytest.mark.slow  # downloads uv twice
def test_an_old_python_is_replaced_by_a_newer_one(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    done = bootstrap(tools, old=True)
    assert done.returncode == 0, done.stderr
    assert f"{sys.executable} is 3.9.18; using Python 3." in done.stdout
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    subprocess.run([tools / "bin" / "python", "-c", new_enough], check=True)
    shown = subprocess.run([tools / "bin" / "uv", "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.startswith(f"uv {UV_VERSION}")


@pytest.mark.slow  # downloads uv
def test_where_no_newer_python_can_be_had_it_says_so(tmp_path: Path) -> None:
    settings = {"UV_PYTHON_PREFERENCE": "only-managed", "UV_PYTHON_INSTALL_MIRROR": "file:///nowhere"}
    done = bootstrap(tmp_path / "tools", old=True, **settings)
    assert done.returncode != 0
    assert f"Tamis needs Python 3.11 or later; {sys.executable} is 3.9.18" in done.stderr
    assert "set PYTHON=" in done.stderr
