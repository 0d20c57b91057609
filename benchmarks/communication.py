"""The step of a data-parallel training on links of many speeds: tuned, against what others do about it.

    python -m benchmarks.communication --seeds 1 --out benchmarks/results/communication.md

Needs PyTorch, and root for the links (``autotune doctor``). Two ranks train the perceptron of ``comm-ddp``
over a link of real packets. Compared are, on each link:

* ``default``: our reducer at the defaults of PyTorch's ``DistributedDataParallel`` on gloo, and ``ddp``,
  PyTorch's own class;
* ``horovod``: fusion threshold and cycle time by Horovod's own Bayesian optimisation
  (``horovod_procedure``), 20 samples, in a reducer that works as Horovod does;
* ``random`` and ``autotune``: the ready space ``comm-ddp`` without compression, at the same number of trials;
* ``compressed``: the ready space as it is, with fp16 and int8 (error feedback) under its bound of the error;
* ``grid``: the main knobs of the former, all combinations (``GRID``).

The three best of a search are read again, with all others, in interleaved rounds: the first third of them
says which of the three counts, the others give the figures. As in a session's finale the default stays where
none of the three is ahead of it. Each trial of a search has passed its oracle: parameters identical on all
ranks and equal to those of one process, and so is the loss.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import horovod_procedure
from benchmarks.distributed_search import FINALISTS, Knobs, best_of, links_of, make_objective
from benchmarks.kept import Kept
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, at_least_two, one_thread_each, run_as_command

if TYPE_CHECKING:
    from autotune.space.spec import StudySpec

ROOT = Path(__file__).parents[1]
SPACE = ROOT / "searchspaces" / "comm-ddp.yaml"
VISIT_SECONDS, VISIT_READINGS = 1.0, 5
"""For how long, and how many times at most, one way is read in a round of the final comparison."""
GRID: Mapping[str, tuple[Any, ...]] = {
    "bucket_mb": (0.25, 0.5, 1, 2, 4, 25),
    "algorithm": ("gloo", "ring"),
    "threads": (2, 8),
    "connections": (1, 4),
    "depth": (0, 2),
}


@dataclass(frozen=True)
class Case:
    """A link, and how much is computed in between."""

    gigabits: float
    milliseconds: float
    samples: int = 128

    @property
    def name(self) -> str:
        return f"{self.gigabits:g}Gb/s-{self.milliseconds:g}ms-{self.samples}"

    @property
    def workload(self) -> dict[str, Any]:
        link = {"bandwidth": self.gigabits * 1e9, "latency": self.milliseconds * 1e-3}
        return {"samples": self.samples, "link": link}


CASES = (
    Case(0.1, 1),
    Case(0.1, 10),
    Case(1, 0.1),
    Case(1, 1),
    Case(1, 10),
    Case(10, 0.1),
    Case(10, 1),
    Case(1, 1, samples=1024),
)


class Bench:
    """One case: its objective, in this process, with ranks that are kept all along."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.objective = make_objective(spec_of(case), folder)

    def plan(self, knobs: Knobs) -> Any:
        return self.objective.load(knobs)

    def read(self, knobs: Knobs, count: int, seed: int = 0) -> list[float]:
        """Seconds of a step, so many readings, after one that opens the connections."""
        plan, rng = self.plan(knobs), _rng(seed)
        found = [self.objective.measure(plan, rng).values["time"] for _ in range(count + 1)]
        return found[1:]

    def visit(self, knobs: Knobs, seed: int) -> float:
        """The median of the readings of one round, at least one, after one that opens the connections."""
        plan, rng = self.plan(knobs), _rng(seed)
        self.objective.measure(plan, rng)
        found: list[float] = []
        until = time.monotonic() + VISIT_SECONDS
        while not found or (time.monotonic() < until and len(found) < VISIT_READINGS):
            found.append(self.objective.measure(plan, rng).values["time"])
        return statistics.median(found)

    def search(self, strategy: str, trials: int, seed: int, compressed: bool = False) -> list[Knobs]:
        """The best of a search, by what it had measured."""
        store = self.folder / f"{strategy}-{compressed}-{seed}.db"
        found, _ = best_of(spec_of(self.case, compressed), self.objective, store, strategy, trials, seed)
        return found

    def horovod(self, seed: int, samples: int) -> list[Knobs]:
        def score(threshold: float, cycle: float) -> float:
            return 1 / statistics.mean(self.read(_cycles(threshold, cycle), 3, seed))

        best = max(horovod_procedure.tune(score, seed, samples), key=lambda tried: tried.score)
        return [_cycles(best.threshold, best.cycle)]

    def grid(self, seed: int, share: float) -> list[Knobs]:
        """The best of all combinations; of a random ``share`` of them in a short run."""
        points = list(grid_points())
        random.Random(seed).shuffle(points)
        points = points[: max(FINALISTS, round(share * len(points)))]
        points.sort(key=lambda knobs: statistics.median(self.read(knobs, 2, seed)))
        return points[:FINALISTS]

    def close(self) -> None:
        self.objective.tidy()


