"""gemm-c computes the product for every shape and knob, and is measured against OpenBLAS."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, Infeasible
from autotune.provenance.device import device_facts
from autotune.space.configuration import Configuration, FrozenMap
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec

SPACE = Path(__file__).parents[2] / "searchspaces" / "gemm-c.yaml"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gemm-c is compiled by gcc")


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return read_spec(SPACE, device=device_facts())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gemm")


def objective(spec: StudySpec, cache: Path, **workload: object):  # type: ignore[no-untyped-def]
    context = Context(workload={**spec.workload, **workload}, device=device_facts(), cache=cache)
    return load_objective(spec.objective, context)


def product_error(
    spec: StudySpec, cache: Path, configuration: Configuration, m: int, n: int, k: int
) -> float:
    gemm = objective(spec, cache, m=m, n=n, k=k)
    loaded = gemm.load(gemm.prepare(configuration))
    metrics = gemm.check(loaded, np.random.default_rng(0))
    return float(metrics["error"])


def test_the_default_is_feasible_and_right(spec: StudySpec, cache: Path) -> None:
    assert product_error(spec, cache, spec.space.default(), 960, 960, 960) < 1e-5


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 70),
    n=st.integers(1, 130),
    k=st.integers(1, 70),
)
def test_any_configuration_is_right_on_ragged_shapes(
    spec: StudySpec, cache: Path, seed: int, m: int, n: int, k: int
) -> None:
    (configuration,) = spec.space.sample(np.random.default_rng(seed), 1)
    assert product_error(spec, cache, configuration, m, n, k) < 1e-5


def test_every_loop_order_and_packing_is_right(spec: StudySpec, cache: Path) -> None:
    for order in (("i", "j", "k"), ("k", "i", "j"), ("j", "k", "i")):
        for pack in (False, True):
            configuration = Configuration(
                FrozenMap({**spec.space.default(), "order": order, "pack_a": pack, "pack_b": not pack})
            )
            assert product_error(spec, cache, configuration, 131, 97, 257) < 1e-5


def test_a_refusal_of_the_compiler_is_infeasible(spec: StudySpec, cache: Path) -> None:
    broken = Configuration({**spec.space.default(), "vector": 3})  # no vector of three floats
    with pytest.raises(Infeasible, match="gcc"):
        objective(spec, cache).prepare(broken)


def test_the_same_configuration_is_compiled_once(spec: StudySpec, tmp_path: Path) -> None:
    gemm = objective(spec, tmp_path)
    first = Path(gemm.prepare(spec.space.default()))
    stamp = first.stat().st_mtime_ns
    assert Path(gemm.prepare(spec.space.default())) == first and first.stat().st_mtime_ns == stamp


def test_openblas_is_a_baseline_and_right(spec: StudySpec, cache: Path) -> None:
    gemm = objective(spec, cache, m=64, n=64, k=64)
    names = [b.name for b in gemm.baselines()]
    assert names[0] == "openblas"
    error = gemm.check(gemm.load_baseline(gemm.baselines()[0]), np.random.default_rng(1))["error"]
    assert error < 1e-5
