"""How several workers train one model: the wall time to a loss, tuned over all ways and for each way alone.

    python -m benchmarks.async_sgd --seeds 1 --out benchmarks/results/async_sgd.md

Needs PyTorch, and root for links and quotas (``autotune doctor``). The ready spaces ``async-sgd`` and
``async-sgd-straggler``, in which one of three workers has a tenth of a core. For each of the five modes a
search of ``--trials`` trials tunes rate, momentum, batch and the mode's own knobs; ``autotune`` has as many
trials for all of them together, and ``random`` too.

The three best of each search are trained again, interleaved, from seeds that no search has seen: the first
third of the rounds says which of the three counts, the others give the figures. A training that explodes or
does not reach the target has no time; ``reached`` counts those that did.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.distributed_search import Knobs, best_of, links_of, make_objective
from benchmarks.kept import Kept
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, at_least_two, one_thread_each, run_as_command

if TYPE_CHECKING:
    from autotune.space.spec import StudySpec

SPACES = Path(__file__).parents[1] / "searchspaces"
CASES = ("async-sgd", "async-sgd-straggler")
MODES = ("allreduce", "server", "async", "bounded", "easgd")
WAYS = (*MODES, "random", "autotune")
UNSEEN = 10_000
"""The first seed of the final rounds."""


def spec_of(case: str, mode: str = "") -> StudySpec:
    """The ready space; with a ``mode``: that alone."""
    from autotune.space.reading.reader import parse_spec

    text = (SPACES / f"{case}.yaml").read_text()
    if mode:
        text = text.replace("default: allreduce", f"default: {mode}")
        text += f"\nconstraints:\n  - mode == '{mode}'\n"
    spec = parse_spec(text, SPACES / f"{case}.yaml")
    return replace(spec, measure=replace(spec.measure, finalists=0, max_readings=3))


class Bench:
    """One case: its objective, in this process, with ranks that are kept all along."""

    def __init__(self, case: str, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.objective = make_objective(spec_of(case), folder)

    def search(self, way: str, trials: int, seed: int) -> tuple[list[Knobs], dict[str, int]]:
        """The best of a search, and how many trials ended how."""
        spec = spec_of(self.case, way if way in MODES else "")
        strategy = "random" if way == "random" else "auto"
        return best_of(spec, self.objective, self.folder / f"{way}-{seed}.db", strategy, trials, seed)

    def train(self, knobs: Knobs, seed: int) -> dict[str, float]:
        """The metrics of one training; without ``time`` where it failed."""
        import numpy as np

        from autotune.measure.objective import Signal, WrongAnswer

        try:
            return dict(
                self.objective.measure(self.objective.load(knobs), np.random.default_rng(seed)).values
            )
        except WrongAnswer as missed:
            return dict(missed.metrics)
        except Signal:
            return {}

    def close(self) -> None:
        self.objective.tidy()


def final(bench: Bench, found: Mapping[str, list[Knobs]], rounds: int) -> dict[str, Any]:
    """What each way comes to, from seeds that no search has seen."""
    entries = {f"{way}#{n}": knobs for way, best in found.items() for n, knobs in enumerate(best)}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in entries}
    for round_ in range(rounds):
        order = list(entries)
        random.Random(round_).shuffle(order)
        for name in order:
            runs[name].append(bench.train(entries[name], UNSEEN + round_))
    selecting = max(1, rounds // 3)
    ways = {}
    for way, best in found.items():
        own = [f"{way}#{number}" for number in range(len(best))]
        if own:
            chosen = min(own, key=lambda name: _typical(runs[name][:selecting]))
            ways[way] = {"knobs": dict(entries[chosen]), "runs": runs[chosen][selecting:]}
    return ways


def _typical(runs: list[dict[str, float]]) -> float:
    """The median time, where a training that failed took for ever."""
    return statistics.median(run.get("time", math.inf) for run in runs)


# -- the table ------------------------------------------------------------------------------------


def table(lines: list[dict[str, Any]]) -> list[str]:
    rows = head(
        "space | seed | way | time to target, median (range) | reached | steps | staleness | lead"
        " | trials: ok, diverged, wrong, pruned | configuration"
    )
    for line in lines:
        for way in WAYS:
            if way not in line["ways"]:
                rows.append(f"| {line['case']} | {line['seed']} | {way} | none succeeded |" + " - |" * 6)
                continue
            own, counts = line["ways"][way], line["counts"][way]
            runs = own["runs"]
            times = [run["time"] for run in runs if "time" in run]
            typical = _typical(runs)
            span = f" ({min(times):.2f} to {max(times):.2f})" if times else ""
            cells = [
                line["case"],
                line["seed"],
                way,
                f"{typical:.2f} s{span}" if math.isfinite(typical) else "never",
                f"{len(times)}/{len(runs)}",
                f"{_median(runs, 'steps'):.0f}",
                f"{_median(runs, 'staleness'):.2f}",
                f"{_median(runs, 'lead'):.0f}",
                ", ".join(str(counts.get(status, 0)) for status in ("ok", "diverged", "wrong", "pruned")),
                f"`{json.dumps(_short(own['knobs']))}`",
            ]
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def _median(runs: list[dict[str, float]], name: str) -> float:
    found = [run[name] for run in runs if name in run]
    return statistics.median(found) if found else math.nan


def _short(knobs: Knobs) -> dict[str, Any]:
    return {name: float(f"{v:.3g}") if isinstance(v, float) else v for name, v in knobs.items()}


# -- running --------------------------------------------------------------------------------------


def run(case: str, seed: int, options: argparse.Namespace, kept: Kept) -> dict[str, Any]:
    of = {"case": case, "seed": seed, "trials": options.trials}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(case, Path(folder))
        try:
            searched = {}
            for way in WAYS:
                make = partial(bench.search, way, options.trials, seed)
                searched[way] = kept.get_or_make(make, way=way, **of)
                print(f"{case}, seed {seed}, {way}: {searched[way][1]}", flush=True)
            found = {way: best for way, (best, _) in searched.items()}
            ways = kept.get_or_make(partial(final, bench, found, options.rounds), rounds=options.rounds, **of)
            return {
                "case": case,
                "seed": seed,
                "network": kept.get_or_make(lambda: dict(bench.objective.ranks().facts), network=case),
                "counts": {way: counts for way, (_, counts) in searched.items()},
                "ways": ways,
            }
        finally:
            bench.close()


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--seeds", type=at_least_one, default=1)
    parser.add_argument("--trials", type=at_least_one, default=30)
    parser.add_argument("--rounds", type=at_least_two, default=15, help="of the final comparison")
    parser.aside("--kept", type=Path, default=Path("async_sgd.jsonl"), help="what there is so far")
    options = parser.read()
    kept = Kept(options.kept)
    lines = [
        run(case, seed, options, kept)
        for case, seed in itertools.product(options.cases, range(options.seeds))
    ]
    about = (
        f"{software('torch', 'scikit-learn')}; {machine()}. A server and three workers"
        f" {links_of(lines)}. Figures are of trainings from seeds that no search has seen."
    )
    title = "Synchronous and asynchronous training by the wall time to a loss"
    publish(page(title, options.command, about, table(lines)), options.out)


if __name__ == "__main__":
    run_as_command(main)
