"""The Triton product held against ``triton.autotune`` over the same list, cuBLAS and ``torch.compile``.

For each shape, in this order:

1. ``triton.autotune`` goes over a list of configurations such as people write down, with an empty cache.
2. autotune searches the same list, for a third of that time.
3. autotune searches the whole space; for the first shape once more, from another seed.
4. All that was chosen, the default and the vendor's baselines are read in interleaved rounds on fresh
   inputs, each in a process of its own. Every ratio in the tables comes from these rounds alone.

Times of tuning leave out what it takes to load PyTorch, on both sides; the tables give that beside them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune.measure.significance import speedup
from autotune.provenance.device import device_facts
from autotune.session.executor_workers import WorkerExecutor
from autotune.session.finale import defend
from autotune.session.ledger import Ledger
from autotune.session.opening import open_study
from autotune.session.progress import Progress
from autotune.space.configuration import Configuration, Value, plain
from autotune.space.spec import Budget, StudySpec
from autotune.store.store import Store
from benchmarks.gpu_plan import Part
from benchmarks.gpu_search import DRY_SECONDS, Bench, Found, listed, search, space
from benchmarks.gpu_triton_autotune import PeerError, ask

SHAPES: Mapping[str, Mapping[str, Value]] = {
    "square": {"m": 4096, "n": 4096, "k": 4096},
    "skinny": {"m": 32, "n": 8192, "k": 8192},
    "ragged": {"m": 3000, "n": 1999, "k": 3001},
}

TINY: Mapping[str, Value] = {"m": 33, "n": 50, "k": 40, "interpret": True}

TILES = (
    (256, 128), (128, 256), (128, 128), (128, 64), (64, 128),
    (64, 64), (128, 32), (32, 128), (32, 64), (16, 128),
)  # fmt: skip
"""Of a list such as people write: rows and columns of a tile."""

ROW_SECONDS = 1.2
"""Where nothing better is known."""

PEER, LIST, WHOLE, AGAIN = 0.36, 0.14, 0.2, 0.12
"""Of a shape's time; what is left is for the rounds."""

RACE_TIMEOUT = 150.0
"""``torch.compile`` tunes while it is checked."""

TRITON, SAME_LIST, SECOND = "triton.autotune", "autotune, same list", "autotune, other seed"


@dataclass
class Known:
    """What earlier parts have learnt."""

    row_seconds: float = ROW_SECONDS
    """What ``triton.autotune`` takes about for one row of the list."""

    def learn(self, smoked: Mapping[str, Any]) -> None:
        """From the smoke check: compiling takes as long there, and timing a row 0.15 s by default."""
        phases = smoked.get("triton-gemm", {}).get("phases", {})
        if "prepare" in phases:
            self.row_seconds = min(max(0.3, phases["prepare"] + 0.2), 2.0)


def people_list(spec: StudySpec, most: int) -> list[Configuration]:
    """At most so many configurations of the list, the same ones for the same number."""
    rows = []
    for (block_m, block_n), block_k, warps, stages in itertools.product(TILES, (32, 64), (4, 8), (3, 4)):
        row = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group": 8, "split_k": 1}
        configuration = spec.space.configuration({**row, "warps": warps, "stages": stages})
        if configuration in spec.space:
            rows.append(configuration)
    chosen = np.random.default_rng(0).permutation(len(rows))[:most]
    return [rows[i] for i in sorted(chosen)]


def gemm_part(bench: Bench, name: str, weight: float, known: Known) -> Part:
    """All four steps for one shape."""

    def run(seconds: float) -> dict[str, Any]:
        spec = space(bench, "triton-gemm", TINY if bench.dry else SHAPES[name])
        return compare(bench, spec, seconds, again=name == "square", row_seconds=known.row_seconds)

    return Part(f"gemm {name}", weight, run, least=bench.least(40.0))


