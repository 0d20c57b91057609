"""What the tests of kernels in CUDA C share: objectives on the emulator, cubins for a GPU elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.gpu.cuda_compiler import find_compiler
from autotune.measure.kernels.cuda_objective import CudaObjective, Program
from autotune.measure.loading.importing import load_target
from autotune.measure.objective import Context, WrongAnswer
from autotune.provenance.device import device_facts
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from autotune.space.spec import PythonObjective, StudySpec
from tests.objectives.ready import SPACES

compiles = pytest.mark.skipif(find_compiler() is None, reason="neither NVRTC nor nvcc is installed")


def read_space(name: str, device: str = "h200") -> StudySpec:
    return read_spec(SPACES / f"{name}.yaml", device=device_facts(device))


def on_emulator(spec: StudySpec, cache: Path, **workload: object) -> Any:
    """Its objective on the emulator; skips the test where there is none."""
    pytest.importorskip("torch", reason="kernels for a GPU are checked with PyTorch")
    if shutil.which("g++") is None:
        pytest.skip("CUDA kernels are emulated through g++")
    return _objective(spec, cache, {**spec.workload, **workload, "device": "cpu"})


def on_profile(spec: StudySpec, cache: Path, device: str = "h200") -> Any:
    return _objective(spec, cache, spec.workload, device)


def _objective(
    spec: StudySpec, cache: Path, workload: Mapping[str, Any], device: str = "h200"
) -> CudaObjective:
    assert isinstance(spec.objective, PythonObjective)
    found: CudaObjective = load_target(spec.objective)(Context(workload, device_facts(device), cache))
    return found


def error(
    objective: CudaObjective, configuration: Configuration, seed: int = 0, variations: bool = False
) -> float:
    """The error of one check, with or without variations of the workload. Raises :class:`WrongAnswer`."""
    if not variations:
        objective.vary = lambda rng: None  # type: ignore[method-assign]
    loaded = objective.load(objective.prepare(configuration))
    return float(objective.check(loaded, np.random.default_rng(seed))["error"])


def compiled(spec: StudySpec, configuration: Configuration, cache: Path, device: str = "h200") -> Program:
    program = on_profile(spec, cache, device).prepare(configuration)
    assert isinstance(program, Program) and not program.emulated
    assert Path(program.path).read_bytes()[:4] == b"\x7fELF"
    return program


def mutated(objective: CudaObjective, right: str, wrong: str, folder: Path, count: int = 1) -> CudaObjective:
    """The same objective with the ``count``-th ``right`` of its source replaced."""
    text = objective.source.read_text()
    before, found = text, -1
    for _ in range(count):
        found = before.index(right, found + 1)
    path = folder / objective.source.name
    path.write_text(before[:found] + wrong + before[found + len(right) :])
    planted = type("Planted", (type(objective),), {"source": path})
    return planted(replace(objective.context, cache=folder))  # type: ignore[no-any-return]


def is_caught(objective: CudaObjective, configuration: Configuration) -> str:
    """Checks it with several seeds: every check must fail. What the last one said."""
    message = ""
    for seed in range(5):
        with pytest.raises(WrongAnswer) as caught:
            error(objective, configuration, seed)
        message = str(caught.value)
    return message


def with_knobs(spec: StudySpec, **knobs: object) -> Configuration:
    """The default with some knobs set; it must be feasible."""
    configuration = Configuration({**spec.space.default(), **knobs})
    assert configuration in spec.space.feasible
    return configuration
