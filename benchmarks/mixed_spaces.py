"""Tuning real models with mixed and conditional knobs, beside other people's tuners.

    python -m benchmarks.mixed_spaces --methods auto,random,optuna-tpe,hebo --seeds 10 --jobs 2 \\
        --peer-python PEERS/bin/python --cache CACHE.jsonl --out RUNS.jsonl
    python -m benchmarks.mixed_report RUNS.jsonl --out benchmarks/results/mixed_spaces.md

The tasks are those of :mod:`benchmarks.mixed_tasks`; with ``--ranges`` those of
:mod:`benchmarks.range_tasks`, whose knobs are all ranges; with ``--recorded`` those of
:mod:`benchmarks.recorded_tasks`, trainings of neural networks that others have recorded. Every method has
``--trials`` trials, of which the first is the default configuration for all: autotune begins with it, and
peers are told of it. Each search becomes a line of RUNS.jsonl::

    {"task": ..., "method": ..., "seed": ..., "seconds": ..., "on": ..., "losses": [...]}

with the losses in the order tried, ``null`` where training failed, and the processor time of the method's
asks and tells. Lines that are there are kept and not run again, so a method can be run alone and added.
Training is deterministic; ``--cache`` keeps the loss of every configuration that was trained, for the next
run.

Optuna's TPE and SMAC3 are given the conditions; the others know none and are given the flat space,
where the value of a knob that does not exist has no effect.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import cast

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy, strategy_class
from autotune.space.configuration import Configuration, plain
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.kept import add_line, kept_lines
from benchmarks.mixed_tasks import TASKS, Task
from benchmarks.peers.client import Found, find_all, is_peer, kept
from benchmarks.peers.described import described
from benchmarks.range_tasks import RANGE_TASKS
from benchmarks.recorded_tasks import RECORDED_TASKS, RecordedTask
from benchmarks.running import (
    append_lines,
    at_least_one,
    known_names,
    one_thread_each,
    run_as_command,
    split_names,
)

ALL_TASKS: Mapping[str, Task | RecordedTask] = {**TASKS, **RANGE_TASKS, **RECORDED_TASKS}
METHODS = "auto,random,optuna-tpe,optuna-mtpe,optuna-gp,skopt-gp,smac,hebo"
TRIALS = 60


class Losses:
    """The losses of a task's configurations, trained once where a cache file is given.

    The file is shared: each loss is one line, written by one call, so that processes may add to it at once.
    """

    def __init__(self, task: Task | RecordedTask, path: Path | None) -> None:
        self.task = task
        self._path = path
        lines = kept_lines(path) if path is not None else []
        self._known: dict[str, float | None] = {
            line["configuration"]: line["loss"] for line in lines if line["task"] == task.name
        }

    def of(self, configuration: Configuration) -> float | None:
        key = configuration.hash
        if key not in self._known:
            self._known[key] = self.task.loss(configuration)
            if self._path is not None:
                line = {"task": self.task.name, "configuration": key, "loss": self._known[key]}
                add_line(self._path, line)
        return self._known[key]


@dataclass(frozen=True)
class Search:
    """One method on one task with one seed."""

    task: str
    method: str
    seed: int
    trials: int
    cache: Path | None
    peer: Found | None = None


def run(search: Search) -> dict[str, object]:
    """One line of the output."""
    losses = _losses(search.task, search.cache)
    losses_seen, seconds = _run_own(search, losses) if search.peer is None else _run_peer(search, losses)
    on = f"autotune {version('autotune')}" if search.peer is None else search.peer.on
    head = {"task": search.task, "method": search.method, "seed": search.seed}
    return {**head, "seconds": round(seconds, 4), "on": on, "losses": losses_seen}


@cache
def _losses(task: str, path: Path | None) -> Losses:
    return Losses(ALL_TASKS[task], path)


def _run_own(search: Search, losses: Losses) -> tuple[list[float | None], float]:
    """What one of autotune's strategies found, and the processor time that it took."""
    problem = Problem(ALL_TASKS[search.task].space, (MetricSpec("loss", "minimize", ""),), search.trials)
    seen: list[float | None] = []
    began = time.process_time()
    strategy = make_strategy(search.method, problem, search.seed)
    seconds = time.process_time() - began
    while len(seen) < search.trials:
        began = time.process_time()
        (proposal,) = strategy.ask(1)
        seconds += time.process_time() - began
        loss = losses.of(proposal.configuration)
        seen.append(loss)
        began = time.process_time()
        strategy.tell([_observation(proposal.configuration, loss)])
        seconds += time.process_time() - began
    return seen, seconds


