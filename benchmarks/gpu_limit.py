"""What a GPU does at its limit of power, and how well a time is known there.

    python -m benchmarks.gpu_limit --out /tmp/limit.md
    python -m benchmarks.gpu_limit --record results/h200/limit/trace.json.gz --minutes 1.5

A trace has the times of kernels that draw more than the device may, launch by launch, behind no pause and
behind several, and the counter of energy. The table tells how far the times of windows of a fifth of a second
differ, as they were read and with what was drawn made up for, by the code that measures
(:mod:`autotune.measure.gpu.power_limit`), and how a time swings behind a pause. ``off`` is held against what
the kernel takes in a long run.

``--record`` needs a GPU, and ends with 2 where there is none.
"""

from __future__ import annotations

import bisect
import gzip
import itertools
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.gpu import power_limit
from autotune.measure.gpu.energy import Look
from autotune.measure.gpu.monitor import LIMIT_SECONDS, Watcher
from autotune.measure.gpu.prospects import prospects
from autotune.measure.gpu.timing import Timer
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.space.configuration import Value
from benchmarks.gpu_plan import told
from benchmarks.gpu_products import is_missing, products
from benchmarks.gpu_search import facts, gpu_name
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish

TRACE = Path(__file__).parents[1] / "results" / "h100" / "limit" / "trace.json.gz"

LONG_RUN = "3 ms of rest, 3 s each"
"""Behind which pause a kernel's time in the long run is taken from."""

SWING_SECONDS = (0.01, 0.03, 0.07, 0.11, 0.15, 0.19, 0.23)
"""When, behind its beginning, a kernel's time is looked at to see the clock swing."""

EXPONENTS = (0.0, 0.35, 0.4, 0.45, 0.5, 0.55)

_WIDE: Mapping[str, Value] = {"block_m": 128, "block_n": 256, "split_k": 1, "warps": 8}
PRODUCTS: Mapping[str, Mapping[str, Value] | None] = {
    "128 x 256 x 64, group 8, 3 stages": {**_WIDE, "block_k": 64, "group": 8, "stages": 3},
    "128 x 256 x 64, group 16, 3 stages": {**_WIDE, "block_k": 64, "group": 16, "stages": 3},
    "128 x 256 x 32, group 4, 5 stages": {**_WIDE, "block_k": 32, "group": 4, "stages": 5},
    "torch.matmul": None,
}

WINDOW_EVERY_SECONDS = 0.5

KEEPING_SECONDS = 0.5
"""In a rest of so many seconds there is time to write down what was recorded."""

PIECE_SECONDS = 2e-3
"""Between two marks of a trace."""


@dataclass(frozen=True)
class Run:
    """A kernel that ran on and on for some while."""

    before: str
    product: str
    at: Sequence[float]
    """When each piece had ended, on the clock of the counter. Seconds."""
    times: Sequence[float]
    """Of a call, by piece. Seconds."""
    counter: Sequence[tuple[float, float]]
    """When it stepped, and to how many joules."""

    def soon(self, behind: float) -> float:
        """What a call takes about so many seconds behind the beginning; NaN where it had ended."""
        until = self.at[0] - self.times[0] + behind
        near = [t for at, t in zip(self.at, self.times, strict=True) if abs(at - until) <= 0.01]
        return statistics.fmean(near) if near else math.nan

    def windows(self) -> Iterator[power_limit.Window]:
        """One window each half of a second, as a trial would take it."""
        began = self.at[0] - self.times[0]
        for start in np.arange(0.0, self.at[-1] - began - 0.2, WINDOW_EVERY_SECONDS):
            until = began + start + LIMIT_SECONDS
            looks: list[Look] = []
            times: list[float] = []
            for at, seconds in zip(self.at, self.times, strict=True):
                if at < until:
                    continue
                times.append(seconds)
                looks.append(Look(at, self._joules(at), len(times)))
                if power_limit.is_enough(looks, counts=True):
                    window = power_limit.window_of(looks, times)
                    if window.watts is not None:
                        yield window
                    break

    def _joules(self, at: float) -> float:
        step = bisect.bisect_right(self.counter, (at, math.inf)) - 1
        return self.counter[step][1] if step >= 0 else 0.0


def runs_of(trace: Mapping[str, Any]) -> list[Run]:
    """All runs of a trace."""
    found = []
    for recording in trace["recordings"]:
        counter = [(at, joules) for at, joules in recording["counter"]]
        for run in recording["runs"]:
            times = np.array(run["microseconds"]) * 1e-6
            at = run["began"] + np.cumsum(times * run["calls"])
            product = trace["products"][run["product"]]
            found.append(Run(run["before"], product, at.tolist(), times.tolist(), counter))
    return found


