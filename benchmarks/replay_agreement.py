"""Does a replay agree where nothing has changed, and does it notice where something has?

    OMP_NUM_THREADS=1 python -m benchmarks.replay_agreement --repeats 20 --out FILE

A short search of ``gemm-c``, then its trials replayed in turn: first as the machine is, then with a program
that computes without end on the very core that is measured on. Beside the answer of ``autotune replay``, what
the intervals alone would have said, without the spread of runs. What was done stands in ``--work`` and is not
done again: to begin anew, remove that folder.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import autotune
from autotune.measure.cores.turns import find_place
from autotune.session.reproduction.replaying import replay
from autotune.session.reproduction.replicates import apart
from autotune.status import Status
from autotune.store.store import Store
from benchmarks.kept import add_line, kept_lines
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command

SPACE = "searchspaces/gemm-c.yaml"
QUIET, SLOWED = "as it is", "slowed"

Line = Mapping[str, Any]


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--repeats", type=int, default=20, help="replays with the machine as it is")
    parser.add_argument("--slowed", type=int, default=5, help="replays with a hog on the measuring core")
    parser.add_argument("--trials", type=at_least_one, default=12, help="trials of the search")
    parser.aside("--work", type=Path, default=Path("results/replay_agreement"))
    asked = parser.read()
    asked.work.mkdir(parents=True, exist_ok=True)
    store, done = asked.work / "study.db", asked.work / "replays.jsonl"
    autotune.search(SPACE, trials=asked.trials, store=store)
    lines: list[Line] = list(kept_lines(done))
    for state, wanted in ((QUIET, asked.repeats), (SLOWED, asked.slowed)):
        for number in range(sum(line["state"] == state for line in lines), wanted):
            with hogged(state == SLOWED):
                line = one(store, state, number)
            lines.append(line)
            add_line(done, line)
            print(f"{state} {number + 1}/{wanted}: trial {line['trial']} {line['verdict']}", flush=True)
    publish(table(lines, f"OMP_NUM_THREADS=1 {asked.command}"), asked.out)


def one(store: Path, state: str, number: int) -> Line:
    """Replay the next of the study's successful trials; nothing is kept, so that all have the same past."""
    with Store.open(store, readonly=True) as opened:
        trials = opened.trials(opened.study().id, purpose="search", status=Status.OK)
    trial = trials[number % len(trials)]
    began = time.perf_counter()
    answer = replay(str(store), trial.id, keep=False)
    result = answer.result
    then, now = result.then["metric"], result.now["metric"]
    return {
        "state": state,
        "trial": trial.number,
        "verdict": result.verdict,
        "alone": "differs" if apart(then, now, 0.01) else "agrees",
        "then": then[0],
        "now": now[0],
        "noticeable": result.noticeable,
        "causes": list(answer.causes),
        "load": os.getloadavg()[0],
        "seconds": time.perf_counter() - began,
        "at": time.time(),
    }


@contextmanager
def hogged(wanted: bool) -> Iterator[None]:
    """A program that computes without end, pinned to the core that a search measures on."""
    if not wanted:
        yield
        return
    place = find_place(1)
    cores = place.cores.measuring
    place.close()
    text = f"import os; os.sched_setaffinity(0, {set(cores)!r})\nwhile True: pass"
    hog = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


def table(lines: Sequence[Line], command: str) -> str:
    """The result as Markdown."""
    about = (
        "Trials of a short search of `gemm-c`, each measured again in five runs of up to twelve rounds."
        " *Intervals alone*: what the rule would say that takes the interval of a trial's own readings, and"
        " 1 %, for all that may change. *Slowed*: a program computes without end on the measuring core."
    )
    rows = head(
        "machine | replays | agree | differ | cannot be told | agree by intervals alone"
        " | now / then, median (least to most) | noticeable, median | load, median | seconds each"
    )
    rows += [row(state, [line for line in lines if line["state"] == state]) for state in (QUIET, SLOWED)]
    said = sorted({cause for line in lines if line["state"] == SLOWED for cause in line["causes"]})
    causes = [f"* {cause}" for cause in said[:8]]
    on = f"{machine()}, {software()}. {span(lines)}"
    why = "What was said to be the cause, of the slowed ones:"
    return page("Does a replay agree?", command, on, about, rows, why, causes)


def row(state: str, lines: Sequence[Line]) -> str:
    if not lines:
        return f"| {state} | 0 | | | | | | | | |"
    ratios = [line["now"] / line["then"] for line in lines]
    answers = Counter(line["verdict"] for line in lines)
    found = " | ".join(str(answers[answer]) for answer in ("agrees", "differs", "cannot be told"))
    alone = sum(line["alone"] == "agrees" for line in lines)
    middle = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    noticeable = statistics.median(line["noticeable"] or 0.0 for line in lines)
    load, seconds = (statistics.median(line[name] for line in lines) for name in ("load", "seconds"))
    return (
        f"| {state} | {len(lines)} | {found} | {alone} | {middle} | {noticeable:.1%} | {load:.1f}"
        f" | {seconds:.1f} |"
    )


def span(lines: Sequence[Line]) -> str:
    hours = (max(line["at"] for line in lines) - min(line["at"] for line in lines)) / 3600 if lines else 0.0
    return f"The replays were spread over {hours:.1f} hours."


if __name__ == "__main__":
    run_as_command(main)
