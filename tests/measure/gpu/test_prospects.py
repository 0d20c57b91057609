"""What GPU work is possible: from what the driver and the probing processes say."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest

from autotune.cli.doctor import prospect
from autotune.measure.gpu import probing, prospects
from autotune.measure.gpu.cuda_compiler import find_compiler
from autotune.provenance.host.gpus import Gpu, Gpus, GpuState


def gpu(index: int = 0) -> Gpu:
    return Gpu(
        index,
        "NVIDIA H200",
        f"GPU-{index}",
        141 << 30,
        "9.0",
        None,
        None,
        None,
        None,
        None,
        None,
        True,
        None,
        None,
    )


def state(index: int = 0, processes: int | None = 0, clock: int | None = 1980) -> GpuState:
    return GpuState(index, clock, 3201, 40, 120.0, 0, 0, 0, processes)


def test_a_driver_with_a_gpu() -> None:
    found = prospects.driver(Gpus("580.1", "13.0", (gpu(),)), seen=1)
    assert found.available and "580.1" in found.detail


def test_cuda_is_asked_where_the_management_library_is_missing() -> None:
    found = prospects.driver(Gpus(problem="the package nvidia-ml-py is not installed"), seen=2)
    assert found.available and "2 visible" in found.detail and "nvidia-ml-py" in found.detail


def test_hidden_gpus_are_named() -> None:
    found = prospects.driver(Gpus("580.1", "13.0", (gpu(),)), seen=0)
    assert not found.available and "CUDA_VISIBLE_DEVICES" in found.remedy


def test_who_uses_a_gpu_is_said() -> None:
    gpus = Gpus("580.1", "13.0", (gpu(0), gpu(1), gpu(2)))
    free, used, unknown = prospects.devices(gpus, [state(0), state(1, processes=3)])
    assert free.available and "nobody uses it" in free.detail
    assert not used.available and "3 processes" in used.detail and "nvidia-smi" in used.remedy
    assert unknown.available and "not known" in unknown.detail


def test_what_may_not_be_read_is_named() -> None:
    assert prospects.clocks(Gpus(), [state()]).available
    refused = prospects.clocks(Gpus(), [state(clock=None)])
    assert not refused.available and "SM clock" in refused.detail and refused.remedy


def test_steps_are_read_between_other_lines() -> None:
    torch = '{"step": "torch", "works": true, "detail": "2.11"}'
    graph = '{"step": "graph", "works": false, "detail": "no"}'
    said = "\n".join(["a warning", torch, "[1]", graph])
    assert prospects.read_steps(said) == {"torch": (True, "2.11"), "graph": (False, "no")}
    assert not prospects.graph(prospects.read_steps(said)).available
    assert prospects.read_steps("") == {}


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_process_that_died_on_the_gpu_is_not_told_as_a_machine_without_one() -> None:
    died, untried = prospects.torch_on_gpu({}), prospects.torch_on_gpu(None)
    assert not died.available and "no answer" in died.detail and "pip install" in died.remedy
    assert not untried.available and "no GPU" in untried.detail and prospects.DRIVER in untried.remedy


def test_triton_that_cannot_launch_on_the_gpu_is_missing() -> None:
    """It has an assembler of its own, but compiles what launches a kernel with the machine's C compiler."""
    pytest.importorskip("triton", reason="it is not installed")
    step = '{"step": "triton", "works": false, "detail": "RuntimeError: Failed to find C compiler."}'
    found = prospects.triton(prospects.read_steps(step))
    assert not found.available and "C compiler" in found.detail and "gcc" in found.remedy
    assert prospects.triton({"triton": (True, "launched")}).available


def test_the_cuda_compiler_is_tried_for_the_gpu_that_is_here() -> None:
    """It had been tried for sm_90, and each trial on an older GPU then ended as infeasible."""
    if find_compiler() is None:
        pytest.skip("there is no CUDA compiler")
    turing, unknown = ({"major": major, "minor": 5} for major in (7, 1))
    assert prospects.cuda_compiler(None, prospects._architecture([turing])).detail.endswith("for sm_75")
    refused = prospects.cuda_compiler(None, prospects._architecture([unknown, turing]))
    assert not refused.available and "does not compile for sm_15" in refused.detail
    assert "knows sm_15" in refused.remedy


def test_the_driver_is_asked_which_compiler_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a search asks it: the management library, which may be missing, had been asked instead."""
    monkeypatch.setattr(prospects, "served_major", lambda: 1)
    found = {one.name: one for one in prospects.prospects()}[prospects.COMPILER]
    assert not found.available and "serves CUDA 1" in found.detail


def test_all_of_it_has_a_remedy_where_it_is_missing() -> None:
    found = {one.name: one for one in prospects.prospects()}
    assert {*prospects.REQUIRED, prospects.TRITON, prospects.COMPILER, prospects.EMULATOR} <= set(found)
    for one in found.values():
        assert one.detail and one.needed_for and (one.available or one.remedy), one


def test_the_sentence_on_it() -> None:
    def having(*names: str) -> str:
        return prospect([{"name": name, "available": True} for name in names])

    assert having() == "nothing can be measured on a GPU here; and nothing tried without one"
    assert "compiled" in having(prospects.COMPILER) and "nothing can be measured" in having(
        prospects.COMPILER
    )
    everything = (*prospects.REQUIRED, prospects.TRITON, prospects.COMPILER)
    assert having(*everything) == "kernels can be tuned here: in Triton and in CUDA C"


@pytest.mark.torch
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton")), reason="not installed"
)
def test_a_kernel_runs_in_the_interpreter_or_it_is_said_why_not() -> None:
    done = subprocess.run(
        [sys.executable, "-P", probing.__file__, "interpreter"], capture_output=True, text=True, check=True
    )
    works, detail = prospects.read_steps(done.stdout)["interpreter"]
    assert detail and (works or ":" in detail)


@pytest.mark.torch
def test_the_kernel_of_the_probe_compiles_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter also runs what the compiler refuses: annotations, say, that are not of Triton."""
    triton = pytest.importorskip("triton", reason="PyTorch is not installed: make test-torch installs it")
    compiling = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 75, 32)
    monkeypatch.setattr(probing, "tl", triton.language)
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = compiling.ASTSource(triton.runtime.JITFunction(probing.double), signature, {"BLOCK": 4})
    assert triton.compile(source, target=target).asm["cubin"][:4] == b"\x7fELF"
