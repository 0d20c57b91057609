"""A kernel of no size, or of a size and a half, is refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from tests.objectives.ready import ready


@pytest.mark.parametrize(
    ("name", "size"),
    [("gemm-c", "k"), ("stencil-c", "steps"), ("convolution-c", "filter_width"), ("nms-c", "boxes")],
)
@pytest.mark.parametrize("value", [0, -3, 1.5, "x"])
def test_what_is_no_size_is_refused(tmp_path: Path, name: str, size: str, value: object) -> None:
    with pytest.raises(InputError, match=f"refuses this workload: {size} should be a whole number"):
        ready(name, tmp_path).objective(**{size: value})