def _observation(configuration: Configuration, loss: float | None) -> Observation:
    if loss is None:
        return Observation(configuration, Status.DIVERGED)
    return Observation(configuration, Status.OK, {"loss": loss})


def _run_peer(search: Search, losses: Losses) -> tuple[list[float | None], float]:
    space = ALL_TASKS[search.task].space
    assert search.peer is not None
    client = kept(search.peer)
    client.start(described(space), search.seed, search.trials)
    default = space.default()
    seen = [losses.of(default)]
    values = {knob.name: plain(knob.default) for knob in space.knobs}
    if client.conditional:
        values = {name: values[name] for name in default}
    client.tell([(values, seen[0])])
    while len(seen) < search.trials:
        values = client.ask()
        seen.append(losses.of(_effective(space, values)))
        client.tell([(values, seen[-1])])
    return seen, client.seconds


def _effective(space: Space, values: dict[str, object]) -> Configuration:
    """The configuration that these values amount to: those of knobs that do not exist are left out."""
    return space.configuration({name: values[name] for name in space.active(values)})  # type: ignore[arg-type]


def searches(options: argparse.Namespace, peers: dict[str, Found]) -> Iterator[Search]:
    """Every search that the options ask for, that can run and that the output does not hold yet."""
    done = {(line["task"], line["method"], line["seed"]) for line in kept_lines(options.out)}
    seeds = range(options.first, options.first + options.seeds)
    for method, task, seed in product(options.methods, options.tasks, seeds):
        if (task, method, seed) in done or (is_peer(method) and method not in peers):
            continue
        yield Search(task, method, seed, options.trials, options.cache, peers.get(method))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", default=METHODS, help="autotune's strategies, and peers")
    tasks = parser.add_mutually_exclusive_group()
    tasks.add_argument("--tasks", default=",".join(TASKS), help=f"of {', '.join(TASKS)}")
    tasks.add_argument("--ranges", action="store_true", help="tasks whose knobs are all ranges")
    tasks.add_argument("--recorded", action="store_true", help="recorded trainings of neural networks")
    parser.add_argument("--seeds", type=at_least_one, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--trials", type=at_least_one, default=TRIALS, help="of each search; OUT holds one number of them"
    )
    parser.add_argument("--peer-python", action="append", default=[], help="an interpreter that has peers")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, help="losses of configurations, read and added to")
    parser.add_argument("--out", type=Path, required=True, help="written to line by line, and added to")
    options = parser.parse_args()
    options.methods = split_names(options.methods)
    for name in options.methods:
        if not is_peer(name):
            strategy_class(name)
    options.tasks = _tasks(options)
    return options


def _tasks(options: argparse.Namespace) -> list[str]:
    if options.ranges:
        return list(RANGE_TASKS)
    if options.recorded:
        return list(RECORDED_TASKS)
    return known_names(options.tasks, "task", TASKS)


def _figure(line: Mapping[str, object]) -> str:
    losses = cast(list[float | None], line["losses"])
    best = min((loss for loss in losses if loss is not None), default=None)
    return f"{best} in {line['seconds']} s"


def main() -> int:
    one_thread_each()
    options = arguments()
    needed = {name: name for name in options.methods if is_peer(name)}
    peers, missing = find_all(needed, options.peer_python)
    return append_lines(
        run,
        list(searches(options, peers)),
        options.jobs,
        options.out,
        named=lambda search: f"{search.method} {search.task} seed {search.seed}",
        figure=_figure,
        missing=missing,
    )


if __name__ == "__main__":
    run_as_command(main)
