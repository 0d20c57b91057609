"""A kernel in C that is wrong in whatever way is caught by its check, with every one of 20 seeds."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from autotune.measure.objective import WrongAnswer
from tests.objectives.planted import WRAPPED, Kernel, load_changed, load_wrapped
from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the kernels are compiled by gcc")

SEEDS = 20

KERNELS = {
    "gemm": Kernel(
        space="gemm-c",
        parameters="const float *a, const float *b, float *c, int m, int n, int k",
        first_input="a",
        output="c",
        elements="(long)m * n",
        ragged="n % 4",
        workload={"m": 48, "n": 64, "k": 64},
        knobs={"tile_m": 4, "tile_v": 2, "vector": 4, "unroll": 4, "optimize": 1},
    ),
    "convolution": Kernel(
        space="convolution-c",
        parameters="const float *image, const float *filter, float *out, int height, int width, int fh, "
        "int fw",
        first_input="image",
        output="out",
        elements="(long)height * width",
        ragged="width % 4",
        workload={"height": 48, "width": 64, "filter_height": 5, "filter_width": 5},
        knobs={"tile_h": 4, "tile_v": 2, "vector": 4, "pad": "block", "reuse": True, "optimize": 1},
    ),
    "stencil": Kernel(
        space="stencil-c",
        parameters="const float *heat, const float *power, const float *c, float *out, int height, "
        "int width, int steps",
        first_input="heat",
        output="out",
        elements="(long)height * width",
        ragged="width % 4",
        workload={"height": 48, "width": 64, "steps": 6},
        knobs={
            "scheme": "wavefront",
            "tile_h": None,
            "tile_w": 32,
            "depth": 3,
            "rows": 2,
            "vector": 4,
            "optimize": 1,
        },
    ),
    "nms": Kernel(
        space="nms-c",
        parameters="const float *boxes, uint8_t *keep, int count, float limit",
        first_input="boxes",
        output="keep",
        elements="count",
        ragged="count % 4",
        workload={"boxes": 256, "objects": 8},
        knobs={"block": 16, "word": 16, "vector": 4, "columns": True, "optimize": 1},
    ),
}

CHANGED = {
    "gemm: a tail that is one step short": (
        "for (; p < depth; p++)",
        "for (; p < depth - 1; p++)",
    ),
    "gemm: a last column that is left out": (
        "j < columns; j++)\n                c[",
        "j < columns - 1; j++)\n                c[",
    ),
    "gemm: no zeros to begin with": ("memset(c, 0, (size_t)m * n * sizeof *c);", ""),
    "convolution: a last tile that is left out": (
        "x < columns; x += TILE_W",
        "x + TILE_W <= columns; x += TILE_W",
    ),
    "convolution: a last row of the filter that is left out": (
        "row < fh + TILE_H - 1; row++",
        "row < fh + TILE_H - 2; row++",
    ),
    "convolution: no zeros beside the image": (
        "memset(to + right, 0, (columns - right) * sizeof *to);",
        "",
    ),
    "stencil: a tail that is left out": ("if (x < last)", "if (0)"),
    "stencil: a last pass that is left out": ("(steps + DEPTH - 1) / DEPTH", "(steps + 1) / DEPTH"),
    "stencil: a row that is overwritten before it was read": (
        "#define RING (ROWS + 2)",
        "#define RING (ROWS + 1)",
    ),
    "stencil: a halo that is one cell short": (
        "int halo = depth - s, begin",
        "int halo = depth - s - (s < depth), begin",
    ),
    "nms: a last box that is left out": ("padded = words * WORD;", "padded = words * WORD; count--;"),
    "nms: a block that does not wait for itself": (
        "keep[i] && w <= (last - 1) / WORD",
        "0 && w <= (last - 1) / WORD",
    ),
    "nms: a block that does not wait for those before": (
        "        suppress(p, first, last, begin, end, keep);\n",
        "",
    ),
    "nms: a first vector of a word that is left out": (
        "for (int v = 0; v < WORD",
        "for (int v = VECTOR; v < WORD",
    ),
}


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ready]:
    return {name: ready(kernel.space, tmp_path_factory.mktemp(name)) for name, kernel in KERNELS.items()}


def caught(loaded: tuple[object, object]) -> int:
    """With how many of the seeds the check finds it wrong."""
    objective, kernel = loaded
    found = 0
    for seed in range(SEEDS):
        try:
            objective.check(kernel, np.random.default_rng((seed, 0)))  # type: ignore[attr-defined]
        except WrongAnswer:
            found += 1
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_a_right_kernel_is_never_wrong(spaces: dict[str, Ready], name: str, tmp_path: Path) -> None:
    assert caught(load_wrapped(spaces[name], KERNELS[name], "", tmp_path)) == 0


PAIRS = [(name, fault) for name in KERNELS for fault in WRAPPED]
PAIRS.remove(("nms", "adds to what was there"))  # bytes wrap around: it is one of the others


@pytest.mark.parametrize(("name", "fault"), PAIRS)
def test_a_wrong_kernel_is_always_caught(
    spaces: dict[str, Ready], name: str, fault: str, tmp_path: Path
) -> None:
    assert caught(load_wrapped(spaces[name], KERNELS[name], fault, tmp_path)) == SEEDS


@pytest.mark.parametrize("fault", CHANGED)
def test_a_wrong_line_is_always_caught(spaces: dict[str, Ready], fault: str, tmp_path: Path) -> None:
    name = fault.partition(":")[0]
    assert caught(load_changed(spaces[name], KERNELS[name], *CHANGED[fault], tmp_path)) == SEEDS
