"""Which GPUs a search measures on: its own, and where others have taken all of them, in turns.

A search claims a GPU by a lock on a file with the device's UUID, as it claims cores. A worker sees only
the one GPU that it measures on, as ``cuda:0``. GPUs of one search are of one kind, so that its trials can be
compared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.cores.turns import FileLock, locks_folder

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class GpuClaim:
    """One GPU to measure on. Close it in the end."""

    key: str
    """Its UUID, which is the same for all processes of this machine."""
    visible: str
    """The value of ``CUDA_VISIBLE_DEVICES`` for a process that may see only this GPU."""
    name: str
    claim: FileLock | None
    """``None``: another search has claimed it, and this one takes turns with it."""

    @property
    def shared(self) -> bool:
        return self.claim is None

    def close(self) -> None:
        if self.claim is not None:
            self.claim.close()


def find_gpus(
    wanted: int,
    found: Sequence[Mapping[str, object]],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[GpuClaim, ...]:
    """Claim up to ``wanted`` GPUs of the kind of the first; where none is free, share the first.

    ``found`` are the visible ones in CUDA's order (:func:`autotune.provenance.device.query_gpus`).
    """
    if wanted <= 0 or not found:
        return ()
    folder = folder or locks_folder()
    names = visible_names(len(found), os.environ if environment is None else environment)
    first = str(found[0].get("name", ""))
    claims: list[GpuClaim] = []
    alike = [i for i, gpu in enumerate(found) if str(gpu.get("name", "")) == first]
    for index in alike:
        if len(claims) == wanted:
            break
        key = _key(found[index], names[index])
        lock = FileLock(folder / f"autotune-gpu-{key}.claim")
        if lock.take():
            claims.append(GpuClaim(key, names[index], first, lock))
        else:
            lock.close()
    return tuple(claims) or (GpuClaim(_key(found[0], names[0]), names[0], first, None),)


def visible_names(count: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The name of each visible GPU in ``CUDA_VISIBLE_DEVICES``; its number where the variable lacks it."""
    given = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    return tuple(given[i] if i < len(given) else str(i) for i in range(count))


def _key(gpu: Mapping[str, object], visible: str) -> str:
    return "".join(c if c.isalnum() or c == "-" else "_" for c in str(gpu.get("uuid") or visible))
