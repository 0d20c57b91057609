"""Constraints whose values are measured, in studies of Optuna: autotune's sampler beside Optuna's own.

    python -m benchmarks.measured_constraints --first 100 --seeds 20 --jobs 2 --out RUNS.jsonl
    python -m benchmarks.measured_constraints --first 100 --seeds 5 --samplers optuna-gp --out RUNS.jsonl
    python -m benchmarks.measured_constraints --table RUNS.jsonl

Three functions of two numbers and three designs of machines, whose feasible part is from all but nothing to
most of the space. All samplers are told the same: the goal, and each constraint's value (0 or less: kept).
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import optuna

from benchmarks.kept import read_searches
from benchmarks.publishing import head, machine, software
from benchmarks.running import append_lines, at_least_one, one_thread_each, run_as_command

Result = tuple[float, list[float]]
"""The goal, to be minimised, and the constraints."""

TRIES = 60
AFTER = (30, TRIES)


def gardner_one(trial: optuna.Trial) -> Result:
    """Gardner et al., Bayesian Optimization with Inequality Constraints (ICML 2014), simulation 1."""
    x, y = trial.suggest_float("x", 0, 6), trial.suggest_float("y", 0, 6)
    bound = math.cos(x) * math.cos(y) - math.sin(x) * math.sin(y) - 0.5
    return math.cos(2 * x) * math.cos(y) + math.sin(x), [bound]


def gardner_two(trial: optuna.Trial) -> Result:
    """The same, simulation 2: two small discs are feasible, the better one at (3 pi / 2, pi / 2)."""
    x, y = trial.suggest_float("x", 0, 6), trial.suggest_float("y", 0, 6)
    return math.sin(x) + y, [math.sin(x) * math.sin(y) + 0.95]


def branin_disc(trial: optuna.Trial) -> Result:
    """The Branin function in a disc (Gelbart, Snoek and Adams, UAI 2014)."""
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10, [(x - 2.5) ** 2 + (y - 7.5) ** 2 - 50]


def pressure_vessel(trial: optuna.Trial) -> Result:
    """The cost of a vessel of plates in sixteenths of an inch (Sandgren, J. Mechanical Design 112, 1990)."""
    shell, head = 0.0625 * trial.suggest_int("shell", 1, 99), 0.0625 * trial.suggest_int("head", 1, 99)
    radius, length = trial.suggest_float("radius", 10, 200), trial.suggest_float("length", 10, 200)
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3
    return cost, [0.0193 * radius - shell, 0.00954 * radius - head, 1_296_000 - volume, length - 240]


def spring(trial: optuna.Trial) -> Result:
    """The weight of a spring under tension (Arora, Introduction to Optimum Design, 1989)."""
    wire, coil = trial.suggest_float("wire", 0.05, 2.0), trial.suggest_float("coil", 0.25, 1.3)
    turns = trial.suggest_float("turns", 2.0, 15.0)
    shear = (4 * coil**2 - wire * coil) / (12_566 * (coil * wire**3 - wire**4) or 1e-12)
    constraints = [
        1 - coil**3 * turns / (71_785 * wire**4),
        shear + 1 / (5_108 * wire**2) - 1,
        1 - 140.45 * wire / (coil**2 * turns),
        (wire + coil) / 1.5 - 1,
    ]
    return (turns + 2) * coil * wire**2, constraints


def speed_reducer(trial: optuna.Trial) -> Result:
    """The weight of a gear box (Golinski, Journal of Mechanisms 5, 1970): seven numbers, eleven bounds."""
    face, module = trial.suggest_float("face", 2.6, 3.6), trial.suggest_float("module", 0.7, 0.8)
    teeth = trial.suggest_int("teeth", 17, 28)
    first, second = trial.suggest_float("first", 7.3, 8.3), trial.suggest_float("second", 7.3, 8.3)
    thin, thick = trial.suggest_float("thin", 2.9, 3.9), trial.suggest_float("thick", 5.0, 5.5)
    weight = 0.7854 * face * module**2 * (3.3333 * teeth**2 + 14.9334 * teeth - 43.0934)
    weight += -1.508 * face * (thin**2 + thick**2) + 7.4777 * (thin**3 + thick**3)
    weight += 0.7854 * (first * thin**2 + second * thick**2)
    constraints = [
        27 / (face * module**2 * teeth) - 1,
        397.5 / (face * module**2 * teeth**2) - 1,
        1.93 * first**3 / (module * teeth * thin**4) - 1,
        1.93 * second**3 / (module * teeth * thick**4) - 1,
        math.sqrt((745 * first / (module * teeth)) ** 2 + 16.9e6) / (110 * thin**3) - 1,
        math.sqrt((745 * second / (module * teeth)) ** 2 + 157.5e6) / (85 * thick**3) - 1,
        module * teeth / 40 - 1,
        5 * module / face - 1,
        face / (12 * module) - 1,
        (1.5 * thin + 1.9) / first - 1,
        (1.1 * thick + 1.9) / second - 1,
    ]
    return weight, constraints


CASES: Mapping[str, tuple[Callable[[optuna.Trial], Result], float]] = {
    "gardner-1": (gardner_one, -2.0),
    "gardner-2": (gardner_two, 0.2532),
    "branin-disc": (branin_disc, 0.3979),
    "pressure-vessel": (pressure_vessel, 6059.7),
    "spring": (spring, 0.012665),
    "speed-reducer": (speed_reducer, 2994.4),
}
"""What is minimised, and the best that is known."""


@dataclass(frozen=True)
class Search:
    case: str
    sampler: str
    seed: int


def constraints_of(trial: optuna.trial.FrozenTrial) -> Sequence[float]:
    found: Sequence[float] = trial.user_attrs["constraints"]
    return found


def sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """As its documentation recommends it; deterministic, where it can be told so."""
    from autotune.interop.optuna import AutotuneSampler

    make: Mapping[str, Callable[[], Any]] = {
        "autotune": partial(AutotuneSampler, seed=seed, constraints_func=constraints_of),
        "optuna-tpe": partial(
            optuna.samplers.TPESampler, seed=seed, multivariate=True, constraints_func=constraints_of
        ),
        "optuna-gp": partial(
            optuna.samplers.GPSampler,
            seed=seed,
            deterministic_objective=True,
            constraints_func=constraints_of,
        ),
        "random": partial(optuna.samplers.RandomSampler, seed=seed),
    }
    found: optuna.samplers.BaseSampler = make[name]()
    return found


SAMPLERS = ("autotune", "optuna-tpe", "optuna-gp", "random")


def run(search: Search) -> Mapping[str, object]:
    """One study: the best that keeps all constraints after some tries, and how many tries kept them."""
    warnings.simplefilter("ignore")  # constraints_func is deprecated in Optuna 5, which has no other way yet
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    function, _ = CASES[search.case]

    def objective(trial: optuna.Trial) -> float:
        value, constraints = function(trial)
        trial.set_user_attr("constraints", constraints)
        return value

    study = optuna.create_study(sampler=sampler(search.sampler, search.seed))
    study.optimize(objective, n_trials=TRIES)
    kept = [max(trial.user_attrs["constraints"]) <= 0.0 for trial in study.trials]
    values = [trial.value if fits else math.inf for trial, fits in zip(study.trials, kept, strict=True)]
    best = {str(after): min(v for v in values[:after] if v is not None) for after in AFTER}
    return {
        **vars(search),
        "best": best,
        "kept": sum(kept),
        "first": kept.index(True) + 1 if any(kept) else None,
    }


def table(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """A row for each case and sampler. A median where half of the searches kept no constraint is a dash.

    *First at* is a median of the searches that found any: who finds few may have found these soon.
    """
    after = " | ".join(f"after {after}" for after in AFTER)
    rows = head(
        f"case (best known) | sampler | searches | found any | first at | {after} | past a constraint"
    )
    for case, (_, known) in CASES.items():
        for name in SAMPLERS:
            some = [line for line in lines if (line["case"], line["sampler"]) == (case, name)]
            if not some:
                continue
            found = [line["first"] for line in some if line["first"]]
            first = f"{statistics.median(found):.0f}" if found else "–"
            bests = [statistics.median(line["best"][str(after)] for line in some) for after in AFTER]
            said = " | ".join(f"{best:.5g}" if math.isfinite(best) else "–" for best in bests)
            past = statistics.mean(TRIES - line["kept"] for line in some)
            cells = [f"{case} ({known:.5g})", f"`{name}`", len(some), len(found), first, said, f"{past:.0f}"]
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument(
        "--samplers", nargs="+", choices=SAMPLERS, default=["autotune", "optuna-tpe", "random"]
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=at_least_one, default=5)
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument(
        "--out", type=Path, default=Path("measured_constraints.jsonl"), help="a line a search"
    )
    parser.add_argument("--table", type=Path, nargs="+", metavar="RUNS.jsonl", help="show these; run nothing")
    options = parser.parse_args()
    if options.table:
        lines = read_searches(options.table, ("case", "sampler", "seed"))
        print(f"{software('optuna', 'torch')}; {machine()}. {TRIES} tries.\n")
        print("\n".join(table(lines)))
        return 0
    one_thread_each()
    seeds = range(options.first, options.first + options.seeds)
    todo = [Search(case, name, seed) for seed in seeds for case in options.cases for name in options.samplers]
    return append_lines(
        run,
        todo,
        options.jobs,
        options.out,
        lambda search: f"{search.case} {search.sampler} {search.seed}",
        lambda line: f"{line['best']}",
    )


if __name__ == "__main__":
    run_as_command(main)
