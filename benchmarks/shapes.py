"""What one search over several workloads saves, beside a search for each by itself.

    python -m benchmarks.shapes --seeds 4 --budgets 60,120 --most 360 --common 1
    python -m benchmarks.shapes --seeds 4 --budgets 60,120 --most 360 --common 10
    python -m benchmarks.shapes --real gemm-c-shapes --tries 90

A space is planted: a matrix product of blocks on 16 processors, whose best blocks depend on the shape in
the way that is known of real ones (blocks that do not divide a side waste work, too few leave processors
idle, large ones leave the cache), and whose inner loop wants the same of all shapes. Its optimum for each
shape is known by listing, so that a regret is a regret. Readings have 2 % of noise.

``family``    all shapes of one file, ``search_many``.
``evenly``    the same shapes in the same order, as many tries for each, learning from those before it.
``separate``  each shape with as many tries, learning from nothing.

What counts is the best configuration of each shape's own tries, without noise, over the optimum: the
geometric mean over the shapes. ``crossed`` lets a shape have what another one found, as the cross measurement
does at the end: for each shape as many configurations more as there are other shapes. Trials are run in one
process; sessions, store and strategies are the real ones.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import autotune
from autotune.cli.options import find_space
from autotune.measure.objective import Objective
from autotune.session.api import capture_environment
from autotune.session.execution.choosing import make_executor
from autotune.session.families.budget import order_of
from autotune.session.families.cross import Candidate, measure_across
from autotune.session.ledger import Ledger
from autotune.session.opening.loading import load_family
from autotune.session.opening.opening import open_study
from autotune.session.opening.overrides import Overrides
from autotune.session.progress import Progress
from autotune.session.result import Result
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_family
from autotune.space.spec import Budget, Family, StudySpec
from autotune.store.store import Store
from benchmarks.publishing import head, machine, software
from benchmarks.running import at_least_one, counts, run_as_command

SPACE = """
autotune: 1
name: blocks
objective: blocks.py:Blocks
workloads:
  - {m: 1024, n: 1024, k: 1024}
  - {m: 4096, n: 64, k: 512}
  - {m: 64, n: 4096, k: 256}
  - {m: 128, n: 128, k: 8192}
  - {m: 300, n: 700, k: 500}
  - {m: 2048, n: 2048, k: 64}
knobs:
  block_m: {values: [8, 16, 32, 48, 64, 96, 128, 256], default: 32}
  block_n: {values: [8, 16, 32, 48, 64, 96, 128, 256], default: 32}
  block_k: {values: [8, 16, 32, 64, 128, 256], default: 32}
  split: {range: [1, 16], scale: log2}
  unroll: {range: [1, 8], scale: log2}
  vector: {values: [1, 2, 4, 8]}
  pack: {flag: false}
  order: {choices: [row, column], default: row}
constraints: ["block_m * block_n <= 16384"]
search: {strategy: auto}
measure: {min_readings: 5, max_readings: 5, finalists: 0}
"""
NOISE = 0.02
PROCESSORS = 16
CACHE = 96 * 1024
COMMON = [1.0]
"""How much the knobs of the inner loop count, whose best values are the same for all shapes."""


def seconds(c: Mapping[str, Any], shape: Mapping[str, Any]) -> float:
    """What the planted machine takes."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    bm, bn, bk, split = c["block_m"], c["block_n"], c["block_k"], c["split"]
    steps = math.ceil(k / split / bk) * bk * split
    work = 2.0 * math.ceil(m / bm) * bm * math.ceil(n / bn) * bn * steps / 2e10
    blocks = math.ceil(m / bm) * math.ceil(n / bn) * split
    idle = math.ceil(blocks / PROCESSORS) * PROCESSORS / blocks
    spill = max(0.0, math.log2(4 * (bm * bk + bk * bn + bm * bn) / CACHE))
    traffic = 12.0 * (1 / bm + 1 / bn) + 4.0 / bk
    width = c["unroll"] * c["vector"]
    loop = COMMON[0] * (0.5 / width + 0.04 * max(0, width - 16))
    loop += 0.15 if (c["order"] == "row") != (n >= m) else 0.0
    unpacked = 0.2 if not c["pack"] and m * k > 2**17 else 0.0
    pass_over = (1e-9 * m * n * split if split > 1 else 0.0) + (2e-10 * (m * k + k * n) if c["pack"] else 0.0)
    each = work / PROCESSORS * idle * (1 + 0.4 * spill + traffic + loop + unpacked)
    return float(each + pass_over + 1e-7 * math.ceil(blocks / PROCESSORS))


