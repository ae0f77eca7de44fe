"""`tools/with_rust.py`: commands that need Rust run also where there is no cargo or no C compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import with_rust
from programs import COMPILERS, RUST, path_without, script

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "with_rust.py"
HOST = "x86_64-unknown-linux-gnu"
LINKER = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER"


def fake_rust(folder: Path, version: str) -> Path:
    """A `cargo` and a `rustc` that tell their version as the real ones do; returns the folder."""
    script(folder / "cargo", f"echo 'cargo {version} (f2d3ce0bd 2026-03-21)'")
    script(folder / "rustc", f"printf 'rustc {version}\\nhost: {HOST}\\nrelease: {version}\\n'")
    return folder


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of `.tools`, where nothing can be installed."""

    def refuse(group: str) -> None:
        raise AssertionError(f"{group} would be installed")

    monkeypatch.setattr(with_rust, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(with_rust, "install", refuse)
    return tmp_path / "tools"


def test_a_complete_machine_is_left_alone(tmp_path: Path) -> None:
    fake_rust(tmp_path, "1.99.1")
    script(tmp_path / "cc")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RUSTUP_TOOLCHAIN": "stable"}
    command = [sys.executable, SCRIPT, "env"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    seen = dict(line.split("=", 1) for line in shown.splitlines())
    assert {name: seen[name] for name in environment} == environment
    assert not {"CARGO_HOME", "RUSTUP_HOME", "CC", LINKER} & set(seen)


def test_the_status_of_the_command_is_kept(tmp_path: Path) -> None:
    fake_rust(tmp_path, "1.99.1")
    script(tmp_path / "cc")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([sys.executable, SCRIPT, "sh", "-c", "exit 7"], check=False, env=environment)
    assert done.returncode == 7
    gone = subprocess.run(
        [sys.executable, SCRIPT, "no-such-program"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert gone.returncode == 1
    assert gone.stderr == "no-such-program cannot be run: No such file or directory\n"


@pytest.mark.parametrize(
    "machine",
    [None, "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'", "echo 'no default toolchain' >&2; exit 1"],
    ids=["missing", "too old", "a rustup without a toolchain"],
)
def test_an_installed_toolchain_takes_the_place_of_none(
    tools: Path, tmp_path: Path, machine: str | None
) -> None:
    if machine:
        script(tmp_path / "machine" / "cargo", machine)
    fake_rust(tools / "rust" / "cargo" / "bin", "1.99.1")
    path = f"{tmp_path / 'machine'}:/usr/bin:/bin"
    environment = with_rust.with_cargo({"PATH": path, "RUSTUP_TOOLCHAIN": "nightly", "HOME": "/home/me"})
    assert environment == {
        "PATH": f"{tools}/rust/cargo/bin:{path}",
        "RUSTUP_HOME": f"{tools}/rust/rustup",
        "CARGO_HOME": f"{tools}/rust/cargo",
        "HOME": "/home/me",
    }


def test_a_toolchain_whose_installation_was_cut_short_is_installed_again(tools: Path) -> None:
    script(tools / "rust" / "cargo" / "bin" / "cargo", "exit 1")
    with pytest.raises(AssertionError, match="rust would be installed"):
        with_rust.with_cargo({"PATH": "/nowhere"})


def test_zig_links_where_there_is_no_compiler(tools: Path, tmp_path: Path) -> None:
    environment = {"PATH": str(fake_rust(tmp_path / "bin", "1.99.1")) + ":/bin"}
    with pytest.raises(AssertionError, match="linker would be installed"):
        with_rust.with_linker(environment)
    linker = script(tools / "bin" / "zig-cc")
    assert with_rust.with_linker(environment) == {**environment, LINKER: str(linker), "CC": str(linker)}


def test_a_linker_that_was_chosen_is_kept(tools: Path, tmp_path: Path) -> None:
    environment = {"PATH": str(fake_rust(tmp_path, "1.99.1")) + ":/bin", LINKER: "/opt/cross/ld"}
    assert with_rust.with_linker(environment) == environment


def test_the_oldest_rust_is_the_one_of_the_manifest() -> None:
    assert with_rust.version_needed() >= (1, 91)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tools need of the project, in another folder, with tools of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ["pyproject.toml", "uv.lock", "Cargo.toml", "Makefile", "README.md"]:
        shutil.copy(ROOT / name, folder)
    for name in ["tools", "crates", "lab"]:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
    subprocess.run(["make", ".tools/bin/uv"], cwd=folder, check=True)
    return folder


Done = subprocess.CompletedProcess[str]


def in_checkout(checkout: Path, path: str, *command: str, **settings: str) -> Done:
    """Run a command through the tools of the other folder, where programs are hidden."""
    environment = os.environ | {"PATH": path} | settings
    for name in ["RUSTUP_HOME", "CARGO_HOME", "CC", LINKER]:
        environment.pop(name, None)
    whole = [checkout / ".tools" / "bin" / "python", checkout / "tools" / "with_rust.py", *command]
    return subprocess.run(whole, check=False, capture_output=True, text=True, env=environment, cwd=checkout)


@pytest.mark.slow  # makes an environment with uv
def test_without_network_it_says_what_would_help(checkout: Path, tmp_path: Path) -> None:
    no_rust = path_without(tmp_path / "no-rust", *RUST)
    no_compiler = path_without(tmp_path / "no-compiler", *COMPILERS)
    offline = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}
    done = in_checkout(checkout, no_rust, "cargo", "--version", **offline)
    assert done.returncode != 0
    assert "Installing the group `rust` of uv.lock failed" in done.stderr
    assert "It needs the network" in done.stderr
    done = in_checkout(checkout, no_compiler, "cargo", "--version", **offline)
    assert "Installing the group `linker` of uv.lock failed" in done.stderr


@pytest.mark.slow  # downloads 100 MB
def test_a_program_linked_by_zig_runs(checkout: Path, tmp_path: Path) -> None:
    path = path_without(tmp_path / "bin", *COMPILERS)
    source = tmp_path / "program" / "src" / "main.rs"
    source.parent.mkdir(parents=True)
    (source.parents[1] / "Cargo.toml").write_text(
        '[package]\nname = "program"\nedition = "2024"\n[workspace]\n'
    )
    source.write_text('fn main() { println!("{:?}", std::panic::catch_unwind(|| panic!("x")).is_err()) }')
    manifest = str(source.parents[1] / "Cargo.toml")
    done = in_checkout(checkout, path, "cargo", "run", "--quiet", "--manifest-path", manifest)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "true\n"


@pytest.mark.slow  # downloads a toolchain
def test_a_toolchain_is_installed_beside_the_tools(checkout: Path, tmp_path: Path) -> None:
    path = path_without(tmp_path / "bin", *RUST)
    done = in_checkout(checkout, path, "cargo", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("cargo 1.")
    assert (checkout / ".tools" / "rust" / "cargo" / "bin" / "cargo-clippy").exists()
