"""What the tests of Triton kernels run in a process of its own: Triton decides on import if it interprets."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.provenance.device import device_facts
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from autotune.space.spec import PythonObjective, StudySpec
from benchmarks.gpu_planted import HELPERS, KERNELS, own_helpers
from tests.objectives.ready import SPACES

NAMES = ("triton-attention", "triton-gemm", "triton-layer-norm", "triton-reduction", "triton-softmax")


MISSING = [package for package in ("torch", "triton") if importlib.util.find_spec(package) is None]

needs_triton = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@cache
def read_space(name: str) -> StudySpec:
    return read_spec(SPACES / f"{name}.yaml", device=device_facts("h200"))


def sampled(name: str, seed: int, loads: str = "pointers") -> Configuration:
    """Any configuration, but with few programs: the interpreter runs about a thousand a second.

    Of a product one that reads by ``loads``, since descriptors do not take every shape.
    """
    rng = np.random.default_rng(seed)
    (configuration,) = read_space(name).space.sample(rng, 1)
    while configuration.get("loads", loads) != loads:
        (configuration,) = read_space(name).space.sample(rng, 1)
    fewer = {"parts": min(8, int(configuration["parts"]))} if "parts" in configuration else {}
    return Configuration({**configuration, **fewer})


def sampled_padded(seed: int) -> Configuration:
    """Any of a product whose matrices are copied into padded rows first."""
    ragged = {**read_space("triton-gemm").workload, "n": 1999, "k": 3001}
    space = read_spec(SPACES / "triton-gemm.yaml", device=device_facts("h200"), workload=ragged).space
    rng = np.random.default_rng(seed)
    (configuration,) = space.sample(rng, 1)
    while not configuration["pad"]:
        (configuration,) = space.sample(rng, 1)
    return configuration


def tiled(**knobs: Any) -> Configuration:
    """A configuration of ``triton-gemm`` with small tiles."""
    small = {"block_m": 32, "block_n": 32, "block_k": 32, "stages": 2}
    return Configuration({**read_space("triton-gemm").space.default(), **small, **knobs})


def described(**knobs: Any) -> Configuration:
    """One that reads them by tensor descriptors."""
    return tiled(**{"loads": "descriptors", "programs": 1, **knobs})


@contextmanager
def child(interpret: bool) -> Iterator[ProcessPoolExecutor]:
    """One process that runs the functions below, with Triton's interpreter or its compiler."""
    environment = {"TRITON_INTERPRET": "1" if interpret else "0", "OMP_NUM_THREADS": "1"}
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), initializer=_set, initargs=(environment,)
    ) as pool:
        yield pool


def _set(environment: Mapping[str, str]) -> None:
    os.environ.update(environment)


# -- in the child ------------------------------------------------------------------------------


def check(name: str, workload: Mapping[str, Any], configuration: Configuration, seed: int = 0) -> float:
    """The error of one configuration in the interpreter; raises what the check raises."""
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        loaded = kernel.load(kernel.prepare(configuration))
        return float(kernel.check(loaded, np.random.default_rng(seed))["error"])


def check_library(name: str, workload: Mapping[str, Any]) -> dict[str, float]:
    """The errors of the baselines."""
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        return {
            baseline.name: float(
                kernel.check(kernel.load_baseline(baseline), np.random.default_rng(0))["error"]
            )
            for baseline in kernel.baselines()
        }


def work_of_library(name: str, workload: Mapping[str, Any]) -> list[str]:
    """What PyTorch does in a reading of the baseline."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Noted(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            done.append(str(function))
            return function(*args, **(kwargs or {}))

    done: list[str] = []
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        library = kernel.load_baseline(kernel.baselines()[0])
        inputs = kernel.make_inputs(np.random.default_rng(0))
        outputs = {output: guarded.tensor for output, guarded in kernel._guarded().items()}
        with Noted():
            library.run(kernel, inputs, outputs)
    return done


def rounding_of_libraries(name: str, precision: str) -> bool:
    """Whether PyTorch may round factors to tf32 once the baseline of a float32 kernel is loaded."""
    import torch

    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(
            read_space(name), Path(cache), {"dtype": "float32", "precision": precision, "interpret": True}
        )
        kernel.load_baseline(kernel.baselines()[0])
        return bool(torch.backends.cuda.matmul.allow_tf32)


def grids(name: str, workload: Mapping[str, Any], configuration: Configuration) -> list[tuple[int, ...]]:
    """How many programs each launch has, along each side."""
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        return [launch.grid for launch in kernel.launches(configuration)]


def scratch_of(
    name: str, workload: Mapping[str, Any], configuration: Configuration
) -> dict[str, tuple[int, ...]]:
    """The shapes of what launches hand over."""
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        return {tensor: shape for tensor, (shape, _) in kernel.scratch(configuration).items()}


def arithmetic_of(name: str, workload: Mapping[str, Any]) -> str:
    """The type whose peak the kernel's operations are held against."""
    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        return str(kernel.work().arithmetic)


