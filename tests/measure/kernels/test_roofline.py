"""The roofline."""

from __future__ import annotations

import pytest

from autotune.measure.kernels.roofline import Peaks, Work, roofline

PEAKS = Peaks(bandwidth=4e12, operations={"float16": 8e14, "float32": 5e13})


def test_the_slower_of_moving_and_computing_is_the_floor() -> None:
    large = roofline(Work(3 * 4096**2 * 2, 2 * 4096**3, "float16"), PEAKS)
    assert large is not None and large.bound == "arithmetic"
    assert large.floor == pytest.approx(2 * 4096**3 / 8e14)
    assert large.share(2 * large.floor) == 0.5
    copied = roofline(Work(2e9, 1e6), PEAKS)
    assert copied is not None and copied.bound == "memory" and copied.floor == 5e-4


def test_what_is_not_known_of_a_device_is_left_out() -> None:
    assert roofline(Work(0, 1e9, "float4"), PEAKS) is None
    only_bytes = roofline(Work(4e12, 1e30, "float4"), PEAKS)
    assert only_bytes is not None and only_bytes.floor == 1
