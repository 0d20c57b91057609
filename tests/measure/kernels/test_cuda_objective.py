"""Kernels in CUDA C by a made-up compiler: what is compiled beside the program, and when it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from autotune.measure.gpu.cuda_compiler import CudaCompiler
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.measure.kernels.compile_cache import CompileCache
from autotune.measure.kernels.cuda_objective import Block, CudaObjective, Program, _OnDevice
from autotune.measure.objective import Context, Infeasible, WrongAnswer
from autotune.space.configuration import Configuration

SOURCE = 'extern "C" __global__ void f(float *x) { extern __shared__ float y[]; __syncthreads(); }\n'

DEVICE = {"compute_capability": 9.0, "max_threads": 1024, "registers": 65536, "shared_memory_bytes": 232448}

LOG = """ptxas info    : Compiling entry function '{name}' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers
"""


class FakeCompiler:
    """Makes something else of every source, or refuses one that is shaken."""

    identity = "fake 1.0"

    def __init__(self, registers: int = 32, shaken: int = 40, refuses: bool = False, name: str = "f") -> None:
        self.registers, self.shaken, self.refuses, self.name = registers, shaken, refuses, name
        self.compiled: list[str] = []

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        self.compiled.append(source)
        is_shaken = "autotune_hold" in source
        if is_shaken and self.refuses:
            raise CompilerRefusal("no such thing as %globaltimer " * 100)
        registers = self.shaken if is_shaken else self.registers
        log = LOG.format(name=self.name, registers=registers) if self.name else ""
        return b"shaken" if is_shaken else b"plain", log


class Kernel(CudaObjective):
    kernels = ("f",)
    threads = 256

    def macros(self, configuration: Configuration) -> Mapping[str, int]:
        return {}

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        return {"f": Block((self.threads, 1, 1))}


Make = Callable[..., tuple[Kernel, FakeCompiler]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(source: str = SOURCE, threads: int = 256, **compiler: Any) -> tuple[Kernel, FakeCompiler]:
        path, fake = tmp_path / "f.cu", FakeCompiler(**compiler)
        path.write_text(source)
        kind = type("Kind", (Kernel,), {"source": path, "threads": threads})
        kernel = kind(Context({}, DEVICE, tmp_path))
        kernel._compiler = cast(CudaCompiler, fake)
        kernel.compile_cache = CompileCache(tmp_path / "cache")
        return kernel, fake

    return made


NOTHING = Configuration({})


def shaken_fact(kernel: Kernel, program: Program) -> object:
    return kernel.code(program).facts.get("shaken")


def test_beside_the_program_is_a_shaken_one(make: Make) -> None:
    kernel, _ = make()
    program = kernel.prepare(NOTHING)
    assert Path(program.path).read_bytes() == b"plain" and not program.cached
    assert program.shaken is not None and Path(program.shaken.path).read_bytes() == b"shaken"
    code = kernel.code(program)
    assert code.resources["registers"] == 32, "of what is measured"
    assert set(cast(dict[str, float], code.facts["shaken"])) == {"compile_seconds"}


@pytest.mark.torch
def test_a_pytorch_that_sees_no_gpu_is_said(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build for the CPU, or for a newer driver: trials had crashed with 'Expected a cuda device'."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    kernel, _ = make()
    with pytest.raises(Infeasible, match=r"PyTorch sees no GPU here .* autotune doctor"):
        kernel.load(kernel.prepare(NOTHING))


def test_both_are_kept(make: Make) -> None:
    make()[0].prepare(NOTHING)
    kernel, fake = make()
    program = kernel.prepare(NOTHING)
    assert program.cached and program.shaken is not None and program.shaken.cached and not fake.compiled


@pytest.mark.parametrize(
    "given",
    [{"source": 'extern "C" __global__ void f(float *x) { x[0] = 1; }'}, {"threads": 32}],
    ids=["threads that share nothing", "one warp"],
)
def test_what_has_no_barrier_to_miss_compiles_once(make: Make, given: dict[str, Any]) -> None:
    kernel, fake = make(**given)
    program = kernel.prepare(NOTHING)
    assert len(fake.compiled) == 1 and program.shaken is None and shaken_fact(kernel, program) is None


def test_a_refusal_of_the_shaken_one_leaves_it_out(make: Make) -> None:
    kernel, _ = make(refuses=True)
    program = kernel.prepare(NOTHING)
    fact = str(shaken_fact(kernel, program))
    assert program.shaken is None and fact.startswith("left out: no such thing as %globaltimer")
    assert len(fact) < 400


def test_a_shaken_one_that_does_not_fit_is_left_out(make: Make) -> None:
    kernel, _ = make(threads=1024, registers=64, shaken=72)
    program = kernel.prepare(NOTHING)
    assert program.shaken is None
    fact = "left out: a block of f takes 73,728 registers; the device has 65,536"
    assert shaken_fact(kernel, program) == fact


def test_the_program_itself_has_to_fit(make: Make) -> None:
    with pytest.raises(Infeasible, match="takes 73,728 registers"):
        make(threads=1024, registers=72, shaken=64)[0].prepare(NOTHING)


def test_a_warp_has_registers_for_all_its_threads(make: Make) -> None:
    """Of 900 threads the last warp has 4, and takes as many registers as the other 28."""
    with pytest.raises(Infeasible, match="takes 66,816 registers"):
        make(threads=900, registers=72)[0].prepare(NOTHING)


def test_a_kernel_that_is_not_there_is_named(make: Make) -> None:
    with pytest.raises(NameError, match=r'f\.cu has the kernels _Z1fPf, but no f, .* or not extern "C"\?'):
        make(name="_Z1fPf")[0].prepare(NOTHING)


def test_a_log_that_says_nothing_is_said_and_not_kept(make: Make) -> None:
    with pytest.raises(NameError, match=r"f\.cu: the compiler's log names no kernel"):
        make(name="")[0].prepare(NOTHING)
    assert make()[0].prepare(NOTHING).shaken is not None


# -- the check -----------------------------------------------------------------------------------


class FakeLoaded(_OnDevice):
    def __init__(self, other: FakeLoaded | None = None) -> None:
        self.other = other

    def shaken(self) -> _OnDevice | None:
        return self.other


def test_the_check_also_runs_what_is_shaken(make: Make) -> None:
    other, ran = FakeLoaded(), []

    def once(loaded: Any) -> float:
        ran.append(loaded)
        return 0.0

    kernel, _ = make()
    kernel._provoke(FakeLoaded(other), once)
    kernel._provoke(FakeLoaded(None), once)
    kernel._provoke(object(), once)
    assert ran == [other]


def test_what_only_shaking_shows_is_a_missing_barrier(make: Make) -> None:
    def once(loaded: Any) -> float:
        raise WrongAnswer("c[0, 1] is 2.0, its reference 3.0")

    said = r"with the warps held up at barriers: c\[0, 1\] is 2.0, .*: a barrier is missing somewhere"
    with pytest.raises(WrongAnswer, match=said):
        make()[0]._provoke(FakeLoaded(FakeLoaded()), once)


def test_a_knob_that_only_a_launch_reads_is_no_same_code(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many blocks there are leaves no trace in the cubin: all but the first had never been measured."""
    kernel, _ = make()
    monkeypatch.setattr(type(kernel), "macros", lambda self, configuration: {"TILE": configuration["tile"]})

    def code(**knobs: int) -> str:
        return kernel.code(kernel.compile(Configuration(knobs))).fingerprint

    assert code(tile=1, waves=1) != code(tile=1, waves=2)
    assert code(tile=1, waves=1) == code(tile=2, waves=1), "a macro without a trace is shared"


def test_so_is_one_that_is_only_asked_to_be_there(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = make()
    monkeypatch.setattr(type(kernel), "macros", lambda self, knobs: {"LOOPS": "waves" in knobs})
    waves = [kernel.code(kernel.compile(Configuration({"waves": n}))).fingerprint for n in (1, 2)]
    assert waves[0] != waves[1]
