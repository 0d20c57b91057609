"""A search of a ready space on the GPU, and what the tables say of it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from threading import Event
from typing import Any

from autotune.measure.facts import TIMELINE
from autotune.measure.outcome import Outcome
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.provenance.host.gpus import read_gpus
from autotune.session.budget import Spent
from autotune.session.execution.workers import WorkerExecutor
from autotune.session.progress import Best, Progress
from autotune.session.result import Result
from autotune.session.session import POLL_SECONDS, Session
from autotune.space.configuration import Configuration, FrozenMap, Value, plain
from autotune.space.reading.reader import read_spec
from autotune.space.spec import Budget, StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from benchmarks.timeline import Spans, busy, spans_of

SPACES = Path(__file__).parents[1] / "searchspaces"

DRY_PROFILE = "h200"
"""Whose limits the rules of a space see in a dry run."""

PACKAGES = ("torch", "triton")

_ENDED_BY_THE_WATCH = 600.0
"""Seconds that a search could take where it is ended otherwise."""

MOST_SECONDS = 10.0
"""Of a trial: a kernel that hangs costs that, and a worker that has to load PyTorch anew."""

MOST_MESSAGES = 4
"""Of failures, for each search."""

DRY_TRIALS = 2
DRY_SECONDS = 600.0
"""A dry run counts its trials and not its time, which an interpreter takes a lot of."""


@dataclass(frozen=True)
class Bench:
    """Where and with what everything is run."""

    environment: Environment
    store: str
    """The URL of the store."""
    dry: bool = False
    """On the CPU, at tiny sizes: Triton's interpreter, and CUDA C emulated."""
    seed: int = 0
    trials: int | None = None
    """The most that a search tries; ``None``: what its time allows."""

    def least(self, seconds: float) -> float:
        """Without so many seconds a part is not begun; in a dry run it is, whatever is left."""
        return -math.inf if self.dry else seconds


@cache
def facts(which: str | None = None) -> FrozenMap:
    """Of this machine, or of a profile: asking the driver takes a process, and up to a second, each time."""
    return device_facts(which)


def gpu_name() -> str:
    """What CUDA calls the first GPU here. ``facts()["name"]`` is the CPU's on a machine that has both."""
    return str(facts().get("gpu_name", "no GPU"))


def device_line() -> str:
    """The GPU, its driver and the packages that drive it: what the table of a benchmark holds for."""
    gpus, _ = read_gpus()
    driver = f"driver {gpus.driver}" if gpus.driver else "driver not known"
    installed = {one.name: one.version for one in distributions() if one.name in PACKAGES}
    versions = ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed)
    return f"{gpu_name()}, {driver}. {versions or 'No PyTorch'}."


class _Watch(Progress):
    """Notes when the search is over and the finalists begin.

    With ``tuning`` it ends the search so many seconds after its first trial began to be prepared, whatever is
    in flight: how long the processes take to start is known then only. Once ``over`` is set it ends it too.
    """

    def __init__(self, tuning: float, over: Event) -> None:
        self._over = over
        self.defending_at: float | None = None
        self.session: Session | None = None
        self._tuning = tuning
        self._end = math.inf

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        timeline = outcome.facts.get(TIMELINE)
        if isinstance(timeline, Mapping) and timeline:
            took = max(ended for _, ended, _ in timeline.values()) - min(b for b, _, _ in timeline.values())
            self._end = min(self._end, time.monotonic() - took + self._tuning)

    def tick(self, spent: Spent, running: int) -> None:
        up = time.monotonic() > self._end - POLL_SECONDS or self._over.is_set()
        if self.session is not None and up:
            self.session.stop("its time was up")

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        self.defending_at = time.monotonic()


@dataclass(frozen=True)
class Found:
    """What one search came to. Seconds."""

    result: Result
    wall: float
    """From before its first process to its end, the re-measurement left out."""
    finale: float
    """The re-measurement."""
    best_at: float | None
    """When the measurement of the best trial had ended, from the beginning of ``wall``."""
    spans: Spans = field(default_factory=lambda: Spans(()))

    def to_document(self) -> dict[str, Any]:
        result = self.result
        best = best_time(result)
        return {
            "study": result.study.label,
            "trials": len(result.trials),
            "statuses": dict(result.statuses),
            "same_code": sum("same_code_as" in trial.facts for trial in result.trials),
            "throttled": throttled(result.trials),
            "wall": self.wall,
            "finale": self.finale,
            "best_at": self.best_at,
            "busy": busy(self.spans),
            "configuration": None if result.best is None else plain(result.best),
            "trial": result.trial,
            "time": best,
            "speedup": result.speedup.to_document() if result.speedup else None,
            "baselines": [c.to_document() for c in result.baselines],
            "roofline": roofline_of(result),
            "failures": failures(result.trials),
            "remark": result.remark,
        }


