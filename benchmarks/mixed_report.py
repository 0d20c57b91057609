"""The table of searches on mixed spaces.

    python -m benchmarks.mixed_report RUNS.jsonl ... --out benchmarks/results/mixed_spaces.md

RUNS.jsonl is what ``benchmarks.mixed_spaces`` wrote. Two figures compare the methods, both from the best loss
after the last trial.

The *rank* of a method among the others, for each task and seed (1 is best, ties share), averaged.

The *score* of the black-box optimisation challenge of 2020 (Turner et al., PMLR 133, 2021; computed as by
its software, bayesmark): ``100 (1 - mean of (loss - optimum) / (guess - optimum))``, the ratio kept within -1
and 1, the mean taken over seeds, then over tasks. 100 is the optimum in every search, 0 a single guess. The
optimum of a task is the best loss that any method ever found in it, the guess the median loss of random
search's trials (a failed one counts as infinite; the default configuration is no guess).
Without random search there is no score.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Any

from scipy.stats import rankdata

from benchmarks.kept import read_searches
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish
from benchmarks.running import run_as_command

GUESSER = "random"


@dataclass(frozen=True)
class Run:
    """One search: losses in the order tried, infinite where training failed."""

    task: str
    method: str
    seed: int
    seconds: float
    on: str
    losses: tuple[float, ...]

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Run:
        losses = tuple(math.inf if loss is None else float(loss) for loss in line["losses"])
        return cls(line["task"], line["method"], line["seed"], line["seconds"], line["on"], losses)

    @property
    def best(self) -> float:
        return min(self.losses)


def searches(runs: Iterable[Run]) -> dict[tuple[str, int], dict[str, float]]:
    """The best loss of each method, by task and seed."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for run in runs:
        found.setdefault((run.task, run.seed), {})[run.method] = run.best
    return found


def mean_ranks(runs: Iterable[Run]) -> dict[str, float]:
    """The mean rank of each method; every method must have every search."""
    found = list(searches(runs).values())
    methods = list(found[0])
    table = rankdata([[best[method] for method in methods] for best in found], axis=1)
    return dict(zip(methods, table.mean(axis=0).tolist(), strict=True))


@dataclass(frozen=True)
class Scale:
    """What a task's losses are measured against."""

    optimum: float
    guess: float

    def score(self, losses: Iterable[float]) -> float:
        """The challenge's score of the best losses of several searches."""
        span = self.guess - self.optimum
        ratios = [(loss - self.optimum) / span if span > 0 else 0.0 for loss in losses]
        return 100 * (1 - mean(min(max(ratio, -1.0), 1.0) for ratio in ratios))


def scales(runs: Sequence[Run]) -> dict[str, Scale]:
    """The scale of each task in which random search was run."""
    found = {}
    for task in sorted({run.task for run in runs}):
        mine = [run for run in runs if run.task == task]
        guesses = [loss for run in mine if run.method == GUESSER for loss in run.losses[1:]]
        if guesses:
            found[task] = Scale(min(run.best for run in mine), median(guesses))
    return found


def tables(runs: Sequence[Run]) -> list[str]:
    """The methods with the most searches; then, where some have fewer, all methods on what all have."""
    scale = scales(runs)
    have = {
        method: {(r.task, r.seed) for r in runs if r.method == method} for method in {r.method for r in runs}
    }
    most = max(have.values(), key=len)
    whole = {method for method in have if have[method] == most}
    lines = table([run for run in runs if run.method in whole], scale)
    if len(whole) < len(have):
        common = set.intersection(*have.values())
        if not common:
            return [*lines, "", "No search (task and seed) is one that all methods have."]
        lines += [
            "",
            f"All methods, on the {len(common)} searches (task and seed) that all of them have:",
            "",
        ]
        lines += table([run for run in runs if (run.task, run.seed) in common], scale)
    return lines


def table(runs: Sequence[Run], scale: Mapping[str, Scale]) -> list[str]:
    """One row a method, the best mean rank first."""
    names = [name for name in scale if any(run.task == name for run in runs)]
    lines = head(" | ".join(["method | searches | mean rank | score", *names, "seconds"]))
    for method, rank in sorted(mean_ranks(runs).items(), key=lambda item: item[1]):
        mine = [run for run in runs if run.method == method]
        scores = [scale[name].score(run.best for run in mine if run.task == name) for name in names]
        score = f"{mean(scores):.1f}" if scores else "-"
        shown = [f"{rank:.2f}", score, *(f"{score:.1f}" for score in scores)]
        seconds = f"{mean(run.seconds for run in mine):.2f}"
        lines.append(f"| {' | '.join([method, str(len(mine)), *shown, seconds])} |")
    return lines


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS.jsonl")
    options = parser.read()
    runs = [Run.from_line(line) for line in read_searches(options.runs, ("task", "method", "seed"))]
    trials = sorted({len(run.losses) for run in runs})
    about = (
        "scikit-learn models on its bundled data, cross-validated (`benchmarks/mixed_tasks.py`: mixed "
        "continuous, integer, categorical and conditional knobs; `benchmarks/range_tasks.py`: ranges, which "
        "are named), and neural networks whose trainings others have recorded "
        "(`benchmarks/recorded_tasks.py`: lists and choices); "
        f"{'-'.join(map(str, trials))} trials, of which the first is the default for every "
        "method. `mean rank` is over tasks and seeds, 1 the best. `score` is that of the 2020 "
        "black-box challenge (Turner et al. 2021): 100 is the best "
        "loss that anyone found, 0 a random guess. `seconds` is the processor time of the method itself."
    )
    on = "; ".join(sorted({run.on for run in runs}))
    on += f"; trained with scikit-learn {version('scikit-learn')}; Python {platform.python_version()}."
    publish(page("Tuning real models", options.command, about, on, tables(runs)), options.out)


if __name__ == "__main__":
    run_as_command(main)
