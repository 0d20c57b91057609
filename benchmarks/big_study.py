"""Writes a study of many trials into a store, through the store's own interface.

    python -m benchmarks.big_study --trials 100000 --store big.db

Outcomes are drawn, not measured: a smooth function of five knobs with noise, a region that runs out of
memory, some crashes, some trials pruned. The same seed writes the same study.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from autotune.errors import InputError
from autotune.measure.facts import TIMELINE
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewStudy, NewTrial, Place
from autotune.store.store import Store
from benchmarks.running import at_least_one, run_as_command

AT_ONCE = 500
"""Trials that are proposed in one transaction."""
READINGS = 5
BEGAN = 1_760_000_000.0
"""The study's beginning, POSIX seconds; a trial takes a second and a half of its time."""
SECONDS = 1.5

TILES = tuple(range(1, 65))
BLOCKS = tuple(range(8, 520, 8))
UNROLLS = (1, 2, 4, 8, 16)
LAYOUTS = ("row", "column", "blocked")
CARDINALITY = len(TILES) * len(BLOCKS) * len(UNROLLS) * len(LAYOUTS) * 2

KNOBS: dict[str, dict[str, Any]] = {
    "tile": {"range": [1, 64], "step": 1, "scale": "linear", "default": 8},
    "block": {"range": [8, 512], "step": 8, "scale": "linear", "default": 64},
    "unroll": {"values": list(UNROLLS), "default": 1},
    "layout": {"choices": list(LAYOUTS), "default": "row"},
    "pack": {"flag": True, "default": False},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=at_least_one, default=100_000)
    parser.add_argument("--store", required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    with Store.open(options.store, clock=Clock()) as store:
        label = write(store, options.trials, options.seed)
    print(f"{label}: {options.trials:,} trials in {time.perf_counter() - began:.0f} s")


class Clock:
    """The study's own time, which the writer sets."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> float:
        return self.now


def write(store: Store, trials: int, seed: int = 0) -> str:
    """Write the study and give its label. Fewer trials than there are configurations."""
    if trials > CARDINALITY:
        raise InputError(f"at most {CARDINALITY:,} trials: no configuration is searched twice")
    clock = store._clock
    assert isinstance(clock, Clock)
    rng = np.random.default_rng(seed)
    study = store.create_study(_study())
    settings = {"search": {"strategy": "random", "seed": seed, "options": {}}, "budget": {"trials": trials}}
    session = store.open_session(study.id, settings, "", 1, "generated")
    segment = store.open_segment(study.id, {"source_hash": "generated"}, {}, "the study begins")
    places = iter(rng.permutation(CARDINALITY)[:trials].tolist())
    told = 0
    while batch := list(itertools.islice(places, AT_ONCE)):
        new = [_new_trial(_configuration(place), told) for place in batch]
        for trial in store.propose(Place(study.id, session, segment.id), new, worker="generated"):
            assert trial is not None
            clock.now += SECONDS
            store.finish(trial.id, _outcome(trial.configuration, rng, clock.now - SECONDS))
        told += len(batch)
    _defend(store, study.id, session, segment.id, rng)
    store.close_session(session, f"{trials} trials")
    return study.label


def _study() -> NewStudy:
    return NewStudy(
        name="big",
        key="big",
        spec_text="autotune: 1\nname: big\n",
        document={"space": {"knobs": KNOBS, "constraints": [], "workload": {}, "facts": {}}},
        space_hash="big",
        objective="generated",
        workload={},
        metrics=[{"name": "time", "goal": "minimize", "unit": "s"}],
        machine_key="generated",
        environment_hash="",
    )


def _configuration(place: int) -> Configuration:
    place, pack = divmod(place, 2)
    place, layout = divmod(place, len(LAYOUTS))
    place, unroll = divmod(place, len(UNROLLS))
    block, tile = divmod(place, len(TILES))
    return Configuration(
        {
            "tile": TILES[tile],
            "block": BLOCKS[block],
            "unroll": UNROLLS[unroll],
            "layout": LAYOUTS[layout],
            "pack": bool(pack),
        }
    )


def _new_trial(configuration: Configuration, knew: int) -> NewTrial:
    return NewTrial(configuration, "search", "random", {"strategy": "random", "kind": "uniform"}, 0, knew)


def _seconds(c: Configuration) -> float:
    """What a configuration takes, without noise."""
    tile, block = float(c["tile"]), float(c["block"])
    valley = math.log2(tile / 24.0) ** 2 + 0.5 * math.log2(block / 192.0) ** 2
    layout = {"row": 1.3, "column": 1.0, "blocked": 0.9}[str(c["layout"])]
    unroll = 1.0 + 0.1 * abs(math.log2(float(c["unroll"])) - 2.0)
    return 1e-3 * (1.0 + valley) * layout * unroll * (0.8 if c["pack"] and block > 128 else 1.0)


def _outcome(configuration: Configuration, rng: np.random.Generator, at: float) -> Outcome:
    tile, block = float(configuration["tile"]), float(configuration["block"])
    facts = {TIMELINE: {"prepare": [at - 0.9, at, 0], "measure": [at, at + 1.2, 0]}}
    if tile * block > 24_000:
        message = "it needed 5.1 GiB where 4 GiB are allowed"
        return Outcome(Status.OUT_OF_MEMORY, {}, (), {"prepare": 0.9}, message, "measure", facts=facts)
    if rng.random() < 0.01:
        message = "the process was killed by SIGSEGV"
        return Outcome(Status.CRASHED, {}, (), {"prepare": 0.9}, message, "measure", signal=11, facts=facts)
    readings = tuple(_readings(_seconds(configuration), rng))
    values = [reading.value for reading in readings]
    status = Status.PRUNED if values[0] > 4e-3 else Status.OK
    message = "worse than the best beyond doubt" if status is Status.PRUNED else ""
    phases = {"prepare": 0.9, "check": 0.2, "warmup": 0.1, "measure": 0.9}
    return Outcome(status, {"time": _estimate(values)}, readings, phases, message, facts=facts)


def _readings(seconds: float, rng: np.random.Generator, count: int = READINGS) -> Iterator[Reading]:
    for place in range(count):
        stall = float(rng.exponential(0.01))
        noise = 1.0 + 0.01 * rng.standard_normal() + stall
        context = {"wall": 0.18, "cpu": 0.17, "cpu_stall": round(stall * 0.18, 5), "frequency_mhz": 3000.0}
        yield Reading("time", seconds * noise, place * 0.18, "", context)


def _estimate(values: list[float]) -> Estimate:
    middle, error = float(np.median(values)), float(np.std(values)) / math.sqrt(len(values))
    return Estimate(middle, middle - 2.5 * error, middle + 2.5 * error, len(values), error)


def _defend(store: Store, study: int, session: int, segment: int, rng: np.random.Generator) -> None:
    """The default and the best two read again, and a verdict in the form that a finale writes."""
    rows = store.trials(study, "search", Status.OK)
    best = sorted(rows, key=lambda trial: trial.metrics["time"].value)[:2]
    default = Configuration({name: knob["default"] for name, knob in KNOBS.items()})
    entrants = [("the default", default), *((f"trial {t.number}", t.configuration) for t in best)]
    estimates = {}
    for label, configuration in entrants:
        purpose = "default" if label == "the default" else "final"
        reason = {"kind": "re-measurement", "label": label}
        new = NewTrial(configuration, purpose, "finale", reason, -1)  # type: ignore[arg-type]
        [trial] = store.propose(Place(study, session, segment), [new])
        assert trial is not None
        readings = tuple(_readings(_seconds(configuration), rng, 12))
        estimates[label] = _estimate([reading.value for reading in readings])
        store.finish(trial.id, Outcome(Status.OK, {"time": estimates[label]}, readings))
    won = estimates[entrants[1][0]]
    ratio = estimates["the default"].value / won.value
    fields = {"value": won.value, "low": won.low, "high": won.high, "n": won.n, "error": won.error}
    store.save_verdict(
        study,
        session,
        {
            "configuration": dict(best[0].configuration),
            "label": entrants[1][0],
            "is_default": False,
            "metrics": {"time": fields},
            "speedup": {
                "against": "the default",
                "estimate": ratio,
                "low": ratio * 0.98,
                "high": ratio * 1.02,
            },
            "baselines": [],
            "tied": [],
            "remark": "",
            "confidence": 0.95,
            "rounds": 12,
        },
    )


if __name__ == "__main__":
    run_as_command(main)
