"""convolution-c is right for every shape, filter and knob, and so is what it is measured against."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, Infeasible
from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="convolution-c is compiled by gcc")

SMALL = {"height": 70, "width": 90, "filter_height": 5, "filter_width": 3}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return ready("convolution-c", tmp_path_factory.mktemp("convolution"))


def test_the_oracle_is_the_definition(space: Ready) -> None:
    objective = space.objective(height=3, width=4, filter_height=2, filter_width=3)
    inputs = objective.make_inputs(np.random.default_rng(0))
    image, weights = inputs["image"].astype(float), inputs["filter"].astype(float)
    out = objective.reference(inputs)["out"]
    for y, x in np.ndindex(3, 4):
        terms = [
            weights[i, j] * image[y + i - 1, x + j - 1]
            for i, j in np.ndindex(2, 3)
            if 0 <= y + i - 1 < 3 and 0 <= x + j - 1 < 4
        ]
        assert out[y, x] == pytest.approx(sum(terms))


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    height=st.integers(1, 120),
    width=st.integers(1, 200),
    filter_height=st.integers(1, 12),
    filter_width=st.integers(1, 12),
)
def test_any_configuration_is_right_on_ragged_shapes(space: Ready, seed: int, **workload: int) -> None:
    (configuration,) = space.spec.space.sample(np.random.default_rng(seed), 1)
    assert space.error(configuration, workload) < 1e-5


@pytest.mark.parametrize("pad", ["none", "image", "block"])
@pytest.mark.parametrize("reuse", [False, True])
def test_blocks_and_tiles_that_do_not_divide_the_image(space: Ready, pad: str, reuse: bool) -> None:
    knobs = {"tile_h": 5, "tile_v": 3, "vector": 8, "block_h": 24, "block_w": 64, "unroll": 2}
    configuration = space.configuration(**knobs, pad=pad, reuse=reuse, fixed=reuse)
    assert space.error(configuration, SMALL) < 1e-5


@pytest.mark.parametrize("size", [(5, 3), (4, 6), (1, 1)])
def test_every_baseline_is_right(space: Ready, size: tuple[int, int]) -> None:
    objective = space.objective(height=40, width=50, filter_height=size[0], filter_width=size[1])
    names = [baseline.name for baseline in objective.baselines()]
    assert names[:3] == ["plain", "scipy-direct", "scipy-fft"]
    for baseline in objective.baselines():
        loaded = objective.load_baseline(baseline)
        assert objective.check(loaded, np.random.default_rng(1))["error"] < 1e-5, baseline


def test_its_work_is_counted(space: Ready) -> None:
    work = space.objective(height=10, width=20, filter_height=3, filter_width=5).work()
    assert (work.bytes, work.operations) == (4 * (400 + 15), 2 * 200 * 15)


def test_another_type_is_refused(space: Ready) -> None:
    context = Context({**space.spec.workload, "dtype": "float16"}, {}, space.cache)
    with pytest.raises(Exception, match="float32, not in float16") as caught:
        load_objective(space.spec.objective, context)
    assert isinstance(caught.value.__cause__, Infeasible)


def test_its_source_is_frozen(space: Ready) -> None:
    from autotune.measure.loading.sources import source_files

    names = {path.name for path in source_files(space.spec.objective)}
    assert names == {"convolution_c.py", "convolution_c.c", "plain.c"}
    assert all(isinstance(path, Path) for path in source_files(space.spec.objective))
