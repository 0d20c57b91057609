"""The table of searches that learn from earlier studies.

    python -m benchmarks.report_transfer RUNS.jsonl ... --spaces DIR --out benchmarks/results/transfer.md

RUNS.jsonl is what ``benchmarks.search_efficiency`` wrote with and without ``--transfer`` and
``--misleading``. What stands after the ``+`` of a strategy's name says where its sources came from. Each
search is judged by :mod:`benchmarks.score` and compared with the one of its seed that began from nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from benchmarks.kept import read_searches
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish
from benchmarks.report_efficiency import KEYS, judges_of, versions
from benchmarks.running import run_as_command
from benchmarks.score import Judge, Judgement

Line = Mapping[str, Any]
Verdicts = Mapping[int, Judgement]
"""By seed."""

SOURCES = {
    "": "none",
    "220": "the other GPUs",
    "220+negated": "the other GPUs and a negated one",
    "220+shuffled": "the other GPUs and a shuffled one",
    "negated": "a negated one alone",
    "shuffled": "a shuffled one alone",
    "all": "the other GPUs, all of each recording",
}
"""What stands after the ``+``, in words and in the order of the rows."""


def strategy_of(line: Line) -> str:
    """Whose search it was, whatever its sources; with ``@8`` where so many trials were in flight."""
    name, at, flight = str(line["strategy"]).partition("@")
    return name.partition("+")[0] + at + flight


def sources_of(line: Line) -> str:
    """Where its sources came from, as it stands in :data:`SOURCES`; empty for none."""
    return str(line["strategy"]).partition("@")[0].partition("+")[2]


def judged(lines: Iterable[Line], judges: Mapping[str, Judge]) -> dict[tuple[str, str], dict[int, Judgement]]:
    """The verdicts by space and sources, on the searches of one strategy."""
    found: dict[tuple[str, str], dict[int, Judgement]] = defaultdict(dict)
    for line in lines:
        if line["space"] in judges:
            key = line["space"], sources_of(line)
            found[key][line["seed"]] = judges[line["space"]].judge(line["configs"])
    return found


def row(space: str, sources: str, verdicts: Verdicts, alone: Verdicts) -> str:
    """The difference in score from ``alone`` is over the seeds that both have, with its standard error."""
    scores = [v.score for v in verdicts.values()]
    both = [verdicts[seed].score - alone[seed].score for seed in verdicts if seed in alone]
    gain = f"{mean(both):+.3f} ± {stdev(both) / len(both) ** 0.5:.3f}" if sources and len(both) > 1 else ""
    first = [v.r10 for v in verdicts.values()]
    near = sum(r <= 1.05 for r in first)
    cells = [
        space,
        SOURCES.get(sources, sources),
        str(len(scores)),
        f"{median(first):.3f}",
        f"{near}/{len(first)}",
        f"{mean(scores):.3f}",
        gain,
    ]
    return f"| {' | '.join(cells)} |"


def table(found: Mapping[tuple[str, str], Verdicts]) -> list[str]:
    """A block of rows for each space: from nothing first."""
    order = {sources: place for place, sources in enumerate(SOURCES)}
    keys = sorted(found, key=lambda key: (key[0], order.get(key[1], len(order)), key[1]))
    return [
        *head("space | sources | seeds | best of 10 / optimum, median | within 5 % | score | gain"),
        *(row(space, sources, found[space, sources], found.get((space, ""), {})) for space, sources in keys),
    ]


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS.jsonl")
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--strategy", default="auto", help="whose searches; those of others are left out")
    options = parser.read()
    lines = [line for line in read_searches(options.runs, KEYS) if strategy_of(line) == options.strategy]
    if not lines:
        parser.error(f"no search was one of {options.strategy!r}")
    judges = judges_of(lines, options.spaces)
    about = (
        "Recorded kernels: a replay, no GPU was used here. A source is a search of 220 tries by "
        "`auto` on another GPU's recording of the kernel (twenty different ones, one a seed). A "
        "negated source says that the best is the worst, a shuffled one has its times exchanged at "
        "random. Beside others it is the first of them once more; alone it is all that the target's "
        "own recording holds. `score` is that of `benchmarks/score.py`; `gain` its difference from "
        "the search without sources, seed by seed, with the standard error of the mean."
    )
    parts = about, versions(lines), table(judged(lines, judges))
    publish(page("Learning from studies of other GPUs", options.command, *parts), options.out)


if __name__ == "__main__":
    run_as_command(main)