def _rng(seed: int) -> Any:
    import numpy as np  # only now: main has said by then how many threads it may have

    return np.random.default_rng(seed)


def spec_of(case: Case, compressed: bool = False) -> StudySpec:
    """The ready space for a case; not ``compressed``: what comes out is what one process computes."""
    from autotune.space.configuration import FrozenMap
    from autotune.space.reading.reader import parse_spec

    text = SPACE.read_text()
    if not compressed:
        lines = [line for line in text.splitlines() if not line.startswith("  compression:")]
        text = "\n".join(lines).replace(""", when: "compression != 'int8'\"""", "")
    spec = parse_spec(text, SPACE)
    measure = replace(spec.measure, finalists=0, max_readings=6, precision=0.05)
    return replace(spec, workload=FrozenMap({**spec.workload, **case.workload}), measure=measure)


def grid_points() -> Iterator[Knobs]:
    for values in itertools.product(*GRID.values()):
        knobs = dict(zip(GRID, values, strict=True))
        if knobs["algorithm"] != "gloo" and knobs.pop("threads") != GRID["threads"][0]:
            continue
        yield knobs


def _cycles(threshold: float, cycle: float) -> Knobs:
    return {"reducer": "cycles", "bucket_mb": threshold, "cycle_ms": cycle}


FIXED: Mapping[str, Knobs] = {
    "default": {},
    "ddp": {"reducer": "ddp"},
    "horovod-default": _cycles(*horovod_procedure.DEFAULT),
}


SEARCHES = ("autotune", "compressed", "random")
"""The ways that are a session's, whose finale has the default beside the finalists."""


# -- the final comparison -------------------------------------------------------------------------


