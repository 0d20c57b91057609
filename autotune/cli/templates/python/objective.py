"""What is tuned: sort an array by buckets, then each bucket by itself."""

import time

import numpy as np

DATA = np.random.default_rng(0).random(50_000)


def sort_by_buckets(buckets: int, kind: str) -> dict[str, float]:
    """One reading: the seconds it takes. The arguments are the knobs of space.yaml."""
    start = time.perf_counter()
    order = np.minimum((DATA * buckets).astype(np.int64), buckets - 1)
    sorted_parts = [np.sort(DATA[order == bucket], kind=kind) for bucket in range(buckets)]
    seconds = time.perf_counter() - start
    disorder = float(np.sum(np.diff(np.concatenate(sorted_parts)) < 0))
    return {"time": seconds, "disorder": disorder}