def tables(trace: Mapping[str, Any]) -> list[str]:
    """By what was before, and by exponent."""
    runs, limit = runs_of(trace), trace["limit_watts"]
    steady = {
        product: statistics.fmean(t for run in own if run.before == LONG_RUN for t in run.times)
        for product in trace["products"].values()
        if (own := [run for run in runs if run.product == product])
    }
    lines = head("before | windows | as read: off | differ by | made up for: off | differ by")
    windows: dict[str, list[tuple[str, power_limit.Window]]] = {}
    for run in runs:
        windows.setdefault(run.before, []).extend((run.product, window) for window in run.windows())
    for before, found in windows.items():
        if len(found) > 4:
            cells = [_off([w.seconds / steady[p] for p, w in found])]
            cells.append(_off([w.at_limit(limit) / steady[p] for p, w in found]))
            lines.append(f"| {before} | {len(found)} | {' | '.join(cells)} |")
    lines += ["", *head(" | ".join(["before", *(f"{at * 1e3:g} ms" for at in SWING_SECONDS)]))]
    for before in windows:
        own_runs = [run for run in runs if run.before == before]
        swing = [_mean_off([run.soon(at) / steady[run.product] for run in own_runs]) for at in SWING_SECONDS]
        lines.append(f"| {before} | {' | '.join(swing)} |")
    everything = [one for found in windows.values() for one in found]
    lines += ["", *head("exponent | times differ by")]
    for exponent in EXPONENTS:
        ratios = [w.seconds * (w.watts / limit) ** exponent / steady[p] for p, w in everything if w.watts]
        differ = f"{np.std(np.log(ratios), ddof=1):.2%}" if len(ratios) > 1 else "-"
        lines.append(f"| {exponent:g} | {differ} |")
    lines += ["", *head("kernel | in the long run | its own exponent")]
    for product, seconds in steady.items():
        own_windows = [w for p, w in everything if p == product and w.watts]
        drawn = [math.log(w.watts / limit) for w in own_windows if w.watts]
        known = len(set(drawn)) > 2
        slope = np.polyfit(drawn, [math.log(w.seconds) for w in own_windows], 1)[0] if known else math.nan
        lines.append(f"| {product} | {seconds * 1e6:.1f} µs | {f'{-slope:.2f}' if known else '-'} |")
    return lines


def _mean_off(ratios: Sequence[float]) -> str:
    known = [ratio for ratio in ratios if math.isfinite(ratio)]
    return f"{np.log(known).mean():+.1%}" if known else ""


def _off(ratios: Sequence[float]) -> str:
    logs = np.log(ratios)
    return f"{logs.mean():+.2%} | {logs.std(ddof=1):.2%}"


# -- on a GPU ----------------------------------------------------------------------------------


class RecordingError(Exception):
    """There is no trace to be made here; the text says why."""


def record(seconds: float, keep: Callable[[dict[str, Any]], None]) -> None:
    """A trace of about so many seconds, once the device no longer swings from its start.

    ``keep`` is given what there is of it in each long rest, so that a run that is cut off loses seconds, and
    at the end. A product that does not run here is left out, and that is said.
    Raises :class:`RecordingError`.
    """
    with products(facts(), final=False) as here:
        recorder = Recorder(here.objective, here.objective.monitor.watcher, keep)
        for product, knobs in PRODUCTS.items():
            if knobs is None:
                recorder.add(product, partial(_library, here.objective))
            elif made := here.prepare(product, knobs):
                recorder.add(product, partial(here.objective.load, made[1]))
        running = list(recorder.timers)
        if not running:
            raise RecordingError("none of the products runs here")
        for before in ("cold, 3 s each", LONG_RUN):
            for product in running:
                recorder.run(product, 3.0, before, rest=3e-3)
        until, rng = time.perf_counter() + seconds - 6.0 * len(running), random.Random(0)
        for rest in itertools.cycle((0.0, 1e-3, 5e-3, 30e-3, 0.6)):
            before = f"{rest * 1e3:g} ms of rest, half a second each"
            for product in rng.sample(running, len(running)):
                recorder.run(product, 0.5, before, rest)
                if time.perf_counter() > until:
                    keep(recorder.trace())
                    return


def _library(objective: DeviceObjective) -> Any:
    """The vendor's product, ready to be called."""
    return objective.load_baseline(next(one for one in objective.baselines() if one.name == "torch"))