def final(bench: Bench, found: Mapping[str, list[Knobs]], rounds: int) -> dict[str, Any]:
    """A reading of all that is compared in each round; and what each way comes to."""
    entries: dict[str, Knobs] = dict(FIXED)
    for way, best in found.items():
        entries |= {f"{way}#{number}": knobs for number, knobs in enumerate(best)}
    readings: dict[str, list[float]] = {name: [] for name in entries}
    for round_ in range(rounds):
        order = list(entries)
        random.Random(round_).shuffle(order)
        for name in order:
            readings[name].append(bench.visit(entries[name], round_))
    selecting = max(1, rounds // 3)
    picked = dict.fromkeys(FIXED, "")
    ways = {name: readings[name][selecting:] for name in FIXED}
    for way, best in found.items():
        own = [f"{way}#{number}" for number in range(len(best))]
        own += ["default"] if way in SEARCHES else []
        chosen = min(own, key=lambda name: statistics.median(readings[name][:selecting]))
        ways[way], picked[way] = readings[chosen][selecting:], json.dumps(entries[chosen])
    return {"readings": ways, "picked": picked}


def alone(bench: Bench) -> dict[str, Any]:
    """What the case is: the network, computation and communication by themselves."""
    found = bench.objective.check(bench.plan({}), _rng(0))
    return {"network": dict(bench.objective.ranks().facts), "alone": dict(found)}


# -- the table ------------------------------------------------------------------------------------


def table(lines: list[dict[str, Any]]) -> list[str]:
    from autotune.measure.rules.significance import speedup

    rows = head(
        "link | computation : communication | DDP's defaults | ddp itself | horovod, default"
        " | horovod, tuned | random | autotune | grid's best | autotune, compressed | autotune over the"
        " defaults | autotune over ddp itself | grid's best over autotune | compressed over the defaults"
    )
    for line in lines:
        values = line["readings"]
        medians = {way: statistics.median(found) * 1e3 for way, found in values.items()}
        case = Case(**line["case"])
        ratios = [speedup(values[one], values[other]) for one, other in RATIOS]
        cells = [
            f"{case.gigabits:g} Gb/s, {case.milliseconds:g} ms, {case.samples} samples, seed {line['seed']}",
            f"{line['alone']['compute'] * 1e3:.0f} : {line['alone']['communication'] * 1e3:.0f} ms",
            *(f"{medians[way]:.1f} ms" for way in ORDER),
            *(f"{one.estimate:.2f}x [{one.low:.2f}, {one.high:.2f}]" if one else "-" for one in ratios),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


RATIOS = (("default", "autotune"), ("ddp", "autotune"), ("autotune", "grid"), ("default", "compressed"))
"""How many times as fast the second is as the first."""
ORDER = ("default", "ddp", "horovod-default", "horovod", "random", "autotune", "grid", "compressed")


def winners(lines: list[dict[str, Any]]) -> list[str]:
    return [
        f"* {Case(**line['case']).name}: `{line['picked']['autotune']}`; compressed:"
        f" `{line['picked']['compressed']}`"
        for line in lines
    ]


# -- running --------------------------------------------------------------------------------------


def run(case: Case, seed: int, options: argparse.Namespace, kept: Kept) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(case, Path(folder))
        searches = {
            "autotune": (partial(bench.search, "auto", options.trials, seed), options.trials),
            "compressed": (partial(bench.search, "auto", options.trials, seed, True), options.trials),
            "random": (partial(bench.search, "random", options.trials, seed), options.trials),
            "horovod": (partial(bench.horovod, seed, options.samples), options.samples),
            "grid": (partial(bench.grid, seed, options.grid), options.grid),
        }
        of = {"case": case.name, "seed": seed}
        try:
            facts = kept.get_or_make(lambda: alone(bench), alone=case.name)
            found = {}
            for way, (make, scale) in searches.items():
                found[way] = kept.get_or_make(make, way=way, scale=scale, **of)
                print(f"{case.name}, seed {seed}, {way}: {json.dumps(found[way][0])}", flush=True)
            scales = [scale for _, scale in searches.values()]
            compared = kept.get_or_make(
                lambda: final(bench, found, options.rounds), rounds=options.rounds, scales=scales, **of
            )
            return {"case": asdict(case), "seed": seed, **facts, **compared}
        finally:
            bench.close()


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    links = [case.name for case in CASES]
    parser.add_argument("--links", nargs="+", choices=links, default=links)
    parser.add_argument("--seeds", type=at_least_one, default=1)
    parser.add_argument("--trials", type=at_least_one, default=30)
    parser.add_argument(
        "--samples", type=at_least_one, default=horovod_procedure.SAMPLES, help="of Horovod's procedure"
    )
    parser.add_argument("--grid", type=float, default=1.0, help="share of the grid that is measured")
    parser.add_argument("--rounds", type=at_least_two, default=18, help="of the final comparison")
    parser.aside("--kept", type=Path, default=Path("communication.jsonl"), help="what there is so far")
    options = parser.read()
    kept = Kept(options.kept)
    wanted = [case for case in CASES if case.name in options.links]
    lines = [run(case, seed, options, kept) for case, seed in itertools.product(wanted, range(options.seeds))]
    about = (
        f"{software('torch')}; {machine()}. Two ranks {links_of(lines)}."
        " Medians of the interleaved rounds; ratios with 95 % intervals, above 1 is faster."
    )
    parts = about, table(lines), "What autotune found:", winners(lines)
    publish(page("Communication of a data-parallel step", options.command, *parts), options.out)


if __name__ == "__main__":
    run_as_command(main)
