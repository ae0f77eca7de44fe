"""`tools/java_home.py`: the folder that Spark gets as JAVA_HOME."""

import subprocess
from pathlib import Path

import pytest

import java_home


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that tells its version as the real one does, and otherwise shows its arguments."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    told = f"""echo 'openjdk version "{version}"' >&2"""
    java.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then {told}; else echo "$@"; fi\n')
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8)])
def test_versions(tmp_path: Path, version: str, major: int) -> None:
    assert java_home.version_of(fake_java(tmp_path, version)) == major


def test_what_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_home.version_of(tmp_path / "nothing") == 0


def test_a_new_enough_java_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.1"), fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{new.parent}:{old.parent}:/usr/bin:/bin")
    java_home.main(tmp_path / "home")
    assert (tmp_path / "home" / "bin" / "java").resolve() == new


def test_the_wrapper_drops_one_flag(tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(java_home.WRAPPER.format(java=fake_java(tmp_path, "21")))
    wrapper.chmod(0o755)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b"]
    shown = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True).stdout
    assert shown == "-Xmx1g a b\n"
