"""``serving``: a model behind a socket, asked by another process at the times of a Poisson process.

A reading is the highest rate at which 99 of 100 requests are answered within the limit, each from the moment
at which it was to be sent. Rates are tried, each for ten limits and a second at least, on a server of the
reading's own, until two that differ by 7 % enclose it; one does not hold if it fails twice. In that time a
queue of a limit grows where a rate is a tenth too high: so a reading may be above what holds for ever by as
much. Besides it is off by what the machine does meanwhile; an interval is of several readings.

The check sends half of the requests that there are at once, then some as they come usually, and these again
after another model was loaded: each must be answered once, with what the model makes of it alone, in float64.
The answers of all readings are held to the same: one that never comes is no late one.

Workload: ``inputs``, ``hidden`` and ``outputs`` of the perceptron; ``limit_ms``; ``repeated``, the share of
requests for one of ``popular`` inputs, of which some are asked for more often (Zipf's law). The others differ
from all that were sent for long.

Metrics: ``rate`` (requests a second), ``p99`` (s, of the last try that held), ``error``. Baselines: what
people set first, batches of 8 and of 32 that wait for up to 2 and 5 ms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from load_generator import Heard, Load
from perceptron import BANK, Model, Shape, bank
from served import Served, served
from sustained import highest

from autotune.measure.objective import Baseline, Context, Infeasible, Objective, WrongAnswer

DEFAULT: Mapping[str, Any] = {"max_batch": 1, "delay_ms": 0, "instances": 1, "blas_threads": 1, "cache": 0}
"""A server that answers one request after the other."""
TOLERANCE = 2e-5
"""Of an output, relative to the largest one."""
MODELS = 2
SHORT = 0.3
"""Seconds of a try that finds about where a rate lies."""
LIMITS = 10
"""So many times the limit lasts a try that counts, and a second at least: a rate that is a tenth too high has
a queue of a limit by then."""
LATE = 0.01
"""Of the requests, how many may miss the limit."""
STEP = 1.07
"""The factor to which a rate is found."""
LEAST = 20.0
TRIES = 2
"""A rate holds where it does in one of them: what else the machine is busy with is not the server's fault."""
MOST_SEED = 2**31


class Configured:
    """A configuration, and about where its rate lies."""

    def __init__(self, knobs: Mapping[str, Any]) -> None:
        self.knobs = {**DEFAULT, **knobs}
        self.start = 200.0


class Serving(Objective):
    sources: ClassVar[tuple[str, ...]] = ("batch_server.py",)
    workload_facts = ("inputs", "hidden", "outputs", "limit_ms", "repeated", "popular")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.shape = Shape(*(context.size(name) for name in ("inputs", "hidden", "outputs")))
        self.limit = context.amount("limit_ms") / 1000
        self.repeated, self.popular = context.amount("repeated", -1.0), context.size("popular")
        if not 0 <= self.repeated <= 1:
            raise Infeasible(f"repeated should be a share between 0 and 1, and is {self.repeated:g}")
        if self.popular >= BANK:
            raise Infeasible(f"popular should be below {BANK}, and is {self.popular}")

    @property
    def is_warm(self) -> bool:
        """Each reading has a new server, which warms itself up."""
        return True

    @cached_property
    def answers(self) -> Path:
        """The file of the right ones: (models, requests, outputs)."""

        def make() -> dict[str, np.ndarray]:
            inputs = bank(self.shape)
            return {"answers": np.stack([Model(self.shape, seed).exactly(inputs) for seed in range(MODELS)])}

        made = self.prepared_data.arrays(make, what="answers of a perceptron", shape=f"{BANK} x {self.shape}")
        file = self.context.cache / f"answers-{os.getpid()}.npy"
        np.save(file, made["answers"])
        return file

    def load(self, prepared: Mapping[str, Any]) -> Configured:
        return Configured(prepared)

    def _load(self, rng: np.random.Generator, rate: float, count: int) -> Load:
        return Load(count, rate, int(rng.integers(MOST_SEED)), self.repeated, self.popular)

    def measure(self, loaded: Configured, rng: np.random.Generator) -> Mapping[str, float]:
        held = [Heard(0, 0, 0.0, 0, 0.0)]

        with served(self.shape, self.answers, loaded.knobs) as server:

            def holds(rate: float, long: bool) -> bool:
                count = max(1, round(rate * (max(1.0, LIMITS * self.limit) if long else SHORT)))
                for _ in range(TRIES):
                    load = self._load(rng, rate, count)
                    heard = server.ask(replace(load, limit=self.limit, allowed=int(LATE * count)))
                    _require_right(heard)
                    if heard.late <= LATE * count:
                        _require_all(heard, count)  # it was not broken off
                        held.append(heard)
                        return True
                return False

            rate = highest(holds, loaded.start, LEAST, STEP)
        if not rate:
            limit = f"{self.limit * 1000:g} ms"
            raise Infeasible(
                f"more than 1 % of the requests took longer than {limit}, even at {LEAST:g} a second"
            )
        loaded.start = rate / STEP**5
        return {"rate": rate, "p99": held[-1].p99, "error": max(heard.error for heard in held)}

    def check(self, loaded: Configured, rng: np.random.Generator) -> Mapping[str, float]:
        burst = replace(self._load(rng, 1e6, BANK // 2), repeated=0.0, popular=1)
        usual = self._load(rng, 300.0, 100)
        with served(self.shape, self.answers, loaded.knobs) as server:
            loads = (burst, usual, replace(usual, model=1), replace(burst, model=1, count=BANK // 8))
            return {"error": max(_error_of_all(server, load) for load in loads)}

    def baselines(self) -> tuple[Baseline, ...]:
        return tuple(
            Baseline(
                name, "batches of up to {max_batch}, which wait for {delay_ms} ms at most".format(**knobs)
            )
            for name, knobs in BASELINES.items()
        )

    def load_baseline(self, baseline: Baseline) -> Configured:
        return self.load(BASELINES[baseline.name])


BASELINES: Mapping[str, Mapping[str, Any]] = {
    "batches-of-8": {"max_batch": 8, "delay_ms": 2},
    "batches-of-32": {"max_batch": 32, "delay_ms": 5},
}


def _error_of_all(server: Served, load: Load) -> float:
    """The error of the answers; raises where not each request got one."""
    heard = server.ask(load)
    _require_right(heard)
    _require_all(heard, load.count)
    return heard.error


def _require_all(heard: Heard, count: int) -> None:
    if heard.answered < count:
        raise WrongAnswer(f"of {count} requests {count - heard.answered} were never answered")


def _require_right(heard: Heard) -> None:
    if heard.twice:
        raise WrongAnswer(f"{heard.twice} answers came to what was not asked, or was answered already")
    if not heard.error <= TOLERANCE:  # NaN is no answer
        raise WrongAnswer(f"an answer is off by {heard.error:.2g} of the largest output, past {TOLERANCE:g}")