def baselines_on_a_gpu(name: str, workload: Mapping[str, Any]) -> list[str]:
    """The names of the baselines that there would be on a GPU."""
    import torch

    with tempfile.TemporaryDirectory() as cache:
        kernel = _objective(read_space(name), Path(cache), {**workload, "interpret": True})
        kernel._device = torch.device("cuda:0")
        return [baseline.name for baseline in kernel.baselines()]


def check_planted(
    name: str, fault: tuple[str, str], workload: Mapping[str, Any], configuration: Configuration, seed: int
) -> float:
    """As :func:`check`, of a copy of the kernel in which a fault was planted.

    The right kernel runs first: what it leaves in memory that is given back must not hide the fault.
    """
    check(name, workload, configuration, seed)
    spec = read_space(name)
    assert isinstance(spec.objective, PythonObjective)
    file, _, kind = Path(spec.objective.target).name.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        for copied in (file, *HELPERS):
            shutil.copy(KERNELS / copied, folder)
        sources = {path: path.read_text() for path in Path(folder).iterdir()}
        faulty = [path for path in sources if fault[0] in sources[path]]
        if len(faulty) != 1:
            raise LookupError(f"{fault[0]!r} is in {len(faulty)} files, not in one")
        faulty[0].write_text(sources[faulty[0]].replace(*fault))
        wrong = replace(spec, objective=PythonObjective(f"{file}:{kind}", Path(folder)))
        with own_helpers():
            kernel = _objective(wrong, Path(folder), {**workload, "interpret": True})
        loaded = kernel.load(kernel.prepare(configuration))
        return float(kernel.check(loaded, np.random.default_rng(seed))["error"])


def woken(cache: Path) -> list[str]:
    """What is compiled so that the first kernel need not wait for it."""
    _objective(read_space("triton-gemm"), cache, {})
    sys.modules["triton_compile"].wake(9.0, cache)  # which lies beside the objectives
    return [file.stem for file in cache.rglob("*.cubin")]


def compile_only(
    name: str, workload: Mapping[str, Any], configuration: Configuration, cache: Path, **device: Any
) -> dict[str, Any]:
    """What the compiler says of a configuration, for an H200 with some facts replaced."""
    kernel = _objective(read_space(name), cache, workload, **device)
    prepared = kernel.prepare(configuration)
    code = kernel.code(prepared)
    return {
        "threads": [binary.threads for binary in prepared.binaries],
        "fingerprint": code.fingerprint,
        "resources": dict(code.resources),
        "facts": dict(code.facts),
        "launches": [binary.name for binary in prepared.binaries],
    }


def wide_arguments(
    name: str, workload: Mapping[str, Any], configuration: Configuration, cache: Path
) -> list[dict[str, str]]:
    """Of each launch: which of its numbers the kernel is given as 64 bits, or is told to take for such."""
    kernel = _objective(read_space(name), cache, workload)
    source_of = sys.modules["triton_compile"].source_of  # which lies beside the objectives
    types, launches = kernel._types(configuration), kernel.launches(configuration)
    signatures = [source_of(launch, types).signature for launch in launches]
    told = [{"FAR": "i64"} if launch.constants.get("FAR") else {} for launch in launches]
    return [
        more | {argument: kind for argument, kind in signature.items() if kind == "i64"}
        for signature, more in zip(signatures, told, strict=True)
    ]


def scratch_of_launches(size: int) -> list[int]:
    """How much memory a launch gets that asks Triton for it, while ours lies ready, and one beside it."""
    from triton.runtime._allocation import _allocator

    def launch() -> int:
        try:
            return len(_allocator.get()(size, 128, None))  # type: ignore[arg-type]
        except RuntimeError:
            return -1

    import torch

    kernel = _objective(read_space("triton-gemm"), Path("unused"), {})
    ours = sys.modules[type(kernel).__mro__[1].__module__].with_scratch(launch, size, torch.device("cpu"))
    return [launch(), ours(), ours(), launch()]


def construct(name: str, workload: Mapping[str, Any], with_gpu: bool) -> None:
    """Make the objective and nothing else; raises what it refuses."""
    spec = read_space(name)
    device = device_facts("h200") if with_gpu else {"kind": "cpu", "cores": 1}
    load_objective(spec.objective, Context({**spec.workload, **workload}, device, Path("unused")))


def _objective(spec: StudySpec, cache: Path, workload: Mapping[str, Any], **device: Any) -> Any:
    facts = {**device_facts("h200"), **device}
    return load_objective(
        spec.objective, Context(workload={**spec.workload, **workload}, device=facts, cache=cache)
    )