class Recorder:
    """Runs kernels of an objective and keeps the times of pieces, and when the counter stepped.

    Raises :class:`RecordingError` where the device tells neither what it may draw nor what it has drawn:
    without these a trace is of no use, and it takes minutes to make.
    """

    def __init__(
        self,
        objective: DeviceObjective,
        watcher: Watcher | None,
        keep: Callable[[dict[str, Any]], None],
    ) -> None:
        self._keep = keep
        limit = watcher.limit_watts() if watcher is not None else None
        if watcher is None or limit is None or watcher.joules() is None:
            missing = "nvidia-ml-py, or the driver's management library, is not here"
            refused = "its driver does not tell the limit of power, or counts no energy"
            raise RecordingError(f"{gpu_name()}: {missing if watcher is None else refused}")
        self.timers: dict[str, tuple[Timer, float]] = {}
        """By product, with the rough seconds of a call."""
        self._objective, self._events = objective, objective.apparatus.events
        self._watcher, self._limit = watcher, limit
        self._runs: list[dict[str, Any]] = []
        self._counter: list[tuple[float, float]] = []

    def add(self, product: str, load: Callable[[], Any]) -> None:
        """Read what ``load`` gives once, so that it can be :meth:`run`."""
        try:
            self._objective.measure(load(), np.random.default_rng(1))
        except Exception as error:  # noqa: BLE001 - the other products go on without it
            print(f"{product} is left out: {told(error)}", file=sys.stderr)
            return
        assert self._objective._round is not None
        self.timers[product] = self._objective._round.timer, self._objective._round.seconds

    def run(self, product: str, seconds: float, before: str, rest: float) -> None:
        """So many seconds of one product, behind a rest of the device."""
        timer, each = self.timers[product]
        events = self._events
        batches = max(1, round(PIECE_SECONDS / (each * timer.plan.calls)))
        events.synchronise()
        resting = time.perf_counter()
        if rest >= KEEPING_SECONDS:
            self._keep(self.trace())
        time.sleep(max(resting + rest - time.perf_counter(), 0.0))
        began = time.perf_counter()
        marks = [events.record()]
        while time.perf_counter() - began < seconds:
            for _ in range(batches):
                timer.batch()
            marks.append(events.record())
            if len(marks) > 4:
                events.wait(marks[-4])  # the device has some milliseconds of work ahead
            self._look()
        events.wait(marks[-1])
        calls = batches * timer.plan.calls
        times = [1e6 * events.elapsed(a, b) / calls for a, b in itertools.pairwise(marks)]
        self._runs.append(
            {
                "before": before,
                "product": product,
                "began": round(began, 5),
                "calls": calls,
                "microseconds": [round(t, 1) for t in times],
            }
        )

    def _look(self) -> None:
        joules = self._watcher.joules()
        if joules is not None and (not self._counter or joules != self._counter[-1][1]):
            self._counter.append((time.perf_counter(), joules))

    def trace(self) -> dict[str, Any]:
        """All runs so far, with letters for their products."""
        names = dict(zip("ABCDEFGH", self.timers, strict=False))
        letters = {product: letter for letter, product in names.items()}
        runs = [{**run, "product": letters[run["product"]]} for run in self._runs]
        counter = [(round(at, 5), round(joules, 3)) for at, joules in self._counter]
        return {
            "device": gpu_name(),
            "limit_watts": self._limit,
            "recorded": time.strftime("%Y-%m-%d"),
            "products": names,
            "recordings": [{"runs": runs, "counter": counter}],
        }


def _write(file: Path, trace: Mapping[str, Any]) -> None:
    """In one step, so that no cut leaves half a file."""
    text = json.dumps(trace, separators=(",", ":"))
    beside = file.with_name(f"{file.name}.part")
    beside.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    beside.replace(file)


def main() -> int:
    parser = Options(__file__, __doc__)
    parser.aside("--trace", type=Path, default=TRACE)
    parser.aside("--record", type=Path, help="make a trace on this GPU, and tell of that")
    parser.aside("--minutes", type=float, default=1.5)
    options = parser.read()
    if options.record:
        if is_missing(prospects()):
            return 2
        options.record.parent.mkdir(parents=True, exist_ok=True)
        try:
            record(60.0 * options.minutes, partial(_write, options.record))
        except RecordingError as error:
            print(f"nothing is recorded: {error}", file=sys.stderr)
            return 1
    trace = json.loads(gzip.decompress((options.record or options.trace).read_bytes()))
    if trace["limit_watts"] is None:
        print(f"{trace['device']} does not tell its limit of power", file=sys.stderr)
        return 1
    on = f"{trace['device']}, recorded {trace['recorded']}."
    publish(page("A GPU at its limit of power", options.command, on, tables(trace)), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
