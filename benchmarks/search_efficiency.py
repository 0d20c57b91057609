"""How few tries each strategy needs, on spaces that were measured exhaustively on real GPUs.

    python -m benchmarks.search_efficiency --spaces DIR --strategies a,b --seeds N --jobs J --out RUNS.jsonl

DIR holds recordings (Kernel Tuner cache files or T4, gzipped or not; what cannot be read is named at the
end). A strategy is offered exactly the recorded configurations, is told the recorded time of each that it
asks for, or how it failed, and stops after ``--tries``. Each search becomes a line of RUNS.jsonl::

    {"space": ..., "strategy": ..., "seed": ..., "seconds": ..., "on": ..., "configs": [{knob: value}, ...]}

where ``seconds`` is the processor time that the strategy took for all its asks and tells, and ``on`` the
versions it ran on. The recording is not consulted otherwise: the lines can be judged by whoever has it
(``python -m benchmarks.report_efficiency``). Lines that RUNS.jsonl already has are kept and not run again.

``NAME@8`` keeps eight trials in flight. Other people's tuners run beside ours under these names:
``kt-STRATEGY`` (Kernel Tuner's simulation mode), ``optuna-tpe``, ``optuna-mtpe``, ``optuna-gp``,
``skopt-gp``, ``skopt-et``, ``skopt-rf``, ``hebo``, ``smac``. They need ``pip install -e '.[peers]'``, in
this environment or another: ``--peer-python`` names its interpreter, may be given several times, and a
peer takes the first that has it. A peer that nobody has is named at the end, and the exit code is 1.

Each peer is run with its defaults, up to the budget at which the space is judged (some anneal over their
budget). A proposal that is not recorded is told to Optuna and SMAC3 as a failure; with ``-r``
(``optuna-tpe-r``), and always for skopt and HEBO, a random new configuration takes its place, as it does of
a repeat. ``own:optuna-tpe`` is autotune's strategy of that name, which keeps Optuna's sampler inside the
feasible set.

``--transfer`` lets our strategies learn from the other recordings of the same kernel (the names are alike up
to the first ``-``); :mod:`benchmarks.known_elsewhere` says how. The strategy is then called ``NAME+SOURCES``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path

from autotune.errors import InputError
from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy, strategy_class, strategy_names
from autotune.space.configuration import plain
from autotune.space.spec import MetricSpec
from benchmarks.kept import kept_lines
from benchmarks.known_elsewhere import MISLEADING, Elsewhere
from benchmarks.peers import recorded
from benchmarks.peers.client import Found, find_all, is_peer
from benchmarks.recorded_spaces import observed, opened, recordings, space_name
from benchmarks.running import append_lines, at_least_one, one_thread_each, run_as_command, split_names
from benchmarks.score import Judge

TRIES = 220
"""The largest budget at which searches on recorded spaces are judged."""
OWN = "own:"
"""Before a name: autotune's strategy, where a peer has the same name."""


@dataclass(frozen=True)
class Search:
    """One search to run: a strategy on a recording, with a seed and so many trials in flight."""

    recording: Path
    strategy: str
    seed: int
    tries: int = TRIES
    flight: int = 1
    peer: Found | None = None
    elsewhere: Elsewhere | None = None

    @property
    def space(self) -> str:
        return space_name(self.recording)

    @property
    def label(self) -> str:
        name = self.strategy if self.elsewhere is None else f"{self.strategy}+{self.elsewhere.label}"
        return name if self.flight == 1 else f"{name}@{self.flight}"


def run(search: Search) -> dict[str, object]:
    """One line of the output: run ``search`` and say what it tried, in order."""
    if search.peer is None:
        tried, seconds = _run_own(search)
        on = f"autotune {version('autotune')}"
    else:
        recording, space = opened(search.recording)
        tries = min(search.tries, Judge(recording).budget)
        _, replace = recorded.split(search.strategy)
        tried, seconds = recorded.search(search.peer, recording, space, search.seed, tries, replace)
        on = search.peer.on
    head = {"space": search.space, "strategy": search.label, "seed": search.seed}
    return {**head, "seconds": round(seconds, 4), "on": on, "configs": tried}


