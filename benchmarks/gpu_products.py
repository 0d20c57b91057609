"""Products of ``triton-gemm`` on the GPU, one after another in this process; and what that needs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.measure.gpu.prospects import REQUIRED
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.measure.phases.runner import Runner
from autotune.provenance.probe import Capability
from autotune.space.configuration import Configuration, FrozenMap, Value
from autotune.space.language.rule import NOTHING
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from benchmarks.gpu_search import SPACES, configured


def is_missing(work: Sequence[Capability]) -> bool:
    """Whether something is missing that a GPU is measured with; it is said what."""
    missing = [one for one in work if one.name in REQUIRED and not one.available]
    for one in missing:
        print(f"this needs a GPU; missing here: {one.name}: {one.detail}; {one.remedy}", file=sys.stderr)
    return bool(missing)


@dataclass(frozen=True)
class Products:
    """What runs them, as a worker does."""

    spec: StudySpec
    objective: DeviceObjective
    runner: Runner

    def prepare(self, name: str, knobs: Mapping[str, Value]) -> tuple[Configuration, Any] | None:
        """The default with other ``knobs``, built; where this device cannot have it that is said."""
        try:
            configuration = configured(self.spec, knobs)
        except InputError as error:
            print(f"{name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
            return None
        outcome, prepared = self.runner.prepare(configuration)
        if outcome.status is not Status.OK:
            print(f"{name} is left out: {outcome.status}: {outcome.message}", file=sys.stderr)
            return None
        return configuration, prepared


@contextmanager
def products(
    device: FrozenMap, *, final: bool, workload: Mapping[str, Value] = NOTHING
) -> Iterator[Products]:
    """Products of the space's own shape, or of ``workload``'s; ``final``: read as in a finale."""
    spec = read_spec(SPACES / "triton-gemm.yaml", device=device, workload=workload)
    with tempfile.TemporaryDirectory(prefix="autotune-products-") as folder:
        context = Context(spec.workload, device, Path(folder), 0, None, spec.space.ruled)
        objective = load_objective(spec.objective, context, spec.metrics)
        assert isinstance(objective, DeviceObjective)
        runner = Runner(objective, spec.metrics, spec.measure)
        runner.stand_by(final=final)
        yield Products(spec, objective, runner)
