"""Horovod's tuning of fusion threshold and cycle time, made anew from its published description.

Four given points first, then points of the highest expected improvement under a Gaussian process (RBF kernel,
noise 0.8) on standardised scores, twenty in all; the best seen is kept. The score is bytes reduced a second,
the mean over ten steps after those of a warm-up. As in the documentation of *Autotune: Automated
Performance Tuning* and the parameter manager of Horovod 0.28 (A. Sergeev and M. Del Balso, *Horovod: fast and
easy distributed deep learning in TensorFlow*, 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

GIVEN = ((4.0, 5.0), (32.0, 50.0), (16.0, 25.0), (8.0, 10.0))
"""Threshold in MiB, cycle time in ms."""

BOUNDS = ((0.0, 64.0), (1.0, 100.0))
SAMPLES = 20
NOISE = 0.8
CANDIDATES = 2000

DEFAULT = (64.0, 1.0)
"""What Horovod does without tuning."""


@dataclass(frozen=True)
class Tried:
    threshold: float
    cycle: float
    score: float


def tune(score: Callable[[float, float], float], seed: int, samples: int = SAMPLES) -> list[Tried]:
    """All that was tried, in order; ``score(threshold, cycle)`` is better the larger it is."""
    tried: list[Tried] = []
    points = _points(tried, np.random.default_rng(seed))
    for _ in range(samples):
        threshold, cycle = next(points)
        tried.append(Tried(threshold, cycle, score(threshold, cycle)))
    return tried


def _points(tried: list[Tried], rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    yield from GIVEN
    low, high = np.array(BOUNDS).T
    while True:
        x = (np.array([(t.threshold, t.cycle) for t in tried]) - low) / (high - low)
        y = np.array([t.score for t in tried])
        y = (y - y.mean()) / (y.std() or 1.0)
        candidates = rng.random((CANDIDATES, 2))
        gains = [
            _improvement(m, s, float(y.max())) for m, s in zip(*_posterior(x, y, candidates), strict=True)
        ]
        chosen = low + candidates[int(np.argmax(gains))] * (high - low)
        yield float(chosen[0]), float(chosen[1])


def _posterior(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of a Gaussian process with an RBF kernel of length one."""
    solved = np.linalg.inv(_kernel(x, x) + NOISE**2 * np.eye(len(x)))
    cross = _kernel(at, x)
    variance = 1.0 - np.einsum("ij,jk,ik->i", cross, solved, cross)
    return cross @ solved @ y, np.sqrt(np.maximum(variance, 1e-12))


def _kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    distances = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    return np.asarray(np.exp(-0.5 * distances))


def _improvement(mean: float, deviation: float, best: float) -> float:
    z = (mean - best) / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return (mean - best) * NormalDist().cdf(z) + deviation * density
