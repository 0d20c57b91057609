"""How the gradients of a training step get from rank to rank: the knobs of ``comm-ddp`` as a value."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Plan:
    """The default is what PyTorch's ``DistributedDataParallel`` does on gloo.

    ``bucket_mb``: gradients go out together in MiB of so many; the first bucket is of at most one, so that
    something is under way early (Li et al., 2020). ``overlap``: while the backward pass goes on. ``depth``:
    buckets in flight; 0: all of them. ``compression`` as of ``comm-allreduce``.

    ``reducer``: ``buckets``; ``cycles``, as Horovod does: every ``cycle_ms`` what is ready is fused, up to
    ``bucket_mb``, and sent (Sergeev and Del Balso, 2018); ``ddp``, PyTorch's own class.
    """

    bucket_mb: float = 25.0
    overlap: bool = True
    depth: int = 0
    threads: int = 2
    connections: int = 1
    congestion: str = "host"
    algorithm: str = "gloo"
    compression: str = "none"
    reducer: str = "buckets"
    cycle_ms: float = 1.0


def buckets_of(sizes: list[int], first: int, cap: int) -> list[list[int]]:
    """Which tensors go together: in the order given, a bucket is full when its bytes reach its cap.

    ``first``: the cap of the first one in bytes; ``cap``: that of the others.
    """
    buckets: list[list[int]] = [[]]
    filled, limit = 0, min(first, cap)
    for number, size in enumerate(sizes):
        buckets[-1].append(number)
        filled += size
        if filled >= limit:
            buckets.append([])
            filled, limit = 0, cap
    return [bucket for bucket in buckets if bucket]
