"""Searches of how to train: the best validation loss after so much time, against other tuners.

    python -m benchmarks.training --seeds 5 --first 100 --seconds 60 --ray --out training.md

Three real trainings (``digits-mlp``, ``digits-cnn``, ``language-model``), each searched for the same wall
time by autotune (``bayes`` with the policy of early stopping that the space files have), random search,
Optuna's TPE with its Hyperband pruner and, with ``--ray``, Ray Tune's ASHA. Each search is a process of its
own (:mod:`benchmarks.training_ways`), which trains one configuration at a time with one thread and may do
what else it does on the other cores, and runs alone: ways and spaces take turns within a seed, so that what
drifts on the machine falls on all. What was run is kept in ``--kept``, and not run again.

A loss counts when it is reported, by whatever training. *Level* is the loss that random search has at the
end, its median over the seeds; who does not get there in time is counted with the whole time.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept import add_line, kept_lines
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command
from benchmarks.training_chart import chart
from benchmarks.training_ways import WAYS

SPACES = ("digits-mlp", "digits-cnn", "language-model")
ALWAYS = ("autotune", "random", "optuna")
GRACE = 120.0
"""A process that has not ended so many seconds after its time is killed."""

Line = Mapping[str, Any]


def best_at(line: Line, seconds: float) -> float:
    """The best loss so far; infinity before the first."""
    return min((loss for at, loss in line["improved"] if at <= seconds), default=float("inf"))


def time_to(line: Line, level: float) -> float | None:
    """Seconds until a loss of ``level`` or less; a training that ends after the time counts for nobody."""
    return next((at for at, loss in line["improved"] if loss <= level and at <= line["seconds"]), None)


def level_of(lines: Sequence[Line], space: str) -> float | None:
    """What random search has at the end, the median over the seeds; ``None`` where that is nothing."""
    ends = [best_at(x, x["seconds"]) for x in lines if (x["space"], x["way"]) == (space, "random")]
    level = statistics.median(ends) if ends else math.inf
    return level if math.isfinite(level) else None


def table(lines: Sequence[Line], seconds: float) -> list[str]:
    """A row for each space and way; means over the seeds."""
    rows = head(
        "space | way | seeds | loss at a third | at two thirds | at the end | s to the level | there"
        " | trainings begun | steps"
    )
    for space in SPACES:
        level = level_of(lines, space)
        for way in dict.fromkeys(x["way"] for x in lines):
            runs = [x for x in lines if (x["space"], x["way"]) == (space, way)]
            if not runs:
                continue
            losses = [
                statistics.mean(best_at(x, part * seconds) for x in runs) for part in (1 / 3, 2 / 3, 1.0)
            ]
            times = [time_to(x, level) if level is not None else None for x in runs]
            waited = statistics.mean(seconds if t is None else t for t in times)
            rows.append(
                f"| {space} | {way} | {len(runs)} | "
                + " | ".join(f"{loss:.4f}" for loss in losses)
                + f" | {waited:.0f} | {sum(t is not None for t in times)}/{len(runs)}"
                + f" | {statistics.mean(x['trials'] for x in runs):.0f}"
                + f" | {statistics.mean(x['steps'] for x in runs):.0f} |"
            )
    return rows


def overall(lines: Sequence[Line], seconds: float) -> list[str]:
    """How much sooner or later than random search each way is at its level, over all spaces."""
    rows = head("way | time to the level, of random's | the end, of random's loss")
    for way in dict.fromkeys(x["way"] for x in lines):
        times, ends = [], []
        for space in SPACES:
            level = level_of(lines, space)
            own = [x for x in lines if (x["space"], x["way"]) == (space, way)]
            random = [x for x in lines if (x["space"], x["way"]) == (space, "random")]
            if level is None or not own:
                continue
            waits = [
                [seconds if (t := time_to(x, level)) is None else t for x in runs] for runs in (own, random)
            ]
            times.append(statistics.mean(waits[0]) / statistics.mean(waits[1]))
            ends.append(statistics.mean(best_at(x, seconds) for x in own) / level)
        if times:
            rows.append(f"| {way} | {statistics.mean(times):.2f} | {statistics.mean(ends):.2f} |")
    return rows


def run(task: Mapping[str, Any]) -> Line | None:
    """One search, in a process of its own; ``None`` where it failed, which is said."""
    command = [sys.executable, "-m", "benchmarks.training_ways", json.dumps(task)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=task["seconds"] + GRACE)
    except subprocess.TimeoutExpired:
        print(f"{task}: not ended {GRACE:.0f} s after its time", flush=True)
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode or not lines:
        print(f"{task}: {ended.stderr[-2000:]}", flush=True)
        return None
    found: Line = json.loads(lines[-1])
    return found


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--seeds", type=at_least_one, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=90.0, help="of each search")
    parser.add_argument("--spaces", nargs="+", default=list(SPACES), choices=SPACES)
    parser.add_argument("--ways", nargs="+", default=list(ALWAYS), choices=WAYS)
    parser.add_argument("--ray", action="store_true", help="Ray Tune's ASHA too, where Ray is installed")
    parser.aside("--kept", type=Path, default=Path("training.jsonl"), help="what was run so far")
    options = parser.read()
    ways = [*options.ways, *(["ray"] if options.ray and "ray" not in options.ways else [])]
    lines: list[Line] = [line for line in kept_lines(options.kept) if line["seconds"] == options.seconds]
    done = {(x["space"], x["way"], x["seed"]) for x in lines}
    for seed in range(options.first, options.first + options.seeds):
        for space in options.spaces:
            for way in ways[seed % len(ways) :] + ways[: seed % len(ways)]:
                if (space, way, seed) in done:
                    continue
                task = {"space": space, "way": way, "seed": seed}
                line = run({**task, "seconds": options.seconds})
                if line is None:
                    continue
                lines.append(line)
                add_line(options.kept, line)
                print(
                    task, f"{best_at(line, options.seconds):.4f}", line["trials"], line["steps"], flush=True
                )
    lines.sort(key=lambda x: (ways.index(x["way"]) if x["way"] in ways else len(ways), x["seed"]))
    parts = report(lines, options.seconds)
    if options.out:
        drawing = options.out.with_suffix(".svg")
        parts.append(f"![The best validation loss over time, medians over the seeds]({drawing.name})")
    publish(page("Searches of how to train", options.command, *parts), options.out)
    if options.out:
        drawing.write_text(chart(lines, SPACES, options.seconds))


def report(lines: Sequence[Line], seconds: float) -> list[str | list[str]]:
    """The parts of the page."""
    about = (
        f"{software('torch', 'optuna', 'ray')}; {machine()}."
        f" {seconds:g} s of wall time each, one training at a time, of one thread. Losses"
        " are on the validation part, the best that any training had reported; means over the seeds."
    )
    return [about, overall(lines, seconds), table(lines, seconds)]


if __name__ == "__main__":
    run_as_command(main)
