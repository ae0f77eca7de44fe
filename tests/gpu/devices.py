"""What stands in for a device: the kernels, compiled for this processor, with faults if a test wants them."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tamis
from tamis import _kernel

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "crates" / "tamis-gpu" / "src" / "kernels.cu"


FAULTS = """
extern "C" {
unsigned long long tamis_operations[7];
unsigned long long tamis_before_fault = ~0ull;
unsigned tamis_fault_kind, tamis_fault_lasts;
unsigned tamis_fault(unsigned operation) {
    ++tamis_operations[operation];
    if (tamis_before_fault > 0) { --tamis_before_fault; return 0; }
    if (!tamis_fault_lasts) tamis_before_fault = ~0ull;
    return tamis_fault_kind;
}
}
"""
UPLOAD = 1
OUT_OF_MEMORY, LOST = 1, 2


class Faults:
    """Counts what is asked of a device, and lets some of it fail."""

    def __init__(self, library: Path) -> None:
        """Of a library that was compiled with FAULTS."""
        self.library = library
        loaded = ctypes.CDLL(str(library))
        self.operations = (ctypes.c_ulonglong * 7).in_dll(loaded, "tamis_operations")
        self.before = ctypes.c_ulonglong.in_dll(loaded, "tamis_before_fault")
        self.kind = ctypes.c_uint.in_dll(loaded, "tamis_fault_kind")
        self.lasts = ctypes.c_uint.in_dll(loaded, "tamis_fault_lasts")

    def at(self, operation: int | None, kind: int = LOST, *, lasts: bool = True) -> None:
        """Let everything fail after so many operations, or only the next one."""
        self.before.value = 2**64 - 1 if operation is None else operation
        self.kind.value, self.lasts.value = kind, lasts

    def uploads(self) -> int:
        """How often something was copied to the device so far."""
        return int(self.operations[UPLOAD])


def compiled(folder: Path, *more: Path) -> Path:
    """The kernels, and what is to be beside them, as a library for this processor."""
    library = folder / "libkernels.so"
    compiler = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
    command = [compiler] if compiler else [sys.executable, "-m", "ziglang", "c++"]
    # Scores are added up as written: a compiler that fuses a product and a sum would round once less.
    options = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Werror"]
    sources = ["-x", "c++", str(KERNELS), *map(str, more)]
    subprocess.run([*command, *options, *sources, "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels as a library for this processor."""
    return compiled(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    """The same with faults."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faults.cpp").write_text(FAULTS)
    return Faults(compiled(folder, folder / "faults.cpp"))


@pytest.fixture
def faults(faulty: Faults) -> Iterator[Faults]:
    """None to begin with, and none left."""
    faulty.at(None)
    yield faulty
    faulty.at(None)


def on_device(index: tamis.Index, library: Path, memory: int | None = None) -> None:
    """Let the index match batches with the kernels, or on a real device if one is to be tested."""
    real = os.environ.get("TAMIS_TEST_DEVICE") == "cuda"
    assert _kernel.use_device(index._kernel, 0, memory, None if real else library, True) is None


def with_faults(index: tamis.Index, faults: Faults) -> None:
    """Let the index match batches with kernels that fail on demand."""
    assert _kernel.use_device(index._kernel, 0, None, faults.library, False) is None
