"""CUDA C to a cubin without a GPU, by each compiler that is here; and what the assembler says of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import pytest

from autotune.measure.gpu import cuda_compiler, prospects
from autotune.measure.gpu.cuda_compiler import (
    CudaCompiler,
    NvccCompiler,
    NvrtcCompiler,
    architecture,
    find_compiler,
    options,
    package,
)
from autotune.measure.gpu.nvrtc import CompilerRefusal, Nvrtc, find_nvrtc
from autotune.measure.gpu.ptxas import read_log

KERNEL = """
extern "C" __global__ void scale(float *x, int n)
{
    __shared__ float held[64];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = held[n] * FACTOR;
}
extern "C" __global__ void nothing() {}
"""

RELEASE = "Cuda compilation tools, release 13.0, V13.0.88"

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'f' for 'sm_90'
ptxas info    : Function properties for f
ptxas         .     80 bytes stack frame, 72 bytes spill stores, 96 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 80 bytes cumulative stack size, 512 bytes smem
ptxas info    : Compiling entry function 'g' for 'sm_90'
ptxas info    : Function properties for g
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers
"""


def test_the_log_is_read() -> None:
    found = {name: asdict(resources) for name, resources in read_log(LOG).items()}
    assert found == {
        "f": {
            "registers": 255,
            "spill_store_bytes": 72,
            "spill_load_bytes": 96,
            "shared_static_bytes": 512,
        },
        "g": {
            "registers": 14,
            "spill_store_bytes": 0,
            "spill_load_bytes": 0,
            "shared_static_bytes": 0,
        },
    }


def test_a_log_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing of the registers or the stack of 'f'"):
        read_log("Compiling entry function 'f' for 'sm_90'\nit went well\n")


@pytest.mark.parametrize(("capability", "name"), [(7.5, "sm_75"), (9.0, "sm_90"), (12.1, "sm_121")])
def test_architecture(capability: float, name: str) -> None:
    assert architecture(capability) == name


def _nvrtc() -> CudaCompiler:
    nvrtc = find_nvrtc()
    if nvrtc is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    return NvrtcCompiler(nvrtc)


def _nvcc() -> CudaCompiler:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on the PATH")
    return NvccCompiler(nvcc)


@pytest.fixture(params=[_nvrtc, _nvcc], ids=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> CudaCompiler:
    found: CudaCompiler = request.param()
    return found


def test_a_cubin_and_what_its_kernels_take(compiler: CudaCompiler) -> None:
    cubin, log = compiler.compile(KERNEL, "scale.cu", options("sm_90", {"FACTOR": "3.0f"}))
    found = read_log(log)
    assert cubin[:4] == b"\x7fELF" and set(found) == {"scale", "nothing"}
    assert found["scale"].shared_static_bytes >= 256 and found["scale"].registers > 0
    assert any(digit.isdigit() for digit in compiler.identity)


def test_the_same_source_gives_the_same_bytes(compiler: CudaCompiler) -> None:
    wanted = options("sm_90", {"FACTOR": "3.0f"})
    first, second = (compiler.compile(KERNEL, "scale.cu", wanted)[0] for _ in range(2))
    assert first == second, "else no two configurations could be seen to be the same code"


def test_a_refusal_has_the_compilers_words(compiler: CudaCompiler) -> None:
    with pytest.raises(CompilerRefusal, match=r'scale\.cu\(7\).*"FACTOR" is undefined'):
        compiler.compile(KERNEL, "scale.cu", options("sm_90", {}))


class CachingNvrtc:
    """Where a driver is: the second compilation is answered from a cache, and no assembler says anything."""

    version = (13, 0)

    def __init__(self, knows_the_option: bool = True, kept: bool = True) -> None:
        self.knows_the_option, self.kept = knows_the_option, kept
        self.asked: list[list[str]] = []

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        self.asked.append(list(options))
        anew = "--no-cache" in options
        if anew and not self.knows_the_option:
            raise CompilerRefusal("NVRTC_ERROR_INVALID_OPTION")
        return (b"anew", LOG) if anew or not self.kept else (b"kept", "")


@pytest.mark.parametrize(
    ("nvrtc", "cubin", "times"),
    [
        (CachingNvrtc(), b"anew", 2),
        (CachingNvrtc(kept=False), b"anew", 1),
        (CachingNvrtc(knows_the_option=False), b"kept", 2),
    ],
    ids=["kept", "not kept", "an older release"],
)
def test_what_nvrtc_has_kept_is_compiled_again_for_its_log(
    nvrtc: CachingNvrtc, cubin: bytes, times: int
) -> None:
    made, log = NvrtcCompiler(cast(Nvrtc, nvrtc)).compile(KERNEL, "scale.cu", ["-DFACTOR=3"])
    assert made == cubin and len(nvrtc.asked) == times
    assert bool(read_log(log)) == (cubin == b"anew")
    assert all(asked[:2] == ["-DFACTOR=3", "--ptxas-options=-v"] for asked in nvrtc.asked)


def test_nvrtc_here_knows_the_option() -> None:
    nvrtc = find_nvrtc()
    if nvrtc is None or nvrtc.version < (13, 0):
        pytest.skip("NVRTC is not installed, or keeps nothing")
    wanted = [*options("sm_90", {"FACTOR": "3.0f"}), "--ptxas-options=-v", "--no-cache"]
    assert "scale" in read_log(nvrtc.compile(KERNEL, "scale.cu", wanted)[1])


@pytest.mark.parametrize(
    ("newest", "name"),
    [(None, "'nvidia-cuda-nvrtc>=13'"), (13, "'nvidia-cuda-nvrtc>=13'"), (12, "nvidia-cuda-nvrtc-cu12")],
)
def test_the_package_fits_the_driver(newest: int | None, name: str) -> None:
    """A search had named the one for CUDA 13 to a driver that serves CUDA 12."""
    assert package(newest) == name


def test_no_compiler_newer_than_the_driver() -> None:
    assert find_nvrtc(newest=1) is None
    assert find_compiler(newest=1) is None, "nor nvcc, whose cubin the driver would refuse as well"


@pytest.fixture
def only_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called nvcc, alone on the PATH; NVRTC is not to be found."""
    program = tmp_path / "nvcc"
    program.write_text(f"#!/bin/sh\necho '{RELEASE}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cuda_compiler, "find_nvrtc", lambda newest: None)
    return program


def test_nvcc_is_taken_where_the_driver_serves_its_release(only_nvcc: Path) -> None:
    assert find_compiler(newest=12) is None
    found = find_compiler(newest=13)
    assert isinstance(found, NvccCompiler) and found.version == (13, 0)
    assert found.identity == "nvcc 13.0, V13.0.88"


def test_an_nvcc_that_does_not_work_is_a_refusal(only_nvcc: Path) -> None:
    only_nvcc.write_text("#!/bin/sh\necho 'it is broken' >&2\nexit 1\n")
    with pytest.raises(CompilerRefusal, match="says no release, but 'it is broken'"):
        find_compiler(newest=13)
    found = prospects.cuda_compiler(12)
    assert not found.available and "it is broken" in found.detail and found.remedy.endswith("nvrtc-cu12")