def space(bench: Bench, name: str, workload: Mapping[str, Value]) -> StudySpec:
    """A ready space with this workload, as it says but for a trial that hangs: that is ended sooner.

    In a dry run it has the limits of a GPU that is not here.
    """
    device = facts(DRY_PROFILE) if bench.dry else facts()
    file = SPACES / f"{name}.yaml"
    own = read_spec(file, device=device).workload
    spec = read_spec(file, device=device, workload={k: v for k, v in workload.items() if k in own})
    spec = replace(spec, workload=FrozenMap({**spec.workload, **workload}))  # with what no rule speaks of
    measure = replace(spec.measure, timeout=min(spec.measure.timeout, MOST_SECONDS))
    if bench.dry:
        measure = replace(spec.measure, gpus=0, min_readings=2, max_readings=3, precision=0.5)
    # Each search is on its own: what an earlier one has learnt would be in its time and not in theirs.
    return replace(spec, measure=measure, search=replace(spec.search, seed=bench.seed, transfer=False))


def search(
    bench: Bench,
    spec: StudySpec,
    seconds: float = 0.0,
    *,
    defend: float = 0.0,
    tuning: float | None = None,
    trials: int | None = None,
    over: Event | None = None,
) -> Found:
    """Search from nothing for about ``seconds`` in all, of which ``defend`` are for the finalists; 0: none.

    With ``tuning`` at most so many seconds are searched, whatever the processes take to start. Another thread
    ends it by setting ``over``.
    """
    began, began_at = time.monotonic(), time.time()
    measure = spec.measure if defend else replace(spec.measure, finalists=0)
    spec = replace(spec, measure=measure)
    with Store.open(bench.store) as store:
        # For one trial alone the others would load PyTorch for nothing, beside it.
        executor = WorkerExecutor(spec, facts(), prepare_workers=1 if trials == 1 else None)
        starting = time.monotonic() - began
        left = seconds - defend - starting if tuning is None else _ENDED_BY_THE_WATCH
        left = DRY_SECONDS if bench.dry else max(left, 1.0)
        spec = replace(
            spec,
            budget=Budget(
                trials=trials or bench.trials or (DRY_TRIALS if bench.dry else None), time=left, patience=None
            ),
        )
        watch = _Watch(math.inf if tuning is None or bench.dry else tuning, over or Event())
        watch.session = Session(spec, store, executor, bench.environment, fresh=True, progress=watch)
        result = watch.session.run()
        ended = time.monotonic()
    searched = watch.defending_at or ended
    trial = next((t for t in result.trials if t.number == result.trial), None)
    best_at = trial.finished_at - began_at if trial is not None and trial.finished_at else None
    spans = spans_of(result.trials)
    return Found(result, searched - began, ended - searched, best_at, spans)


def best_time(result: Result) -> dict[str, float] | None:
    """The best configuration's time: ``{"value", "low", "high"}``."""
    estimate = result.metrics.get("time")
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def roofline_of(result: Result) -> dict[str, Any] | None:
    """Floor, what sets it, and the share of it that the best configuration reached."""
    shares = [trial.facts["roofline"] for trial in result.trials if "roofline" in trial.facts]
    estimate = result.metrics.get("time")
    if not shares or estimate is None:
        return None
    floor = float(shares[0]["floor"])
    return {"floor": floor, "bound": shares[0]["bound"], "share": floor / estimate.value}


def throttled(trials: Sequence[TrialRecord]) -> int:
    """Trials in which a reading was discarded since the device was throttled."""
    return sum("throttled" in trial.facts for trial in trials)


def failures(trials: Sequence[TrialRecord]) -> list[str]:
    """The commonest messages of trials that failed otherwise than by being infeasible."""
    bad = [t for t in trials if t.status.failed and t.status is not Status.INFEASIBLE]
    counts = Counter(f"{t.status}: {t.message.splitlines()[0] if t.message else ''}"[:200] for t in bad)
    return [f"{count} x {text}" for text, count in counts.most_common(MOST_MESSAGES)]


def configured(spec: StudySpec, knobs: Mapping[str, Value]) -> Configuration:
    """The default with other ``knobs``. :class:`InputError` where this device's space lacks one of them."""
    return spec.space.configuration({**spec.space.default(), **knobs})


def listed(spec: StudySpec, rows: Sequence[Configuration]) -> StudySpec:
    """The same study with these configurations only."""
    return replace(spec, space=spec.space.limited_to(rows))


def seconds_text(seconds: float | None) -> str:
    """``12.3 µs``."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
