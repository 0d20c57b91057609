"""The data of the training objectives: three parts that share nothing, and the same on every call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.measure.objective import Infeasible
from autotune.measure.prepared_data import PreparedData
from tests.objectives.training import importable

importable()

from training_data import PARTS, Data, digits, hash_of, python_help, text  # noqa: E402


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return PreparedData(tmp_path_factory.mktemp("data"))


def parts(data: Data) -> list[np.ndarray]:
    return [getattr(data, name).inputs for name in PARTS]


def test_the_parts_of_the_digits_share_no_image(cache: PreparedData) -> None:
    data = digits(cache)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [1085, 357, 355]
    images = np.concatenate(parts(data))
    assert images.shape == (1797, 64) and images.min() >= 0.0 and images.max() == 1.0
    assert len(np.unique(images, axis=0)) == len(images)


def test_each_digit_is_split_alike(cache: PreparedData) -> None:
    data = digits(cache)
    for digit in range(10):
        counts = [int((getattr(data, name).targets == digit).sum()) for name in PARTS]
        assert counts[0] / sum(counts) == pytest.approx(0.6, abs=0.01), digit


def test_the_windows_of_the_text_follow_one_another(cache: PreparedData) -> None:
    data = text(cache, 32)
    source = python_help().encode("ascii", errors="replace")
    for part in (data.train, data.valid, data.test):
        assert part.inputs.shape == part.targets.shape and part.inputs.shape[1] == 32
        assert (part.inputs.flatten()[1:] == part.targets.flatten()[:-1]).all()
    assert bytes(data.train.inputs.flatten()[:100].astype(np.uint8)) == source[:100]
    end = bytes(data.test.inputs.flatten()[:1000].astype(np.uint8))
    assert source.index(end) == len(source) * 9 // 10
    shares = [part.inputs.size / len(source) for part in (data.train, data.valid, data.test)]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.001)


def test_two_machines_with_the_same_data_know_it(tmp_path: Path, cache: PreparedData) -> None:
    again = PreparedData(tmp_path)
    assert digits(again).sha256 == digits(cache).sha256
    assert text(again, 16).sha256 == text(cache, 16).sha256 != text(cache, 32).sha256
    assert hash_of("a") != hash_of("b")


def test_a_text_that_is_shorter_than_a_window_is_refused(cache: PreparedData) -> None:
    with pytest.raises(Infeasible, match="a context of 1,000,000 characters is longer than a tenth"):
        text(cache, 1_000_000)