def compare(bench: Bench, spec: StudySpec, seconds: float, again: bool, row_seconds: float) -> dict[str, Any]:
    end = time.monotonic() + seconds
    rows = people_list(spec, 2 if bench.dry else max(8, int(PEER * seconds / row_seconds)))
    document: dict[str, Any] = {"workload": dict(spec.workload), "rows": len(rows)}
    guests: dict[str, Configuration] = {}
    try:
        peer = ask(spec.workload, rows, DRY_SECONDS if bench.dry else 2.0 * PEER * seconds)
        guests[TRITON] = Configuration(peer["row"])
    except PeerError as error:
        peer = {"problem": str(error)}
    document["triton"] = peer
    third = peer["seconds"] / 3 if "seconds" in peer else LIST * seconds
    same = search(bench, listed(spec, rows), tuning=third)
    document["list"] = {**same.to_document(), "tuning": same.spans.wall, "allowed": third}
    if same.result.best is not None:
        guests[SAME_LIST] = same.result.best
    if again:
        second = replace(spec, search=replace(spec.search, seed=bench.seed + 1))
        other = search(bench, second, AGAIN * seconds)
        document["again"] = other.to_document()
        if other.result.best is not None:
            guests[SECOND] = other.result.best
    whole = search(bench, spec, WHOLE * seconds)
    document["whole"] = whole.to_document()
    document["timeline"] = [
        [s.trial, s.stage, s.lane, round(s.began, 3), round(s.ended, 3)] for s in whole.spans.all
    ]
    document["race"] = race(bench, spec, whole, guests, max(end - time.monotonic(), 5.0))
    return document


def race(
    bench: Bench, spec: StudySpec, whole: Found, guests: Mapping[str, Configuration], seconds: float
) -> dict[str, Any]:
    """The finale of the search of the whole space, with guests; its verdict is the study's."""
    measure = replace(spec.measure, timeout=RACE_TIMEOUT, finalists=1 if bench.dry else 2)
    # A fifth of a budget of time is what the rounds may take: half of what is left, as processes start first.
    spec = replace(spec, measure=measure, budget=Budget(time=2.5 * seconds))
    with Store.open(bench.store) as store:
        study = open_study(spec, store, bench.environment)
        assert study.record.id == whole.result.study.id, "the newest study of this shape is the whole space's"
        ledger = Ledger(spec, store, study, bench.environment)
        executor = WorkerExecutor(spec, device_facts())
        try:
            defend(spec, executor, ledger, Progress(), "race", guests)
        finally:
            executor.close()
            ledger.close("race")
        return standings(store, ledger, guests)


def standings(store: Store, ledger: Ledger, guests: Mapping[str, Configuration]) -> dict[str, Any]:
    """Each entrant with its readings by round; guests that were entrants already are named with them."""
    entrants: dict[str, Any] = {}
    for trial in store.trials(ledger.study.record.id):
        if trial.session_id != ledger.session_id or trial.purpose == "search":
            continue
        by_round = {
            str(int(r.context["round"])): r.value
            for r in store.readings(trial.id)
            if r.metric == "time" and not r.discarded and "round" in r.context
        }
        estimate = trial.metrics.get("time")
        entrants[str(trial.reason["label"])] = {
            "configuration": plain(trial.configuration),
            "also": [
                label
                for label, guest in guests.items()
                if guest.hash == trial.hash and label != trial.reason["label"]
            ],
            "status": str(trial.status),
            "message": trial.message,
            "time": {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            if estimate
            else None,
            "rounds": by_round,
        }
    verdict = store.verdicts(ledger.study.record.id)[-1].document
    return {"entrants": entrants, "winner": verdict.get("label"), "remark": verdict.get("remark", "")}


def named(entrants: Mapping[str, Any], label: str) -> str | None:
    """The entrant that ``label`` is, or was the same configuration as; ``None``: it was not read."""
    if label in entrants:
        return label
    return next((own for own, entrant in entrants.items() if label in entrant["also"]), None)


def ratio(entrants: Mapping[str, Any], of: str | None, over: str | None) -> tuple[float, float, float] | None:
    """How many times faster ``of`` is than ``over``, with its interval, from the rounds that have both."""
    if of is None or over is None:
        return None
    if of == over:
        return 1.0, 1.0, 1.0
    one, other = entrants[of]["rounds"], entrants[over]["rounds"]
    common: Sequence[str] = sorted(one.keys() & other.keys(), key=int)
    if len(common) < 2:
        return None
    found = speedup([other[r] for r in common], [one[r] for r in common])
    return found.estimate, found.low, found.high