def _run_own(search: Search) -> tuple[list[dict[str, object]], float]:
    """What one of autotune's strategies tried, and the processor time that it took."""
    recording, space = opened(search.recording)
    # A recording has no default: nobody uses the first value of each knob.
    metrics = (MetricSpec("time", "minimize", "s"),)
    sources = search.elsewhere.sources(search, run) if search.elsewhere else ()
    problem = Problem(space, metrics, search.tries, default_first=False, sources=sources)
    tried: list[dict[str, object]] = []
    began = time.process_time()
    strategy = make_strategy(search.strategy.removeprefix(OWN), problem, search.seed)
    flying: list[Observation] = []
    while len(tried) < search.tries:
        proposals = strategy.ask(min(search.flight - len(flying), search.tries - len(tried)))
        for proposal in proposals:
            tried.append({name: plain(value) for name, value in proposal.configuration.items()})
            flying.append(observed(recording, proposal.configuration, reason=proposal.reason))
        if not flying:
            break
        strategy.tell([flying.pop(0)])
    return tried, time.process_time() - began


def searches(options: argparse.Namespace, peers: Mapping[str, Found]) -> Iterator[Search]:
    """Every search that the options ask for, that can run and that the output does not hold yet."""
    done = {(line["space"], line["strategy"], line["seed"]) for line in kept_lines(options.out)}
    for recording, wanted, seed in product(options.recordings, options.strategies, range(options.seeds)):
        strategy, flight = _in_flight(wanted)
        if is_peer(recorded.split(strategy)[0]):
            if strategy not in peers:
                continue
            search = Search(recording, strategy, seed, options.tries, peer=peers[strategy])
        else:
            search = Search(recording, strategy, seed, options.tries, flight, elsewhere=options.elsewhere)
        if (search.space, search.label, seed) not in done:
            yield search


def strategies(text: str) -> list[str]:
    """The strategies and peers that are named in ``text``; :class:`InputError` where one is neither."""
    names = split_names(text)
    if not names:
        raise InputError("no strategy is named")
    for name in names:
        strategy, _ = _in_flight(name)
        if not is_peer(recorded.split(strategy)[0]):
            strategy_class(strategy.removeprefix(OWN))
        elif strategy != name:
            raise InputError(f"{strategy} is a peer, which has one trial in flight: expected {strategy!r}")
    return names


def none_or_more(text: str) -> int:
    """What an option is read with that counts, or is 0."""
    return 0 if text == "0" else at_least_one(text)


def _in_flight(name: str) -> tuple[str, int]:
    """A strategy, and after ``@`` how many trials it has in flight; 1 where that is not said."""
    strategy, at, count = name.partition("@")
    if at and not (count.isdecimal() and int(count)):
        raise InputError(f"{name!r} does not say how many trials are in flight: expected {strategy}@8, say")
    return strategy, int(count or 1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--strategies", default="auto", help=f"of {', '.join(strategy_names())}, and peers")
    parser.add_argument("--seeds", type=at_least_one, default=5, help="seeds 0 to N-1")
    parser.add_argument(
        "--tries", type=at_least_one, default=TRIES, help="of each search; OUT holds one number of them"
    )
    parser.add_argument("--transfer", action="store_true", help="learn from other recordings of the kernel")
    parser.add_argument(
        "--source-tries", type=none_or_more, default=TRIES, help="of each source's search; 0: all"
    )
    parser.add_argument("--misleading", default="", choices=MISLEADING, help="one more source: its times")
    parser.add_argument("--peer-python", action="append", default=[], help="an interpreter that has peers")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, required=True, help="written to line by line, and added to")
    options = parser.parse_args()
    options.strategies = strategies(options.strategies)
    options.recordings = [path for _, path in recordings(options.spaces, options.only)]
    options.elsewhere = None
    if options.transfer or options.misleading:
        others = tuple(path for _, path in recordings(options.spaces)) if options.transfer else ()
        options.elsewhere = Elsewhere(others, options.source_tries, options.misleading)
    return options


def main() -> int:
    one_thread_each()
    options = arguments()
    bases = {name: recorded.split(name)[0] for name in options.strategies}
    needed = {name: base for name, base in bases.items() if is_peer(base)}
    peers, missing = find_all(needed, options.peer_python)
    return append_lines(
        run,
        list(searches(options, peers)),
        options.jobs,
        options.out,
        named=lambda search: f"{search.label} {search.space} seed {search.seed}",
        figure=lambda line: f"{line['seconds']} s",
        missing=missing,
    )


if __name__ == "__main__":
    run_as_command(main)
