"""``input-pipeline``: how fast a training is fed, by PyTorch's ``DataLoader`` and what it is told to do.

Each picture is read from disk, decompressed, mirrored and moved by chance, and made floats around 0, in
batches and in a new order each epoch. A reading is one epoch, end to end: a layer of a network takes each
batch in.

Workload: ``samples`` of an epoch and ``batch`` (any positive integers); ``filters`` of the layer.

Metrics: ``rate`` (samples a second), ``kept`` (bytes of memory that samples are kept in). Baseline: a worker
for each core that is measured on, which is what people do first.

The check reads two epochs. In each of them every sample comes exactly once, is the picture that lies on disk,
changed as its batch says, to the last bit; and the changes are by chance: from epoch to epoch, and from batch
to batch, where a generator that all workers have with one seed gives the same again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from input_samples import Batch, Kept, Pictures, Samples, Stored, all_changed, normal, pictures
from torch.utils.data import DataLoader

from autotune.measure.clocks import perf_counter
from autotune.measure.cores.pinning import allowed_here
from autotune.measure.objective import Baseline, Context, Objective, WrongAnswer

MOST_SEED = 2**31
LIKE_BEFORE = 0.2
"""Of the samples, how many may be changed as they were in the epoch before: by chance one in 162 is."""
FEW = 8
"""Batches as short as that are alike by chance now and then."""


class Feed:
    """A loader as a configuration has it, and where its pictures become floats."""

    def __init__(self, stored: Stored, batch: int, knobs: Mapping[str, Any]) -> None:
        workers = int(knobs["workers"])
        self._converts = knobs["convert"] == "trainer"
        self.kept = Kept(stored, str(knobs["keep"]))
        samples = Samples(
            self.kept,
            packed=bool(knobs["packed"]),
            at_once=bool(knobs["at_once"]),
            normal_here=not self._converts,
        )
        ahead = {"prefetch_factor": int(knobs["ahead"]), "persistent_workers": True} if workers else {}
        self._loader = DataLoader(
            samples,
            batch_size=batch,
            sampler=torch.utils.data.RandomSampler(range(stored.count)),
            num_workers=workers,
            collate_fn=_as_it_is,
            worker_init_fn=_one_thread,
            **ahead,
        )

    def epoch(self) -> Any:
        """The batches of an epoch, in an order of its own."""
        for batch in self._loader:
            yield batch.normal() if self._converts else batch


def _as_it_is(batch: Batch) -> Batch:
    return batch  # it comes whole


def _one_thread(worker: int) -> None:
    torch.set_num_threads(1)  # workers are what runs side by side


class InputPipeline(Objective):
    workload_facts = ("samples", "batch", "filters")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.samples, self.batch = context.size("samples"), context.size("batch")
        self.filters = context.size("filters", 16)

    @cached_property
    def pictures(self) -> Pictures:
        return pictures(self.prepared_data, self.samples)

    def load(self, prepared: Mapping[str, Any]) -> Feed:
        return Feed(Stored.written(self.context.cache, self.pictures), self.batch, prepared)

    @cached_property
    def _layer(self) -> torch.nn.Module:
        return torch.nn.Conv2d(3, self.filters, 8, stride=8)

    def measure(self, loaded: Feed, rng: np.random.Generator) -> Mapping[str, float]:
        """An epoch."""
        torch.manual_seed(int(rng.integers(MOST_SEED)))
        came = 0
        with torch.inference_mode():
            start = perf_counter()
            for batch in loaded.epoch():
                self._layer(batch.pictures)
                came += len(batch.pictures)
            seconds = perf_counter() - start
        if came != self.samples:
            raise WrongAnswer(f"of {self.samples} samples {came} came in a reading")
        return {"rate": self.samples / seconds, "kept": float(loaded.kept.bytes)}

    def check(self, loaded: Feed, rng: np.random.Generator) -> Mapping[str, float]:
        torch.manual_seed(int(rng.integers(MOST_SEED)))
        epochs = [list(loaded.epoch()) for _ in range(2)]
        first, second = (self._changes_of(batches) for batches in epochs)
        alike = float((first == second).all(dim=1).float().mean())
        if alike > LIKE_BEFORE and self.samples > FEW:
            raise WrongAnswer(f"{alike:.0%} of the samples are changed as they were in the epoch before")
        return {}

    def _changes_of(self, batches: list[Batch]) -> torch.Tensor:
        """How each sample of an epoch was changed, by its number; raises where the epoch is not right."""
        numbers = torch.cat([batch.numbers for batch in batches])
        if sorted(numbers.tolist()) != list(range(self.samples)):
            missing = self.samples - len(set(numbers.tolist()))
            raise WrongAnswer(f"of {self.samples} samples {len(numbers)} came, and {missing} did not")
        for batch in batches:
            pictures = torch.from_numpy(self.pictures[batch.numbers.numpy()])
            if not torch.equal(normal(all_changed(pictures, batch.changes)), batch.pictures):
                raise WrongAnswer("a batch has other pictures than lie on disk, changed as it says")
        long = [batch.changes.numpy().tobytes() for batch in batches if len(batch.numbers) > FEW]
        if len(set(long)) < len(long):
            raise WrongAnswer("two batches were changed alike: as by generators with one seed")
        return torch.cat([batch.changes for batch in batches])[numbers.argsort()]

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("workers", "a worker for each core that is measured on, and nothing else changed"),)

    def load_baseline(self, baseline: Baseline) -> Feed:
        return self.load({**DEFAULT, "workers": len(allowed_here())})


DEFAULT: Mapping[str, Any] = {
    "workers": 0,
    "ahead": 2,
    "packed": False,
    "keep": "nothing",
    "at_once": False,
    "convert": "worker",
}
"""What a loader does that is told nothing."""
