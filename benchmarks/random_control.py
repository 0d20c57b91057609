"""Is a search of a ready space better than random tries in the same time?

    python -m benchmarks.random_control --spaces gemm-c,sqlite-store --time 60

Each space is searched by ``auto`` and by ``random``, which take turns in being first, with nothing that was
compiled or measured before. Each defends its own answer, as every search does. Then both answers and the
default are read interleaved. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import autotune
from autotune.measure.rules.significance import Ratio, paired_shift, speedup
from autotune.provenance.device import device_facts
from autotune.session.result import Result
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from autotune.store.store import Store
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import known_names, run_as_command

SPACES = Path(__file__).parents[1] / "searchspaces"
USUAL = "gemm-c,convolution-c,stencil-c,nms-c,index-c,sqlite-store"
STRATEGIES = ("auto", "random")


@dataclass(frozen=True)
class Compared:
    """What the two searches of a space came to; ratios above 1 mean that the first one named is better."""

    tries: Mapping[str, int]
    over_default: Mapping[str, Ratio | None]
    auto_over_random: Ratio | None


def compare(space: Path, seconds: float, seed: int, store: str) -> Compared:
    """Search a space by each strategy, and read the answers beside one another."""
    spec = read_spec(space, device=device_facts())
    order = STRATEGIES if seed % 2 == 0 else STRATEGIES[::-1]
    results = {strategy: _search(spec, strategy, seconds, seed, store) for strategy in order}
    best = {strategy: result.best for strategy, result in results.items()}
    readings = _side_by_side(spec, [one for one in best.values() if one is not None], seconds, seed, store)
    default = spec.space.feasible_default()

    def ratio(one: Configuration | None, other: Configuration | None) -> Ratio | None:
        """How much better the first one is, by the rounds in which both were read."""
        if one is None or other is None:
            return None
        first, second = readings.get(one.hash, {}), readings.get(other.hash, {})
        both = sorted(first.keys() & second.keys())
        if one == other:
            return Ratio(1.0, 1.0, 1.0, len(both))
        if len(both) < 2:
            return None
        goal = spec.goals[0].goal or "minimize"
        return speedup([second[n] for n in both], [first[n] for n in both], goal=goal)

    return Compared(
        {strategy: sum(result.statuses.values()) for strategy, result in results.items()},
        {strategy: ratio(one, default) for strategy, one in best.items()},
        ratio(best["auto"], best["random"]),
    )


def _search(spec: StudySpec, strategy: str, seconds: float, seed: int, store: str) -> Result:
    own = replace(
        spec,
        name=f"{spec.name}-{strategy}-{seed}",
        search=replace(spec.search, strategy=strategy, seed=seed, transfer=False),
    )
    return autotune.search(own, time=seconds, trials=10_000, store=store, cache=False)


def _side_by_side(
    spec: StudySpec, asked: Sequence[Configuration], seconds: float, seed: int, store: str
) -> dict[str, dict[int, float]]:
    """The readings of these and the default in the rounds of a finale: by configuration's hash and round."""
    default = spec.space.feasible_default()
    others = list(dict.fromkeys(one for one in asked if one != default))
    if not others:
        return {}
    own = replace(
        spec,
        name=f"{spec.name}-compared-{seed}",
        search=replace(spec.search, strategy="random", seed=seed, transfer=False, first=others),
        measure=replace(spec.measure, finalists=len(others), reject=False),
    )
    result = autotune.search(own, time=seconds, trials=1 + len(others), store=store)
    found: dict[str, dict[int, float]] = {}
    with Store.open(store) as opened:
        for purpose in ("default", "final"):
            for trial in opened.trials(result.study.id, purpose=purpose):
                for reading in opened.readings(trial.id):
                    counts = reading.metric == spec.goals[0].name and not reading.discarded
                    if (
                        counts and "process" not in reading.context
                    ):  # not everybody is read in fresh processes
                        found.setdefault(trial.hash, {})[int(reading.context["round"])] = reading.value
    return found


def rows(names: Sequence[str], seconds: float, seeds: Sequence[int], store: str) -> Iterator[str]:
    """Lines of the table, one search after the other, and at the end one of all."""
    ratios = []
    for name in names:
        for seed in seeds:
            one = compare(SPACES / f"{name}.yaml", seconds, seed, store)
            ratios += [one.auto_over_random] if one.auto_over_random else []
            cells = [
                name,
                str(seed),
                *(f"{one.tries[strategy]}" for strategy in STRATEGIES),
                *(_said(one.over_default[strategy]) for strategy in STRATEGIES),
                _said(one.auto_over_random),
            ]
            yield f"| {' | '.join(cells)} |"
    if len(ratios) > 1:
        together = (math.exp(x) for x in paired_shift([math.log(one.estimate) for one in ratios], 0.95))
        middle, low, high = together
        yield f"| all | | | | | | **{middle:.2f}** [{low:.2f}, {high:.2f}] |"


def _said(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", default=USUAL, help="names in searchspaces/, with commas")
    parser.add_argument("--time", type=float, default=60.0, help="seconds of each search")
    parser.add_argument("--seeds", type=int, default=1, help="how many searches of each space")
    parser.aside("--store", default="", help="where the studies are kept; default: nowhere")
    options = parser.read()
    names = known_names(options.spaces, "space", sorted(file.stem for file in SPACES.glob("*.yaml")))
    lines = head("space | seed | tries | random's | auto, over the default | random | auto over random")
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or f"{folder}/studies.db"
        for line in rows(names, options.time, range(options.seeds), store):
            print(line, flush=True)
            lines.append(line)
    about = (
        f"{software()}; {machine()}. Searches of {options.time:g} s each. Ratios above 1: better, by the"
        " metric of the space, with 95 % intervals, from readings in turns. Last line: the middle of the"
        " ratios."
    )
    publish(page("Searches beside random tries", options.command, about, lines), options.out)


if __name__ == "__main__":
    run_as_command(main)
