"""The Makefile with commands that only write down how they were called: what it runs, in which order.

Faults: two kernels are installed at once, or one that is not the profile of its stamp; a Rust test fails and
nobody notices; a machine without a network tests nothing; the tests compile the kernel more than once.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = """#!/usr/bin/env bash
echo "begin $* wrapper ${RUSTC_WORKSPACE_WRAPPER:-none}" >> "$CALLS"
sleep 0.2
echo "end $*" >> "$CALLS"
[[ -z "${FAILING:-}" || "$*" != *"$FAILING"* ]]
"""
PREPARED = [
    "pyproject.toml",
    "uv.lock",
    "lab/pyproject.toml",
    "tools/java_home.py",
    "crates/x.rs",
    "Cargo.toml",
]
PREPARED += ["Cargo.lock", ".tools/bin/uv", ".tools/java/bin/java", ".venv/.synced"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout whose environment is there, and no kernel."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in PREPARED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".tools/bin/python", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(COMMAND)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def make(clone: Path, *arguments: str, failing: str = "") -> tuple[int, list[str]]:
    """The exit status, and what was called."""
    calls = clone / "calls"
    calls.write_text("")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    variables |= {"CALLS": str(calls), "FAILING": failing}
    done = subprocess.run(["make", *arguments], cwd=clone, env=variables, capture_output=True, check=False)
    return done.returncode, calls.read_text().splitlines()


def kernels(calls: list[str]) -> list[str]:
    """The profiles with which the kernel was compiled."""
    return [line.split("--profile ")[1].split()[0] for line in calls if "begin" in line and "maturin" in line]


def test_one_kernel_is_compiled_at_a_time_and_again_for_another_use(clone: Path) -> None:
    status, calls = make(clone, "-j4", "test-slow", "bench-topk")
    assert status == 0
    assert sorted(kernels(calls)) == ["release", "tests"]
    compiled = [line.split()[0] for line in calls if "maturin" in line]
    assert compiled == ["begin", "end"] * 2
    assert len(list((clone / ".venv").glob(".built-*"))) == 1
    assert kernels(make(clone, "test")[1]) == ["tests"]
    assert kernels(make(clone, "test")[1]) == []
    assert kernels(make(clone, "demo")[1]) == ["release"]


def test_the_wheel_and_the_rust_tests_share_what_was_compiled_for_the_kernel(clone: Path) -> None:
    called = [line for line in make(clone, "test")[1] if "begin" in line]
    called += [line for line in make(clone, "wheel", "PROFILE=tests")[1] if "begin" in line]
    compilers = ("cargo test", "maturin develop", "maturin build")
    compiling = [line for line in called if any(name in line for name in compilers)]
    assert len(compiling) == 3
    assert {line.rpartition(" wrapper ")[2] for line in compiling} == {f"{clone}/tools/rustc_for_tests"}


@pytest.mark.parametrize("failing", ["cargo test", "-m pytest", "maturin"])
def test_whatever_fails_fails_the_tests(clone: Path, failing: str) -> None:
    assert make(clone, "test")[0] == 0
    (clone / "crates/x.rs").touch()
    os.utime(clone / "crates/x.rs", (2e9, 2e9))
    assert make(clone, "test", failing=failing)[0] != 0


def test_without_a_network_all_but_the_oldest_spark_is_tested(clone: Path) -> None:
    status, calls = make(clone, "test", failing="spark_matrix.py")
    assert status == 0, "the test that uses it fails by itself"
    assert any("-m pytest" in line for line in calls)
    assert any("cargo test" in line for line in calls)
