"""gemm-c computes the product for every shape and knob, and is measured against OpenBLAS."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measure.objective import Infeasible
from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gemm-c is compiled by gcc")


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return ready("gemm-c", tmp_path_factory.mktemp("gemm"))


def test_the_default_is_right(space: Ready) -> None:
    assert space.error(space.spec.space.default(), {}) < 1e-5


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 70),
    n=st.integers(1, 130),
    k=st.integers(1, 70),
)
def test_any_configuration_is_right_on_ragged_shapes(space: Ready, seed: int, **workload: int) -> None:
    (configuration,) = space.spec.space.sample(np.random.default_rng(seed), 1)
    assert space.error(configuration, workload) < 1e-5


def test_every_loop_order_and_packing_is_right(space: Ready) -> None:
    for order in (("i", "j", "k"), ("k", "i", "j"), ("j", "k", "i")):
        for pack in (False, True):
            configuration = space.configuration(order=order, pack_a=pack, pack_b=not pack)
            assert space.error(configuration, {"m": 131, "n": 97, "k": 257}) < 1e-5


def test_a_refusal_of_the_compiler_is_infeasible(space: Ready) -> None:
    broken = space.configuration(vector=3)  # no vector of three floats
    with pytest.raises(Infeasible, match="gcc"):
        space.objective().prepare(broken)


def test_the_same_configuration_is_compiled_once(tmp_path: Path) -> None:
    space = ready("gemm-c", tmp_path)
    gemm = space.objective()
    first = Path(gemm.prepare(space.spec.space.default()))
    stamp = first.stat().st_mtime_ns
    assert Path(gemm.prepare(space.spec.space.default())) == first and first.stat().st_mtime_ns == stamp


def test_openblas_is_a_baseline_and_right(space: Ready) -> None:
    gemm = space.objective(m=64, n=64, k=64)
    first = gemm.baselines()[0]
    assert first.name == "openblas"
    assert gemm.check(gemm.load_baseline(first), np.random.default_rng(1))["error"] < 1e-5
