"""How few tries each strategy needs, on spaces that were measured exhaustively on real GPUs.

    python -m benchmarks.search_efficiency --spaces DIR --strategies a,b --seeds N --jobs J --out RUNS.jsonl

DIR holds recordings (Kernel Tuner cache files or T4, gzipped or not). A strategy is offered exactly the
recorded configurations, is told the recorded time of each that it asks for, or how it failed, and
stops after ``--tries``. Each search becomes a line of RUNS.jsonl::

    {"space": ..., "strategy": ..., "seed": ..., "seconds": ..., "configs": [{knob: value}, ...]}

where ``seconds`` is the processor time that the strategy took for all its asks and tells. The recording is
not consulted otherwise: the lines can be judged by whoever has it. Lines that RUNS.jsonl already has
are kept and not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.measure.recording import Entry, Recording, read_recording
from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy, strategy_names
from autotune.space.configuration import Value, plain
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec

TRIES = 220
"""The largest budget at which searches on recorded spaces are judged."""
ENDINGS = (".json.gz", ".json")


@dataclass(frozen=True)
class Search:
    """One search to run: a strategy on a recording, with a seed and so many trials in flight."""

    recording: Path
    strategy: str
    seed: int
    tries: int = TRIES
    flight: int = 1

    @property
    def space(self) -> str:
        return space_name(self.recording)


def space_name(recording: Path) -> str:
    """The file's name without its ending."""
    ending = next((e for e in ENDINGS if recording.name.endswith(e)), "")
    return recording.name.removesuffix(ending)


def recorded_space(recording: Recording) -> Space:
    """The space in which exactly the recorded configurations exist.

    A knob with a single value carries no information and is left out. Numbers are taken to be ordered;
    texts, and flags written as true and false, are choices.
    """
    knobs = [_knob(name, values) for name, values in recording.knobs.items() if len(values) > 1]
    names = [knob.name for knob in knobs]
    rows = [{name: entry.configuration[name] for name in names} for entry in recording.entries]
    return Space(knobs).limited_to(rows)


def _knob(name: str, values: tuple[Value, ...]) -> Choice | Flag | OrderedValues:
    if all(isinstance(value, bool) for value in values):
        return Flag(name)
    if any(isinstance(value, str) for value in values):
        return Choice(name, values)
    return OrderedValues(name, tuple(sorted(values)))  # type: ignore[type-var]


@lru_cache(maxsize=1)
def _opened(path: Path) -> tuple[Recording, Space]:
    recording = read_recording(path)
    return recording, recorded_space(recording)


def run(search: Search) -> dict[str, object]:
    """One line of the output: run ``search`` and say what it tried, in order."""
    recording, space = _opened(search.recording)
    problem = Problem(space, (MetricSpec("time", "minimize", "s"),), search.tries)
    tried: list[Mapping[str, object]] = []
    began = time.process_time()
    strategy = make_strategy(search.strategy, problem, search.seed)
    flying: list[Observation] = []
    while len(tried) < search.tries:
        proposals = strategy.ask(min(search.flight - len(flying), search.tries - len(tried)))
        for proposal in proposals:
            entry = recording.find(proposal.configuration)
            assert entry is not None, f"{search.strategy} proposed what is not recorded"
            tried.append({name: plain(value) for name, value in proposal.configuration.items()})
            flying.append(_observation(proposal.configuration, entry))
        if not flying:
            break
        strategy.tell([flying.pop(0)])
    seconds = time.process_time() - began
    head = {"space": search.space, "strategy": _label(search), "seed": search.seed}
    return {**head, "seconds": round(seconds, 4), "configs": tried}


def _observation(configuration: object, entry: Entry) -> Observation:
    metrics = {} if entry.time is None else {"time": entry.time}
    return Observation(configuration, entry.status, metrics)  # type: ignore[arg-type]


def _label(search: Search) -> str:
    return search.strategy if search.flight == 1 else f"{search.strategy}@{search.flight}"


def searches(options: argparse.Namespace) -> Iterator[Search]:
    """Every search that the options ask for and that the output does not hold yet."""
    done = set()
    if options.out.exists():
        lines = map(json.loads, options.out.read_text().splitlines())
        done = {(line["space"], line["strategy"], line["seed"]) for line in lines}
    for recording, strategy, seed in product(options.recordings, options.strategies, range(options.seeds)):
        search = Search(recording, strategy, seed, options.tries, options.flight)
        if (search.space, _label(search), seed) not in done:
            yield search


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--strategies", default="auto", help=f"of {', '.join(strategy_names())}")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to N-1")
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--flight", type=int, default=1, help="trials in flight at a time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, required=True, help="written to line by line, and added to")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    options.strategies = options.strategies.split(",")
    options.recordings = sorted(
        path
        for path in options.spaces.iterdir()
        if path.name.endswith(ENDINGS) and ".t4." not in path.name and (not only or space_name(path) in only)
    )
    return options


def main() -> None:
    # One thread a search: the searches themselves run beside one another. Spawned workers read this
    # when they load their linear algebra; forked ones would inherit what is loaded already.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    options = arguments()
    if not options.recordings:
        raise SystemExit(f"there is no recording in {options.spaces}")
    todo = list(searches(options))
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool, options.out.open("a") as out:
        for number, future in enumerate(as_completed([pool.submit(run, s) for s in todo]), 1):
            line = future.result()
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(f"{number}/{len(todo)} {line['strategy']} {line['space']} {line['seconds']} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except AutotuneError as error:
        raise SystemExit(str(error)) from None
