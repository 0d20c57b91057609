"""Strategies on smooth functions of continuous knobs, beside random search at equal budget.

    python -m benchmarks.smooth_functions --strategies auto,skopt-gp,optuna-gp,optuna-tpe,random --seeds 10

What people tune beside kernels (rates, weights, thresholds) is continuous and mostly smooth. The functions
are standard ones of the literature on global optimisation (S. Surjanovic and D. Bingham, *Virtual Library of
Simulation Experiments*), each knob scaled to [0, 1], the optimum at 1, with readings that are off by 0.01 (a
standard deviation). The regret is that of the best configuration tried, without noise; given is the median
over seeds, after 10, 20 and 30 tries. The default, which every strategy tries first, is drawn at random. The
constants of the prior were chosen on the functions marked as *seen*. With ``--knobs integer`` each is a range
of the integers from 0 to 1,000 instead: as sizes, depths and counts of threads are. With ``--knobs mixed``
every third knob is a list of twelve values, the best one among them, and a choice of three kinds says where
the optimum is: of two kinds it is mirrored, and higher. With ``--after 100,200,300`` searches are as long as
that. With ``--noise 0.5`` readings are off by half the standard deviation of the function in its space, and
given is the regret of the best of the four tries with the lowest readings, as if a finale told them apart.
"""

from __future__ import annotations

import math
import statistics
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.running import (
    at_least_one,
    known_strategies,
    mean_ranks,
    one_thread_each,
    problem_random,
    run_as_command,
    search_all,
)

Floats = NDArray[np.float64]

AFTER = (10, 20, 30)
NOISE = 0.01
FINALISTS = 4
"""Where there is more noise, so many tries are measured again."""
WHOLE = 1000
"""The last integer of a range, of ``integer`` knobs."""
LISTED = 12
"""How many values a list of ``mixed`` knobs has."""
KINDS = {"best": 0.0, "second": 0.3, "third": 0.6}
"""The choice of ``mixed`` knobs, and how much higher the optimum of each kind is, in standard deviations of
the function."""
Form = Literal["continuous", "integer", "mixed"]
LOSS = (MetricSpec("loss", "minimize"),)


@dataclass(frozen=True)
class Function:
    """Of positions in [0, 1]: how far above its lowest value it is there, and one place where that is."""

    lowest_at: tuple[float, ...]
    above: Callable[[Floats], float]
    seen: bool = False

    @property
    def knobs(self) -> int:
        return len(self.lowest_at)

    @cached_property
    def spread(self) -> float:
        """Its standard deviation over random positions."""
        at = np.random.default_rng(0).random((400, self.knobs))
        return float(np.std([self.above(position) for position in at]))


def branin(at: Floats) -> float:
    x, y = 15.0 * at[0] - 5.0, 15.0 * at[1]
    bent = y - 5.1 / (4.0 * math.pi**2) * x * x + 5.0 / math.pi * x - 6.0
    return float(bent**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) + 10.0 - 0.397887)


def camel(at: Floats) -> float:
    x, y = 6.0 * at[0] - 3.0, 4.0 * at[1] - 2.0
    return float((4.0 - 2.1 * x * x + x**4 / 3.0) * x * x + x * y + (4.0 * y * y - 4.0) * y * y + 1.031628)


_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_WIDTHS_3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_PEAKS_3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_WIDTHS_6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_PEAKS_6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(widths: Floats, peaks: Floats, most: float, at: Floats) -> float:
    return most - float(_WEIGHTS @ np.exp(-(widths * (at - peaks) ** 2).sum(axis=1)))


def ackley(at: Floats) -> float:
    z = 8.0 * (at - 0.3)
    waves = math.exp(float(np.cos(2.0 * math.pi * z).mean()))
    return 20.0 + math.e - 20.0 * math.exp(-0.2 * math.sqrt(float((z * z).mean()))) - waves


def rosenbrock(at: Floats) -> float:
    z = 3.0 * at - 1.0
    return float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum())


def levy(at: Floats) -> float:
    w = 1.0 + (20.0 * at - 11.0) / 4.0
    first, last = float(w[0]), float(w[-1])
    ends = math.sin(math.pi * first) ** 2 + (last - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * last) ** 2)
    return ends + float(((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)).sum())


def styblinski(at: Floats) -> float:
    x = 10.0 * at - 5.0
    return float((x**4 - 16.0 * x * x + 5.0 * x).sum()) / 2.0 + 39.166166 * len(at)


def valley(at: Floats) -> float:
    """Flat far from the optimum, as the loss of a training is where it learns nothing."""
    return 1.0 - math.exp(-float(((at - np.linspace(0.35, 0.6, len(at))) ** 2).sum()) / 0.08)


