"""Which GPUs a search takes, on a machine of eight that is written down here."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.gpu.claims import find_gpus, visible_names

GPUS = [{"name": "H200", "uuid": f"GPU-{i}"} for i in range(3)] + [{"name": "T4", "uuid": "GPU-t4"}]


def test_each_search_has_gpus_of_its_own_as_long_as_there_are_some(tmp_path: Path) -> None:
    first = find_gpus(2, GPUS, {}, tmp_path)
    second = find_gpus(2, GPUS, {}, tmp_path)
    third = find_gpus(1, GPUS, {}, tmp_path)
    assert [g.key for g in first] == ["GPU-0", "GPU-1"] and [g.visible for g in first] == ["0", "1"]
    assert [g.key for g in second] == ["GPU-2"], "the fourth is of another kind"
    assert [g.key for g in third] == ["GPU-0"] and third[0].shared
    assert not any(g.shared for g in (*first, *second))
    for gpu in (*first, *second, *third):
        gpu.close()
    (again,) = find_gpus(1, GPUS, {}, tmp_path)
    assert again.key == "GPU-0" and not again.shared
    again.close()


def test_a_claim_is_on_the_device_whatever_it_is_called(tmp_path: Path) -> None:
    (one,) = find_gpus(1, GPUS[1:2], {"CUDA_VISIBLE_DEVICES": "1"}, tmp_path)
    (other,) = find_gpus(1, GPUS[1:2], {"CUDA_VISIBLE_DEVICES": "GPU-1"}, tmp_path)
    assert (one.visible, other.visible) == ("1", "GPU-1")
    assert one.key == other.key and other.shared
    one.close()


@pytest.mark.parametrize("wanted", [0, 4])
def test_where_none_is_wanted_or_there_none_is_claimed(wanted: int, tmp_path: Path) -> None:
    assert find_gpus(wanted, () if wanted else GPUS, {}, tmp_path) == ()


def test_names_are_those_that_the_user_gave() -> None:
    assert visible_names(2, {}) == ("0", "1")
    assert visible_names(2, {"CUDA_VISIBLE_DEVICES": "3, GPU-abc"}) == ("3", "GPU-abc")
