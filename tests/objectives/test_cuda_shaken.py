"""The ready kernels in CUDA C, shaken: each compiles for each architecture, within the limits of devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.measure.gpu.shaking import PRELUDE, shaken
from tests.objectives.cuda import compiled, compiles, on_profile, read_space

KERNELS = ("cuda-gemm", "cuda-convolution", "cuda-stencil", "cuda-nms")


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_begins_with_a_hold(name: str, tmp_path: Path) -> None:
    objective = on_profile(read_space(name), tmp_path)
    text = shaken(objective.source.read_text(), "it.cu").removeprefix(PRELUDE)
    assert text.count("{ autotune_hold();") == len(objective.kernels)


DEVICES = ["h200", *(pytest.param(name, marks=pytest.mark.long) for name in ("a100", "titanrtx"))]


@compiles
@pytest.mark.parametrize("drawn", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles_for(name: str, device: str, drawn: int, tmp_path: Path) -> None:
    """The default, and some that are drawn; of these, most compile for seconds."""
    spec = read_space(name, device)
    others = spec.space.sample(np.random.default_rng(7), 2)[:drawn]
    for configuration in (spec.space.default(), *others):
        program = compiled(spec, configuration, tmp_path, device)
        blocks = on_profile(spec, tmp_path, device).blocks(configuration).values()
        if all(block.size <= 32 for block in blocks):
            assert program.shaken is None and not program.unshaken, "one warp needs no barrier"
            continue
        assert program.shaken is not None, f"{program.unshaken} of {dict(configuration)}"
        assert set(program.shaken.kernels or {}) == set(program.kernels or {})
        assert b"autotune_shaken_until" in Path(program.shaken.path).read_bytes()
        assert b"autotune_shaken_until" not in Path(program.path).read_bytes()
