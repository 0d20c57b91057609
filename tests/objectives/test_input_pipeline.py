"""input-pipeline feeds every sample as it lies on disk, changed by chance, whatever the configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.objective import Context, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

pytestmark = [pytest.mark.torch, needs_torch, pytest.mark.usefixtures("one_thread")]

SAMPLES, BATCH = 70, 16  # the last batch is a short one


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    importable()
    from input_pipeline import InputPipeline

    workload = {"samples": SAMPLES, "batch": BATCH, "filters": 2}
    return InputPipeline(Context(workload, {"cores": 2}, tmp_path_factory.mktemp("samples")))


def feed(pipeline: Any, **knobs: Any) -> Any:
    from input_pipeline import DEFAULT

    return pipeline.load({**DEFAULT, **knobs})


def test_the_default_of_the_space_is_that_of_the_loader() -> None:
    importable()
    from input_pipeline import DEFAULT

    spec = read_spec(SPACES / "input-pipeline.yaml", device={"cores": 2})
    assert {**DEFAULT, **spec.space.default()} == DEFAULT and set(DEFAULT) == {
        k.name for k in spec.space.knobs
    }


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("keep", ["nothing", "records", "pictures"])
def test_every_way_of_feeding_is_right(pipeline: Any, workers: int, keep: str) -> None:
    for number in range(4):
        at_once, late = number % 2 == 1, number // 2 == 1
        convert = "trainer" if late else "worker"
        fed = feed(pipeline, workers=workers, keep=keep, at_once=at_once, packed=late, convert=convert)
        assert pipeline.check(fed, np.random.default_rng(number)) == {}
        found = pipeline.measure(fed, np.random.default_rng(number))
        whole = SAMPLES * 64 * 64 * 3
        least, most = {"nothing": (0, 0), "records": (1, whole / 2), "pictures": (whole, whole)}[keep]
        assert found["rate"] > 0 and least <= found["kept"] <= most


def test_its_baseline_is_right_and_has_no_more_workers_than_cores(pipeline: Any) -> None:
    """On a large machine it had a worker for each of its cores, all on the few that are measured on."""
    (baseline,) = pipeline.baselines()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        fed = pipeline.load_baseline(baseline)
        assert fed._loader.num_workers == 1
        assert pipeline.check(fed, np.random.default_rng(0)) == {}
    finally:
        os.sched_setaffinity(0, before)


def test_a_picture_is_changed_alike_alone_and_in_a_batch(pipeline: Any) -> None:
    import torch
    from input_samples import all_changed, changed, draw

    some = np.array(pipeline.pictures[:20])
    changes = draw(20)
    assert len(changes.unique(dim=0)) > 10 and changes[:, 0].unique().tolist() == [0, 1]
    alone = np.stack([changed(one, change) for one, change in zip(some, changes.numpy(), strict=True)])
    assert torch.equal(all_changed(torch.from_numpy(some), changes), torch.from_numpy(alone))
    assert changed(some[0], np.array([1, 0, 2]))[:, 2].tolist() == some[0][:, -1].tolist()


class Wrong:
    """A feed that is wrong in one way."""

    def __init__(self, right: Any, fault: str, pictures: np.ndarray) -> None:
        self.right, self.fault, self.pictures = right, fault, np.array(pictures)
        self.kept = right.kept

    def epoch(self) -> Iterator[Any]:
        for number, batch in enumerate(self.right.epoch()):
            if self.fault != "a batch is left out" or number != 1:
                yield self.spoilt(batch.numbers, batch.changes, batch.pictures)

    def spoilt(self, numbers: Any, changes: Any, pictures: Any) -> Any:
        import torch
        from input_samples import Batch, all_changed, normal

        if self.fault == "a sample comes twice":
            numbers = torch.cat([numbers[:1], numbers[:-1]])
        elif self.fault == "a pixel is another":
            pictures[0, 0, 0, 0] += 2 / 255
        elif self.fault == "each batch is changed as the one before":
            changes = torch.arange(len(numbers))[:, None] % torch.tensor([2, 3, 4])
        elif self.fault == "each epoch is as the one before":
            changes = numbers[:, None] % torch.tensor([2, 3, 4])
        if self.fault.startswith("each"):
            pictures = normal(all_changed(torch.from_numpy(self.pictures[numbers.numpy()]), changes))
        return Batch(numbers, changes, pictures)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("a batch is left out", "and 16 did not"),
        ("a sample comes twice", "samples 70 came"),
        ("a pixel is another", "other pictures than lie on disk"),
        ("each batch is changed as the one before", "generators with one seed"),
        ("each epoch is as the one before", "as they were in the epoch before"),
    ],
)
def test_a_feed_that_is_wrong_is_always_caught(pipeline: Any, fault: str, says: str) -> None:
    wrong = Wrong(feed(pipeline, keep="pictures"), fault, pipeline.pictures)
    for seed in range(10):
        with pytest.raises(WrongAnswer, match=says):
            pipeline.check(wrong, np.random.default_rng(seed))


def test_nor_has_a_reading_a_rate_in_which_a_batch_is_missing(pipeline: Any) -> None:
    wrong = Wrong(feed(pipeline), "a batch is left out", pipeline.pictures)
    with pytest.raises(WrongAnswer, match="of 70 samples 54 came in a reading"):
        pipeline.measure(wrong, np.random.default_rng(0))


def test_the_samples_are_written_once(pipeline: Any, tmp_path: Path) -> None:
    from input_samples import Stored, decode

    some = pipeline.pictures[:5]
    stored = Stored.written(tmp_path, some)
    written = {file: file.stat().st_mtime_ns for file in stored.folder.iterdir()}
    assert Stored.written(tmp_path, some) == stored and list(tmp_path.iterdir()) == [stored.folder]
    assert {file: file.stat().st_mtime_ns for file in stored.folder.iterdir()} == written
    for number in range(5):
        for packed in (False, True):
            assert (decode(stored.read(number, packed=packed)) == some[number]).all()
