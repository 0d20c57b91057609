"""A made-up kernel is the same for its seed, and can be searched as a recording is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from benchmarks.made_up_kernels import SIZES, kernel, recording
from benchmarks.recorded_spaces import opened
from benchmarks.score import Judge

SEED = 103
"""A small one, of which a quarter fails."""


def test_a_kernel_follows_from_its_seed() -> None:
    once, again = kernel(SEED), kernel(SEED)
    assert once is not None and again is not None
    assert once.knobs == again.knobs
    assert np.array_equal(once.milliseconds, again.milliseconds, equal_nan=True)
    assert SIZES[0] <= len(once.milliseconds) <= SIZES[1]
    assert 0.0 < np.isnan(once.milliseconds).mean() < 0.5


def test_its_recording_holds_what_works_and_what_fails(tmp_path: Path) -> None:
    made = kernel(SEED)
    assert made is not None
    path = tmp_path / "kernel.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump(recording(made, "kernel"), file)
    read, space = opened(path)
    assert space.feasible.size == len(made.milliseconds)
    failed = int(np.isnan(made.milliseconds).argmax())
    entries = [
        read.find(space.configuration({name: int(column[row]) for name, column in made.columns.items()}))
        for row in (failed, int(np.nanargmin(made.milliseconds)))
    ]
    assert [entry is not None and entry.status.failed for entry in entries] == [True, False]
    assert Judge(read).budget > 50
