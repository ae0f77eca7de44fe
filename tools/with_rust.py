"""Run a command that needs Rust, also on a machine that has no Rust or no C compiler.

- If cargo is missing, or older than `rust-version` in Cargo.toml, the PyPI package puccinialin installs
  rustup's stable toolchain into `.tools/rust`. It touches neither ~/.cargo nor ~/.rustup.
- If `cc` is missing, which Rust links with, the C compiler inside the PyPI package ziglang takes its place.

Both packages are pinned by uv.lock. On a machine that has cargo and cc, the command runs as if it had been
called directly.

Usage: python tools/with_rust.py COMMAND [ARGUMENT ...]
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from attempt import attempt
from locked import ROOT, install

TOOLS = ROOT / ".tools"

RUSTUP = (
    "It needs the network, to download rustup and a toolchain (RUSTUP_UPDATE_ROOT and RUSTUP_DIST_SERVER\n"
    "name mirrors). Or install cargo {version} or later yourself."
)
ZIG = "Or install a C compiler yourself, so that `cc` is on the PATH."

LINKER = """#!/bin/sh
# Written by tools/with_rust.py: this machine has no C compiler, so Rust links with the one inside ziglang.
export ZIG_GLOBAL_CACHE_DIR='{cache}'
exec '{python}' -m ziglang cc "$@"
"""


def version_of(cargo: str | Path, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The version of a `cargo` program; (0,) when it does not run: rustup's needs a toolchain."""
    try:
        answer = subprocess.run(
            [cargo, "--version"], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    found = re.search(r"cargo (\d+)\.(\d+)", answer.stdout)
    return tuple(int(part) for part in found.groups()) if found else (0,)


def version_needed() -> tuple[int, ...]:
    """The oldest Rust that compiles the kernel."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        text: str = tomllib.load(file)["workspace"]["package"]["rust-version"]
    return tuple(int(part) for part in text.split("."))


def with_cargo(environment: dict[str, str]) -> dict[str, str]:
    """The environment as it is if it has a cargo that is new enough; otherwise with one in `.tools/rust`."""
    needed = version_needed()
    machine = shutil.which("cargo", path=environment.get("PATH"))
    if machine and version_of(machine, environment) >= needed:
        return environment
    rust = TOOLS / "rust"
    own = {name: value for name, value in environment.items() if name != "RUSTUP_TOOLCHAIN"}
    own |= {
        "RUSTUP_HOME": str(rust / "rustup"),
        "CARGO_HOME": str(rust / "cargo"),
        "PATH": f"{rust / 'cargo' / 'bin'}{os.pathsep}{environment.get('PATH', '')}",
    }
    if version_of(rust / "cargo" / "bin" / "cargo", own) < needed:
        say(f"cargo is {f'too old ({machine})' if machine else 'missing'}: installing Rust into {rust}")
        install("rust")
        needs = RUSTUP.format(version=".".join(map(str, needed)))
        attempt("Installing Rust", needs, [sys.executable, "-m", "puccinialin", "--location", rust], env=own)
        # For `make lint`; rustup's minimal profile leaves them out.
        parts = ["rustup", "--quiet", "component", "add", "clippy", "rustfmt"]
        attempt("Installing clippy and rustfmt", needs, parts, env=own)
    return own


def with_linker(environment: dict[str, str]) -> dict[str, str]:
    """The environment as it is if Rust can link in it; otherwise with the C compiler of ziglang."""
    answer = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True, env=environment)
    host = re.search(r"^host: (.+)$", answer.stdout, re.MULTILINE)
    assert host, answer.stdout
    setting = f"CARGO_TARGET_{host[1].upper().replace('-', '_')}_LINKER"
    if setting in environment:
        return environment
    linker = TOOLS / "bin" / "zig-cc"
    if not linker.exists():
        say(f"there is no C compiler: installing the one of ziglang (100 MB) into {TOOLS}")
        install("linker")
        attempt("Running the C compiler of ziglang", ZIG, [sys.executable, "-m", "ziglang", "version"])
        linker.write_text(LINKER.format(python=sys.executable, cache=TOOLS / "zig-cache"))
        linker.chmod(0o755)
    return {**environment, setting: str(linker), "CC": str(linker)}


def say(what: str) -> None:
    """Tell what is being done; standard output belongs to the command."""
    print(what, file=sys.stderr, flush=True)


def main(command: list[str]) -> None:
    """Replace this process by the command, in an environment in which Rust compiles and links."""
    environment = with_cargo(dict(os.environ))
    if shutil.which("cc", path=environment.get("PATH")) is None:
        environment = with_linker(environment)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
