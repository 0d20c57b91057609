"""What a store is asked for, and that the answers expected are those of a dictionary."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.beside import importable
from tests.objectives.storage.small import STORAGE


def contents(rows: int = 200, mean: int = 60, skew: float = 0.8) -> Any:
    importable(STORAGE)
    from key_values import Contents

    return Contents(rows, mean, skew)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 80),
    mean=st.integers(1, 300),
    skew=st.floats(0.01, 3),
    seed=st.integers(0, 2**32 - 1),
    counts=st.tuples(*[st.integers(0, 20)] * 3, st.integers(1, 9), st.integers(0, 20), st.integers(1, 9)),
)
def test_answers_are_those_of_a_dictionary(
    rows: int, mean: int, skew: float, seed: int, counts: tuple[int, ...]
) -> None:
    truth = contents(rows, mean, skew)
    from key_values import Mix, Read, Scan

    model = dict(truth.all())
    operations = truth.operations(Mix(*counts), np.random.default_rng(seed))
    for operation in operations:
        if isinstance(operation, Read):
            assert operation.expected == model.get(operation.key)
        elif isinstance(operation, Scan):
            behind = sorted(row for row in model.items() if row[0] >= operation.key)
            assert operation.expected == behind[: counts[3]]
        else:
            for change in operation.changes:
                if change.removed is not None:
                    del model[change.removed]
                model[change.key] = change.value
    assert list(truth.all()) == sorted(model.items()) and len(model) == rows
    misses = sum(isinstance(each, Read) and each.expected is None for each in operations)
    assert misses == counts[1] and len(operations) == sum(counts[:3]) + counts[4]


def test_what_is_missed_lies_between_keys() -> None:
    truth = contents()
    from key_values import Mix

    keys = [key for key, _ in truth.all()]
    missed = [read.key for read in truth.operations(Mix(0, 500, 0, 1, 0, 1), np.random.default_rng(0))]
    inside = [key for key in missed if keys[0] < key < keys[-1]]
    assert not set(missed) & set(keys) and len(inside) > 0.98 * len(missed)


def test_values_are_of_many_sizes_and_half_of_them_compress() -> None:
    truth = contents(2000, 300)
    values = [value for _, value in truth.all()]
    sizes = [len(value) for value in values]
    assert len(set(values)) == len(values)
    assert 150 <= min(sizes) < 170 and 430 < max(sizes) <= 450 and abs(np.mean(sizes) - 300) < 10
    packed = [len(zlib.compress(value)) / len(value) for value in values]
    assert np.mean(packed[0::2]) > 1 and np.mean(packed[1::2]) < 0.7


def test_some_keys_are_asked_for_far_more_often() -> None:
    drawn = np.bincount(contents(1000, skew=1.0).draw(np.random.default_rng(0), 20_000), minlength=1000)
    even = np.bincount(contents(1000, skew=0.01).draw(np.random.default_rng(0), 20_000), minlength=1000)
    assert drawn.max() > 10 * even.max() and np.sort(drawn)[-100:].sum() > 10_000


def test_a_saved_state_comes_back() -> None:
    truth = contents()
    saved, before = truth.saved(), list(truth.all())
    for _ in range(2):
        truth.transaction([1, 2, 3], np.random.default_rng(0))
        assert list(truth.all()) != before
        truth.restore(saved)
        assert list(truth.all()) == before
