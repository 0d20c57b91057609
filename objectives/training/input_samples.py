"""Samples for a training to read: digits blown up to pictures, compressed as pictures are, on disk.

They lie in a file each, or all in one file. What was read may be kept in memory that all workers of a loader
share: as it lies on disk, or decoded.
"""

from __future__ import annotations

import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from autotune.measure.prepared_data import PreparedData

SIDE = 64
"""Pixels; three bytes each."""
SHAPE = (SIDE, SIDE, 3)
BYTES = SIDE * SIDE * 3
MOST_SHIFT = 4
"""Pixels by which a picture is moved at most, each way."""

Pictures = NDArray[np.uint8]


def pictures(cache: PreparedData, count: int) -> Pictures:
    """So many pictures, no two of them alike: digits in colours, with noise that does not compress."""

    def make() -> dict[str, NDArray[np.generic]]:
        from sklearn.datasets import load_digits

        rng = np.random.default_rng(0)
        digits = load_digits().images[np.arange(count) % 1797].astype(np.float32) / 16
        colours = rng.uniform(0.3, 1.0, (count, 1, 1, 3)).astype(np.float32)
        large = np.kron(digits, np.ones((1, SIDE // 8, SIDE // 8), np.float32))
        noise = rng.integers(0, 2, (count, *SHAPE), dtype=np.uint8)
        return {"pictures": (large[..., None] * colours * 240).astype(np.uint8) + noise}

    return np.asarray(cache.arrays(make, what="pictures of digits", size=f"{count} x {SIDE}")["pictures"])


@dataclass(frozen=True)
class Stored:
    """Where the samples lie: a file each in ``folder``, or all in one, and where each begins there."""

    folder: Path
    count: int

    @classmethod
    def written(cls, folder: Path, samples: Pictures) -> Stored:
        """Write them where they do not lie yet; several processes may do so at once."""
        stored = cls(folder / f"samples-{len(samples)}", len(samples))
        if stored.folder.exists():
            return stored
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            there = Path(unfinished) / "samples"
            there.mkdir()
            records = [zlib.compress(sample.tobytes()) for sample in samples]
            for number, record in enumerate(records):
                (there / f"{number}.z").write_bytes(record)
            (there / "all").write_bytes(b"".join(records))
            np.save(there / "ends.npy", np.cumsum([len(record) for record in records]))
            with suppress(OSError):  # another process was quicker
                there.rename(stored.folder)
        return stored

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.asarray(np.load(self.folder / "ends.npy"))

    def slot(self, number: int) -> slice:
        """Where a sample is among all."""
        return slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))

    def read(self, number: int, *, packed: bool) -> bytes:
        if not packed:
            return (self.folder / f"{number}.z").read_bytes()
        where = self.slot(number)
        with (self.folder / "all").open("rb") as file:
            file.seek(where.start)
            return file.read(where.stop - where.start)


def decode(record: bytes) -> Pictures:
    return np.frombuffer(zlib.decompress(record), np.uint8).reshape(SHAPE)


class Kept:
    """What was read is kept in shared memory: nothing, the records, or the decoded pictures."""

    def __init__(self, stored: Stored, what: str) -> None:
        self.what = what
        size = {"nothing": 0, "records": int(stored.ends[-1]), "pictures": stored.count * BYTES}[what]
        self._bytes = torch.empty(size, dtype=torch.uint8).share_memory_()
        self._there = torch.zeros(stored.count if size else 0, dtype=torch.bool).share_memory_()
        self.bytes = size
        self._stored = stored

    def _place(self, number: int) -> NDArray[np.uint8]:
        if self.what == "records":
            return self._bytes.numpy()[self._stored.slot(number)]
        return self._bytes.numpy()[number * BYTES : (number + 1) * BYTES]

    def picture(self, number: int, *, packed: bool) -> Pictures:
        """The decoded picture, from memory as far as it is there."""
        if self.what == "nothing":
            return decode(self._stored.read(number, packed=packed))
        place = self._place(number)
        if not self._there[number]:
            record = self._stored.read(number, packed=packed)
            read = np.frombuffer(record, np.uint8) if self.what == "records" else decode(record)
            place[:] = read.reshape(-1)
            self._there[number] = True
        return decode(place.tobytes()) if self.what == "records" else place.reshape(SHAPE)


def draw(count: int) -> torch.Tensor:
    """How so many pictures are changed: whether mirrored, moved down and right; (count, 3) integers.

    From PyTorch's generator, of which each worker of a loader has one with a seed of its own; of NumPy's all
    of them may have the same.
    """
    mirrored = torch.randint(0, 2, (count, 1))
    return torch.cat([mirrored, torch.randint(-MOST_SHIFT, MOST_SHIFT + 1, (count, 2))], dim=1)


def changed(picture: Pictures, change: NDArray[np.int64]) -> Pictures:
    """A picture mirrored and moved, what leaves it on one side coming back on the other."""
    mirrored, down, right = (int(number) for number in change)
    return np.roll(picture[:, ::-1] if mirrored else picture, (down, right), axis=(0, 1))


def all_changed(batch: torch.Tensor, changes: torch.Tensor) -> torch.Tensor:
    """The same for a whole batch at once."""
    places = torch.arange(SIDE)
    rows = (places - changes[:, 1:2]) % SIDE
    columns = (places - changes[:, 2:3]) % SIDE
    columns = torch.where(changes[:, :1] == 1, SIDE - 1 - columns, columns)
    return batch[torch.arange(len(batch))[:, None, None], rows[:, :, None], columns[:, None, :]]


def normal(batch: torch.Tensor) -> torch.Tensor:
    """As a network takes pictures: (n, 3, side, side), of floats around 0."""
    return batch.permute(0, 3, 1, 2).to(torch.float32).div_(127.5).sub_(1.0).contiguous()


@dataclass(frozen=True)
class Batch:
    numbers: torch.Tensor
    changes: torch.Tensor
    pictures: torch.Tensor

    def normal(self) -> Batch:
        return Batch(self.numbers, self.changes, normal(self.pictures))


class Samples(Dataset[Any]):
    """A batch at a time, as the knobs say: one picture after the other, or all at once."""

    def __init__(self, kept: Kept, *, packed: bool, at_once: bool, normal_here: bool) -> None:
        self._kept, self._packed, self._at_once, self._normal_here = kept, packed, at_once, normal_here

    def __getitems__(self, numbers: list[int]) -> Batch:
        read = [self._kept.picture(number, packed=self._packed) for number in numbers]
        changes = draw(len(numbers))
        if self._at_once:
            ready = all_changed(torch.from_numpy(np.stack(read)), changes)
        else:
            each = zip(read, changes.numpy(), strict=True)
            ready = torch.stack([torch.from_numpy(changed(one, change).copy()) for one, change in each])
        batch = Batch(torch.tensor(numbers), changes, ready)
        return batch.normal() if self._normal_here else batch