class Blocks(Objective):
    """Takes no time; says what the planted machine would take."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        return {"time": seconds(loaded, self.context.workload) * math.exp(NOISE * rng.standard_normal())}


@dataclass(frozen=True)
class Line:
    way: str
    trials: int
    seed: int
    regret: float
    """Geometric mean over the shapes of the time over the optimum."""
    worst: float


def read(folder: Path, seed: int, trials: int | None, *, transfer: bool = True) -> Family:
    (folder / "blocks.py").write_text("class Blocks: pass\n")
    family = parse_family(SPACE, folder / "space.yaml")
    return replace(
        family,
        specs=tuple(
            replace(
                spec,
                search=replace(spec.search, seed=seed, transfer=transfer),
                budget=Budget(trials=trials),
            )
            for spec in family.specs
        ),
    )


def family(folder: Path, seed: int, trials: int) -> list[Result]:
    found = autotune.search_many(read(folder, seed, trials), store=folder / "s.db", objective=Blocks)
    return list(found.results)


def one_by_one(folder: Path, seed: int, trials: int, *, transfer: bool) -> list[Result]:
    specs = read(folder, seed, None, transfer=transfer).specs
    found = {}
    for place in order_of([spec.workload for spec in specs]):
        spec = replace(specs[place], budget=Budget(trials=trials // len(specs)))
        found[place] = autotune.search(spec, store=folder / "s.db", objective=Blocks)
    return [found[place] for place in sorted(found)]


def optima() -> list[float]:
    specs = parse_family(SPACE).specs
    listed = list(specs[0].space.feasible)
    return [min(seconds(c, spec.workload) for c in listed) for spec in specs]


def regrets(
    results: Sequence[Result], best: Sequence[float], first: int | None = None
) -> tuple[float, float]:
    """Geometric mean and worst over the shapes; ``first``: after so many tries of each."""
    ratios = []
    for result, optimum in zip(results, best, strict=True):
        trials = sorted(
            (t for t in result.trials if "time" in t.metrics and str(t.status) == "ok"), key=_number
        )
        kept = [t for t in trials if first is None or t.number < first]
        chosen = min(kept, key=lambda t: t.metrics["time"].value)
        ratios.append(seconds(chosen.configuration, result.study.workload) / optimum)
    return math.exp(float(np.mean(np.log(ratios)))), max(ratios)


def crossed(results: Sequence[Result], best: Sequence[float]) -> tuple[float, float]:
    """As :func:`regrets`, each shape with the best of all shapes' winners."""
    found = []
    for result in results:
        trials = [t for t in result.trials if str(t.status) == "ok"]
        found.append(min(trials, key=lambda t: t.metrics["time"].value).configuration)
    ratios = [
        min(seconds(one, result.study.workload) for one in found) / optimum
        for result, optimum in zip(results, best, strict=True)
    ]
    return math.exp(float(np.mean(np.log(ratios)))), max(ratios)


def _number(trial: Any) -> int:
    number: int = trial.number
    return number


