"""The Triton product held against ``triton.autotune`` over the same list, cuBLAS and ``torch.compile``.

For each shape, in this order:

1. ``triton.autotune`` goes over a list of configurations such as people write down, with an empty cache.
2. autotune searches the same list, for a third of that time.
3. autotune searches the whole space; for the first shape once more, from another seed.
4. All that was chosen, the default and the vendor's baselines are read in interleaved rounds on fresh
   inputs, each in a process of its own. Every ratio in the tables comes from these rounds alone. Either
   search of the whole space enters with its finalists: the lowest of many readings is mostly luck.
5. The best of either are read on alone (:mod:`benchmarks.gpu_duel`).

Times of tuning leave out what it takes to load PyTorch, on both sides; the tables give that beside them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune.measure.rules.significance import speedup
from autotune.measure.rules.statistics import estimate
from autotune.session.execution.workers import WorkerExecutor
from autotune.session.finale.finale import best_trials, defend
from autotune.session.ledger import Ledger
from autotune.session.opening.opening import open_study
from autotune.session.progress import Progress
from autotune.space.configuration import Configuration, Value, plain
from autotune.space.spec import Budget, StudySpec
from autotune.store.store import Store
from benchmarks import gpu_duel
from benchmarks.gpu_duel import SECOND, duel, rivals
from benchmarks.gpu_plan import Findings, Part, told
from benchmarks.gpu_search import DRY_SECONDS, Bench, Found, facts, listed, search, space
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

PEER, LIST, WHOLE = 0.16, 0.08, 0.20
"""Of a shape's time; a second search of the whole space takes as long as the first. What is left, more than
a third, is for the rounds: a dozen processes that load PyTorch, one of which is ``torch.compile``'s and tunes
as well, and eight rounds at least, in each of which each warms up."""

RAGGED = 2.7
"""Of a shape that is no multiple of 16 a row takes so many times as long: the compiler masks and spills more
(Triton 3.6 for sm_90, 30 rows: 2.2 s each instead of 0.7, the slowest 16)."""

PATIENCE = 2.5
"""How many times its share ``triton.autotune`` may take: what is ended before its end shows nothing."""

RACE_TIMEOUT = (40.0, 150.0)
"""``torch.compile`` tunes while it is checked: what that may take at least and at most. In between it is what
is left for the race, and a bit."""

CONFIDENCE = 0.95

TRITON, SAME_LIST = "triton.autotune", "autotune, same list"


@dataclass
class Known:
    """What earlier parts have learnt."""

    row_seconds: float = ROW_SECONDS
    """What ``triton.autotune`` takes about for one row of the list, of a shape that is not ragged."""

    def learn(self, smoked: Mapping[str, Any]) -> None:
        """From the smoke check: compiling takes as long there, and timing a row 0.15 s by default.

        The first kernel of a process takes longer than those behind it, and a longer list shows more.
        """
        phases = smoked.get("triton-gemm", {}).get("phases", {})
        if "prepare" in phases:
            self.row_seconds = min(max(0.3, phases["prepare"] + 0.2), ROW_SECONDS)

    def learn_list(self, shape: Mapping[str, Value], seconds: float, rows: int) -> None:
        """From a list that ``triton.autotune`` went over."""
        self.row_seconds = min(max(0.3, seconds / rows / _harder(shape)), 2 * ROW_SECONDS)

    def row(self, shape: Mapping[str, Value]) -> float:
        """Seconds of a row for this shape."""
        return self.row_seconds * _harder(shape)


def _harder(shape: Mapping[str, Value]) -> float:
    return RAGGED if any(int(str(shape[size])) % 16 for size in "mnk") else 1.0


def people_list(spec: StudySpec, most: int) -> list[Configuration]:
    """At most so many configurations of the list, the same ones for the same number.

    Some break the space's rules: that they are slow is known before anything is compiled. People write those
    down all the same.
    """
    rows = []
    for (block_m, block_n), block_k, warps, stages in itertools.product(TILES, (32, 64), (4, 8), (3, 4)):
        row = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group": 8, "split_k": 1}
        rows.append(spec.space.configuration({**row, "warps": warps, "stages": stages}))
    chosen = np.random.default_rng(0).permutation(len(rows))[:most]
    return [rows[i] for i in sorted(chosen)]


def gemm_part(bench: Bench, name: str, weight: float, known: Known) -> Part:
    """All four steps for one shape."""

    def run(seconds: float, found: Findings) -> None:
        spec = space(bench, "triton-gemm", TINY if bench.dry else SHAPES[name])
        shape = spec.workload
        try:
            compare(bench, spec, seconds, again=name == "square", row_seconds=known.row(shape), found=found)
        finally:
            if "seconds" in found.get("triton", {}) and not bench.dry:
                known.learn_list(shape, found["triton"]["seconds"], found["rows"])

    return Part(f"gemm {name}", weight, run, least=bench.least(60.0))


def compare(
    bench: Bench, spec: StudySpec, seconds: float, again: bool, row_seconds: float, found: Findings
) -> None:
    """Each step is written down when it is done. One that fails costs what is compared with it, no more."""
    end = time.monotonic() + seconds
    rows = people_list(spec, 2 if bench.dry else max(8, int(PEER * seconds / row_seconds)))
    found |= {"workload": dict(spec.workload), "rows": len(rows)}
    guests: dict[str, Configuration] = {}
    try:
        peer = ask(spec.workload, rows, DRY_SECONDS if bench.dry else PATIENCE * PEER * seconds)
        guests[TRITON] = Configuration(peer["row"])
    except PeerError as error:
        peer = {"problem": str(error)}
    found.keep(triton=peer)
    third = peer["seconds"] / 3 if "seconds" in peer else LIST * seconds
    try:
        same = search(bench, listed(spec, rows), tuning=third)
        found.keep(list={**same.to_document(), "tuning": same.spans.wall, "allowed": third})
        if same.result.best is not None:
            guests[SAME_LIST] = same.result.best
    except Exception as error:  # noqa: BLE001 - the whole space is searched all the same
        found.keep(list={"problem": told(error)})
    if again:
        try:
            second = replace(spec, search=replace(spec.search, seed=bench.seed + 1))
            other = search(bench, second, WHOLE * seconds)
            found.keep(again=other.to_document())
            labels = (f"{SECOND}, {place}" for place in itertools.count(1))
            guests |= dict(zip(labels, finalists(bench, second, other), strict=False))
        except Exception as error:  # noqa: BLE001 - as above
            found.keep(again={"problem": told(error)})
    whole = search(bench, spec, WHOLE * seconds)
    timeline = [[s.trial, s.stage, s.lane, round(s.began, 3), round(s.ended, 3)] for s in whole.spans.all]
    found.keep(whole=whole.to_document(), timeline=timeline)
    race(bench, spec, whole, guests, max(end - time.monotonic(), 5.0), found)


def finalists(bench: Bench, spec: StudySpec, searched: Found) -> list[Configuration]:
    """Those with which a search that was just made would enter its own finale."""
    with Store.open(bench.store) as store:
        study = open_study(spec, store, bench.environment)
        assert study.record.id == searched.result.study.id, "the newest study with this seed is that search's"
        ledger = Ledger(spec, store, study, bench.environment)
        try:
            return [trial.configuration for trial in best_trials(ledger)[: spec.measure.finalists]]
        finally:
            ledger.close("its finalists were asked for")


def race(
    bench: Bench,
    spec: StudySpec,
    whole: Found,
    guests: Mapping[str, Configuration],
    seconds: float,
    found: Findings,
) -> None:
    """The finale of the search of the whole space, with guests; its verdict is the study's.

    What was read is among the findings where it was ended early, too. Where two searches are among them, the
    best of either have a duel behind it. The winner and the default are not read in fresh processes besides:
    no claim is about these two, and each process loads PyTorch, which would take the time of other parts.
    """
    twice = any(label.startswith(SECOND) for label in guests)
    if twice and not bench.dry:
        seconds = max(seconds - gpu_duel.STARTING_SECONDS - gpu_duel.SECONDS, 5.0)
    least, most = RACE_TIMEOUT
    timeout = max(spec.measure.timeout, most) if bench.dry else min(most, max(least, seconds + 20.0))
    measure = replace(spec.measure, timeout=timeout, finalists=1 if bench.dry else spec.measure.finalists)
    # A fifth of a budget of time is what the rounds may take: half of what is left, as processes start first.
    spec = replace(spec, measure=measure, budget=Budget(time=2.5 * seconds))
    with Store.open(bench.store) as store:
        study = open_study(spec, store, bench.environment)
        assert study.record.id == whole.result.study.id, "the newest study of this shape is the whole space's"
        ledger = Ledger(spec, store, study, bench.environment)
        executor = WorkerExecutor(spec, facts(), prepare_workers=1)  # entrants prepare by themselves
        try:
            try:
                defend(executor, ledger, Progress(), "race", guests, confirms=False)
            finally:
                found["race"] = standings(store, ledger, guests)
            pair = rivals(entrants_of(found))
            if twice and pair is not None and pair[0] != pair[1]:
                found["duel"] = duel(spec, executor, ledger, pair, entrants_of(found), bench.dry)
        finally:
            executor.close()
            ledger.close("race")


def standings(store: Store, ledger: Ledger, guests: Mapping[str, Configuration]) -> dict[str, Any]:
    """Each entrant with its readings by round; guests that were entrants already are named with them."""
    entrants: dict[str, Any] = {}
    for trial in store.trials(ledger.study.record.id):
        if trial.session_id != ledger.session_id or trial.purpose == "search":
            continue
        by_round: dict[str, float] = {
            str(int(r.context["round"])): r.value
            for r in store.readings(trial.id)
            if r.metric == "time" and not r.discarded and "round" in r.context
        }
        # Of one that was cut short there is no more than its rounds.
        values = list(by_round.values())
        known = trial.metrics.get("time") or (estimate(values, CONFIDENCE) if len(values) > 1 else None)
        entrants[str(trial.reason["label"])] = {
            "configuration": plain(trial.configuration),
            "also": [
                label
                for label, guest in guests.items()
                if guest.hash == trial.hash and label != trial.reason["label"]
            ],
            "status": str(trial.status),
            "message": trial.message,
            "time": {"value": known.value, "low": known.low, "high": known.high} if known else None,
            "rounds": by_round,
        }
    verdicts = store.verdicts(ledger.study.record.id)
    if verdicts:
        verdict = verdicts[-1].document
        return {"entrants": entrants, "winner": verdict.get("label"), "remark": verdict.get("remark", "")}
    own = [label for label, one in entrants.items() if one["configuration"] and one["time"]]
    best = min(own, key=lambda label: entrants[label]["time"]["value"], default=None)
    remark = "the rounds were ended early, and the winner is whoever stood best"
    return {"entrants": entrants, "winner": best, "remark": remark}


def entrants_of(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of a comparison's race; none where it did not come to that."""
    entrants: Mapping[str, Any] = found.get("race", {}).get("entrants", {})
    return entrants


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
