"""The emulator runs CUDA C as it is written, and names what a kernel must not do."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from autotune.measure.gpu.emulator import Emulator, emulated
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.measure.objective import WrongAnswer

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator compiles with g++")

KERNEL = """
extern "C" __global__ void reverse(const float *from, float *to, int count)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float *held = reinterpret_cast<float *>(shared_memory);
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = at < count ? from[at] : 0.0f;
    BARRIER
    if (at < count)
        to[at + SHIFT] = held[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulator")


def run(cache: Path, text: str, shared: int = 64 * 4, count: int = 128, **macros: str) -> np.ndarray:
    source = cache / "reverse.cu"
    source.write_text(text)
    library = emulated(source, ["reverse"], {"BARRIER": "__syncthreads();", "SHIFT": 0, **macros}, cache)
    given, made = np.arange(count, dtype=np.float32), np.full(count, np.nan, dtype=np.float32)
    arrays = (given, made)
    arguments = [*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_int(count)]
    buffers = [(array.ctypes.data, array.nbytes) for array in arrays]
    blocks = -(-count // 64)
    Emulator(library).launch("reverse", (blocks, 1, 1), (64, 1, 1), shared, arguments, buffers)
    return made


def test_barriers_and_shared_memory_work(cache: Path) -> None:
    expected = np.arange(128, dtype=np.float32).reshape(2, 64)[:, ::-1].reshape(-1)
    assert (run(cache, KERNEL) == expected).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"macros": {"BARRIER": ";"}}, "with no barrier between"),
        ({"text": KERNEL.replace("BARRIER", "BARRIER float f = *held; if (threadIdx.x == 9) *held = f + 1;")},
         r"byte 0 of shared memory, which (other threads use|another thread \(9\) uses) with no barrier"),
        ({"macros": {"SHIFT": "1"}}, "writes 4 bytes outside every buffer"),
        ({"shared": 63 * 4}, "byte 252 of shared memory, of which the block has 252"),
        ({"text": KERNEL.replace("BARRIER", "if (threadIdx.x) __syncthreads(); else return;")},
         "63 of 64 threads wait at a barrier"),
        ({"text": KERNEL.replace("held[blockDim.x - 1 - threadIdx.x]", "*(float *)(shared_memory + 2)")},
         "at an address that is no multiple of it"),
    ],
    ids=["race", "several", "outside", "shared", "barrier", "misaligned"],
)  # fmt: skip
def test_what_a_kernel_must_not_do(cache: Path, change: dict[str, object], said: str) -> None:
    given = {"text": KERNEL, **change}
    macros = given.pop("macros", {})
    with pytest.raises(WrongAnswer, match=said):
        run(cache, **given, **macros)  # type: ignore[arg-type]


def test_a_structure_lies_wherever_its_members_may(cache: Path) -> None:
    """Five floats lie at multiples of four bytes, and of twenty by chance alone."""
    five = "struct Five { float of[5]; };\n" + KERNEL.replace(
        "to[at + SHIFT] = held[blockDim.x - 1 - threadIdx.x];",
        "*reinterpret_cast<Five *>(to + at / 5 * 5) = *reinterpret_cast<const Five *>(from + at / 5 * 5);",
    )
    assert (run(cache, five, count=65) == np.arange(65)).all()
    with pytest.raises(WrongAnswer, match="writes 20 bytes outside every buffer"):
        run(cache, five, count=64)


def test_a_refusal_names_the_place(cache: Path) -> None:
    with pytest.raises(CompilerRefusal, match=r"reverse\.cu:10"):
        run(cache, KERNEL.replace("to[at", "two[at"))


def test_an_array_of_shared_memory_is_refused_and_not_taken_for_one_of_each_thread(cache: Path) -> None:
    """What is right on a GPU had been wrong here."""
    held = "/* No\n__shared__ array, __shared__ or not. */ __shared__ float held[64]; // __shared__"
    fixed = KERNEL.replace("extern __shared__ __align__(16) unsigned char shared_memory[];", held).replace(
        "float *held = reinterpret_cast<float *>(shared_memory);", ""
    )
    with pytest.raises(CompilerRefusal, match=r"reverse\.cu:5: the emulator supports only dynamic"):
        run(cache, fixed)


def test_what_a_launch_brings_may_be_declared_in_two_lines(cache: Path) -> None:
    assert run(cache, KERNEL.replace("extern __shared__", "extern\n__shared__")).shape == (128,)


def test_constant_memory_is_read(cache: Path) -> None:
    text = "__constant__ float factors[2] = {2.0f, 2.0f};\n" + KERNEL.replace(
        "= held[blockDim.x - 1 - threadIdx.x]", "= from[at] * factors[at % 2]"
    )
    assert (run(cache, text) == 2 * np.arange(128)).all()