def measure(seed: int, budgets: Sequence[int], most: int, best: Sequence[float]) -> list[Line]:
    """One seed, all ways. A separate search of many tries has those of fewer in it."""
    shapes = len(best)
    lines = []
    ways: dict[str, Callable[[Path, int, int], list[Result]]] = {
        "family": family,
        "evenly": lambda folder, seed, trials: one_by_one(folder, seed, trials, transfer=True),
    }
    for trials in budgets:
        for way, run in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                results = run(Path(folder), seed, trials)
            lines.append(Line(way, trials, seed, *regrets(results, best)))
            if way == "family":
                lines.append(Line("family, crossed", trials, seed, *crossed(results, best)))
    with tempfile.TemporaryDirectory() as folder:
        results = one_by_one(Path(folder), seed, most, transfer=False)
        for trials in looks(shapes, most):
            found = regrets(results, best, trials // shapes)
            lines.append(Line("separate", trials, seed, *found))
    return lines


def looks(shapes: int, most: int) -> list[int]:
    """After how many tries in all separate searches are looked at: every five of each shape."""
    return list(range(shapes * 5, most + 1, shapes * 5))


def table(lines: Sequence[Line], budgets: Sequence[int], most: int, shapes: int) -> list[str]:
    """Regrets with quartiles over the seeds, and how many separate tries are as good as those of a family."""
    rows = head("tries in all | way | regret | quartiles | worst shape")
    for trials in budgets:
        for way in ("family", "family, crossed", "evenly", "separate"):
            found = [line for line in lines if (line.way, line.trials) == (way, trials)]
            low, middle, high = np.quantile([line.regret for line in found], [0.25, 0.5, 0.75])
            worst = float(np.median([line.worst for line in found]))
            rows.append(f"| {trials} | {way} | {middle:.3f} | {low:.3f} to {high:.3f} | {worst:.3f} |")
    rows.append("")
    for way in ("family", "family, crossed"):
        for trials in budgets:
            goal = float(np.median([x.regret for x in lines if (x.way, x.trials) == (way, trials)]))
            enough = [t for t in looks(shapes, most) if _median(lines, t) <= goal]
            needed = f"{enough[0]} tries" if enough else f"more than {most} tries"
            rows.append(f"* {way}, {trials} tries: as good as {needed} of separate searches.")
    return rows


def _median(lines: Sequence[Line], trials: int) -> float:
    return float(np.median([x.regret for x in lines if (x.way, x.trials) == ("separate", trials)]))


def real(space: str, trials: int) -> list[str]:
    """Two searches of a real kernel with as many tries, and what they found, read interleaved."""
    found = load_family(find_space(space), Overrides(trials=trials))
    whole = replace(
        found,
        specs=tuple(replace(s, measure=replace(s.measure, finalists=0)) for s in found.specs),
    )
    searched = [place for place, out in enumerate(found.held_out) if not out]
    rows = head("shape | tries of the family | family | separate | default")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        alone, store = {}, f"{folder}/alone.db"
        for place in searched:
            spec = whole.specs[place]
            spec = replace(
                spec,
                search=replace(spec.search, transfer=False),
                budget=Budget(trials=trials // len(searched)),
            )
            alone[place] = autotune.search(spec, store=store)
            print(f"{found.label(place)} alone", file=sys.stderr, flush=True)
        together = autotune.search_many(whole, store=f"{folder}/family.db")
        with Store.open(f"{folder}/family.db") as opened:
            for place in searched:
                least = _compared(found.specs[place], opened, together.results[place], alone[place])
                tries = sum(together.results[place].statuses.values())
                times = " | ".join(f"{1e6 * value:.1f} us" for value in least)
                rows.append(f"| {found.label(place)} | {tries} | {times} |")
                ratios.append(least[1] / least[0])
                print(rows[-1], file=sys.stderr, flush=True)
    rows.append("")
    mean = math.exp(float(np.mean(np.log(ratios))))
    rows.append(f"The family's are {mean:.3f} times as fast, geometric mean over the shapes.")
    return rows


def _compared(spec: StudySpec, store: Store, together: Result, alone: Result) -> list[float]:
    """Family, separate and default: the least reading of each in one cross measurement.

    Whatever else runs on the machine makes a reading longer and none shorter.
    """
    best = [_found(together), _found(alone)]
    environment = capture_environment(spec)
    wanted = [Candidate(one, (place,)) for place, one in enumerate(dict.fromkeys(best))]
    with closing(make_executor(spec)) as executor, executor.aside():
        ledger = Ledger(spec, store, open_study(spec, store, environment), environment)
        measure_across(executor, ledger, Progress(), wanted)
        ledger.close("compared")
        session = ledger.session_id
    trials = [t for t in store.trials(together.study.id) if t.session_id == session]
    return [
        min(r.value for t in trials if t.hash == one.hash for r in store.readings(t.id) if r.metric == "time")
        for one in [*best, spec.space.default()]
    ]


def _found(result: Result) -> Configuration:
    assert result.best is not None
    return result.best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=at_least_one, default=8)
    parser.add_argument("--budgets", type=counts, default=[60, 120], help="tries in all, with commas")
    parser.add_argument(
        "--most", type=at_least_one, default=300, help="tries of the separate searches in all"
    )
    parser.add_argument("--common", type=float, default=1.0, help="weight of what all shapes want alike")
    parser.add_argument("--real", metavar="SPACE", help="compare on this space, on this machine")
    parser.add_argument("--tries", type=at_least_one, default=90, help="of the real searches, in all")
    arguments = parser.parse_args()
    said = " ".join(sys.argv[1:])
    if arguments.real:
        rows = real(arguments.real, arguments.tries)
        print(f"`python -m benchmarks.shapes {said}`, {software('numpy')}; {machine()}\n")
        print("\n".join(rows))
        return
    COMMON[0] = arguments.common
    budgets = arguments.budgets
    begun = time.monotonic()
    best = optima()
    looked_at = looks(len(best), arguments.most)
    if unknown := [trials for trials in budgets if trials not in looked_at]:
        parser.error(f"--budgets {unknown[0]}: separate searches are looked at after {looked_at} tries")
    lines: list[Line] = []
    for seed in range(arguments.seeds):
        lines += measure(seed, budgets, arguments.most, best)
        print(f"seed {seed}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"`python -m benchmarks.shapes {said}`, {arguments.seeds} seeds, {len(best)} shapes,")
    print(f"{software('numpy')}.\n")
    print("\n".join(table(lines, budgets, arguments.most, len(best))))


if __name__ == "__main__":
    run_as_command(main)