FUNCTIONS = {
    "Branin": Function((0.5428, 0.1517), branin, seen=True),
    "Ackley 2": Function((0.3, 0.3), ackley, seen=True),
    "Hartmann 3": Function(
        (0.114614, 0.555649, 0.852547), partial(hartmann, _WIDTHS_3, _PEAKS_3, 3.86278), seen=True
    ),
    "valley 3": Function((0.35, 0.475, 0.6), valley, seen=True),
    "Hartmann 6": Function(
        (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
        partial(hartmann, _WIDTHS_6, _PEAKS_6, 3.32237),
        seen=True,
    ),
    "six-hump camel": Function((0.51497, 0.32185), camel),
    "Rosenbrock 3": Function((2 / 3,) * 3, rosenbrock),
    "Levy 4": Function((0.55,) * 4, levy),
    "valley 4": Function(tuple(np.linspace(0.35, 0.6, 4).tolist()), valley),
    "Styblinski-Tang 5": Function((0.2096466,) * 5, styblinski),
}


def made_knobs(function: Function, form: Form, rng: np.random.Generator) -> list[Knob]:
    """The knobs of a search; defaults are drawn."""
    made: list[Knob] = []
    for number, start in enumerate(rng.random(function.knobs)):
        name = f"x{number}"
        if form == "integer":
            made.append(IntegerRange(name, 0, WHOLE, default=int(WHOLE * start)))
        elif form == "mixed" and number % 3 == 1:
            values = sorted({*np.linspace(0.0, 1.0, LISTED - 1).tolist(), function.lowest_at[number]})
            made.append(OrderedValues(name, tuple(values), default=values[int(start * len(values))]))
        else:
            made.append(FloatRange(name, 0.0, 1.0, default=float(start)))
    if form == "mixed":
        made.append(Choice("kind", tuple(KINDS), default=str(rng.choice([*KINDS]))))
    return made


def above(function: Function, configuration: Configuration) -> float:
    """How far a configuration is above the optimum of all."""
    scale = WHOLE if isinstance(configuration["x0"], int) else 1
    numbers = [float(configuration[f"x{number}"]) for number in range(function.knobs)]
    at = np.array(numbers) / scale
    kind = str(configuration.get("kind", "best"))
    return function.above(at if kind == "best" else 1.0 - at) + KINDS[kind] * function.spread


def regrets(
    name: str, strategy: str, seed: int, tries: int, *, form: Form = "continuous", noise: float = 0.0
) -> list[float]:
    """Of one search: how far the best of its tries is above the optimum, after each.

    ``noise``, in standard deviations of the function, comes in the place of :data:`NOISE`; then it is the
    best of the :data:`FINALISTS` with the lowest readings.
    """
    function = FUNCTIONS[name]
    rng = problem_random(seed, name)
    searcher = make_strategy(strategy, Problem(Space(made_knobs(function, form, rng)), LOSS, tries), seed)
    off = noise * function.spread or NOISE
    found: list[float] = []
    read: list[tuple[float, float]] = []
    for _ in range(tries):
        configuration = searcher.ask()[0].configuration
        height = above(function, configuration)
        told = 1.0 + height + off * float(rng.standard_normal())
        searcher.tell([Observation(configuration, Status.OK, {"loss": told})])
        insort(read, (told, height))
        found.append(min(height for _, height in (read[:FINALISTS] if noise else read)))
    return found


Runs = dict[tuple[str, str], list[list[float]]]
"""By function and strategy: the regrets of each seed."""


def table(strategies: Sequence[str], runs: Runs, after: Sequence[int]) -> list[str]:
    lines = head(" | ".join(["function", *(f"`{strategy}`" for strategy in strategies)]))
    for name, function in FUNCTIONS.items():
        cells = [
            ", ".join(
                f"{statistics.median(run[tries - 1] for run in runs[name, strategy]):.3g}" for tries in after
            )
            for strategy in strategies
        ]
        lines.append(f"| {name}{' (seen)' if function.seen else ''} | {' | '.join(cells)} |")
    said = ", ".join(map(str, after))
    lines.append(f"| **mean rank** after {said} | {' | '.join(mean_ranks(strategies, runs, after))} |")
    means = " | ".join(mean_logarithms(strategy, runs, after) for strategy in strategies)
    lines.append(f"| mean decimal logarithm | {means} |")
    return lines


def mean_logarithms(strategy: str, runs: Runs, after: Sequence[int]) -> str:
    """Over all functions and seeds. A regret counts as no less than the noise."""
    own = np.array([run for (_, by), found in runs.items() if by == strategy for run in found])
    means = np.log10(np.maximum(own, NOISE)).mean(axis=0)
    return ", ".join(f"{means[tries - 1]:.2f}" for tries in after)


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default="auto,skopt-gp,optuna-gp,optuna-tpe,random")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.aside("--jobs", type=at_least_one, default=1)
    parser.add_argument(
        "--knobs", choices=get_args(Form), default="continuous", help="of which form they are"
    )
    parser.add_argument("--after", default=",".join(map(str, AFTER)), help="tries after which to look")
    parser.add_argument("--noise", type=float, default=0.0, help="in standard deviations of the function")
    asked = parser.read()
    after = [int(tries) for tries in asked.after.split(",")]
    strategies = known_strategies(asked.strategies)
    search = partial(regrets, tries=max(after), form=asked.knobs, noise=asked.noise)
    runs = search_all(search, FUNCTIONS, strategies, range(asked.seeds), asked.jobs)
    which = f"the best of the {FINALISTS} with the lowest readings" if asked.noise else "the best tried"
    off = f"{asked.noise:g} standard deviations of the function" if asked.noise else f"{NOISE}"
    about = (
        f"{software('optuna', 'scikit-optimize')}. Regret of {which} after"
        f" {', '.join(map(str, after))} tries, the median over {asked.seeds} seeds; readings are off by"
        f" {off}. The constants of the prior were chosen on the functions marked as seen. A mean logarithm"
        f" counts no regret as less than {NOISE}."
    )
    title = f"Smooth functions of {asked.knobs} knobs"
    publish(page(title, asked.command, about, table(strategies, runs, after)), asked.out)


if __name__ == "__main__":
    run_as_command(main)
