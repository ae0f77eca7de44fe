"""Compile crates/tamis-gpu/src/kernels.cu to PTX, with NVIDIA's run-time compiler, without a device.

    uv run --with nvidia-cuda-nvrtc-cu12==12.1.105 python tools/compile_kernels.py

An old compiler on purpose: drivers read PTX that is no newer than they are.
"""

import ctypes
import hashlib
import importlib.util
import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "crates" / "tamis-gpu" / "src" / "kernels.cu"
INCLUDE = re.compile(rb'#include "([\w/.]+)"\n')
TARGET = SOURCE.with_suffix(".ptx")
OPTIONS = [b"--gpu-architecture=compute_70", b"--std=c++14", b"--fmad=false"]


def source() -> bytes:
    """The kernels with the files that they include: the run-time compiler looks for none."""

    def included(line: bytes) -> bytes:
        match = INCLUDE.fullmatch(line)
        return (SOURCE.parent / match[1].decode()).read_bytes() if match else line

    return b"".join(map(included, SOURCE.read_bytes().splitlines(keepends=True)))


def headed(ptx: str) -> str:
    """PTX below a line that says what it was compiled from, how, and what came out.

    So a test can tell, without the compiler, that neither was changed alone.
    """
    made_of = hashlib.sha256(source() + b" ".join(OPTIONS)).hexdigest()
    return f"// kernels.cu {made_of}, PTX {hashlib.sha256(ptx.encode()).hexdigest()}\n{ptx}"


def compile_to_ptx() -> str:
    """The PTX of the source."""
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("nvidia-cuda-nvrtc-cu12 is not installed; see the head of this file")
    nvrtc = ctypes.CDLL(str(next(Path(spec.submodule_search_locations[0], "lib").glob("libnvrtc.so.*"))))
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source(), b"kernels.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    if failed:
        raise SystemExit(_text(nvrtc, program, "ProgramLog"))
    return _text(nvrtc, program, "PTX")


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


if __name__ == "__main__":
    TARGET.write_text(headed(compile_to_ptx()))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")
