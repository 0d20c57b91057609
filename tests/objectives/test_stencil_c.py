"""stencil-c takes the right steps for every grid and knob, and so does what it is measured against."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="stencil-c is compiled by gcc")


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return ready("stencil-c", tmp_path_factory.mktemp("stencil"))


def test_the_oracle_is_the_definition(space: Ready) -> None:
    objective = space.objective(height=3, width=4, steps=2)
    inputs = objective.make_inputs(np.random.default_rng(0))
    heat, power, c = (array.astype(float) for array in inputs.values())
    for _ in range(2):
        before = heat.copy()
        for y, x in np.ndindex(3, 4):
            up, down = before[max(y - 1, 0), x], before[min(y + 1, 2), x]
            left, right = before[y, max(x - 1, 0)], before[y, min(x + 1, 3)]
            heat[y, x] = c @ [before[y, x], up + down, left + right, power[y, x], 1]
    assert np.allclose(objective.reference(inputs)["out"], heat, rtol=1e-12)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    height=st.integers(1, 120),
    width=st.integers(1, 300),
    steps=st.integers(1, 20),
)
def test_any_configuration_is_right_on_ragged_grids(space: Ready, seed: int, **workload: int) -> None:
    (configuration,) = space.spec.space.sample(np.random.default_rng(seed), 1)
    assert space.error(configuration, workload) < 1e-5


@pytest.mark.parametrize("scheme", ["tile", "wavefront"])
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_a_last_pass_of_fewer_steps(space: Ready, scheme: str, steps: int) -> None:
    tile_h = 16 if scheme == "tile" else None
    knobs = {"scheme": scheme, "tile_h": tile_h, "tile_w": 64, "depth": 3, "rows": 3, "unroll": 2}
    workload = {"height": 45, "width": 150, "steps": steps}
    assert space.error(space.configuration(**knobs), workload) < 1e-5


def test_every_baseline_is_right(space: Ready) -> None:
    objective = space.objective(height=40, width=50, steps=5)
    for baseline in objective.baselines():
        loaded = objective.load_baseline(baseline)
        assert objective.check(loaded, np.random.default_rng(1))["error"] < 1e-5, baseline


def test_a_step_that_is_left_out_shows_at_the_full_size(space: Ready) -> None:
    objective = space.objective()
    inputs = objective.make_inputs(np.random.default_rng(0))
    full = objective.reference(inputs)["out"]
    fewer = space.objective(steps=objective.steps - 1).reference(inputs)["out"]
    assert np.abs(full - fewer).max() / np.abs(full).max() > 1e-2


def test_its_work_is_counted(space: Ready) -> None:
    work = space.objective(height=10, width=20, steps=3).work()
    assert (work.bytes, work.operations) == (3 * 4 * 200, 10 * 200 * 3)
