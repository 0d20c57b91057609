"""How long a strategy thinks: processor time of ask and tell, beside Optuna's and scikit-optimize's samplers.

    python -m benchmarks.ask_latency --peer-python PEERS/bin/python --out benchmarks/results/ask_latency.md

The space is made for this: ten knobs of a tiled matrix product with the constraints of one, 18,474 feasible
configurations, and a formula for their times. A strategy is given 200, 1,000 or 10,000 random trials as
its history, and then asked and told for ``--cycles`` trials more. What counts is the median of the
processor time of one ask and its tell, on one thread; their mean is shown too, and the first ask after the
history, which may have to build a model from nothing, apart. Last comes a whole search of 220 trials.

A peer (``--peers``) is told the same history and the formula's times, and its proposals count whether
they are feasible or not. Each of its cells has ``--limit`` seconds of processor time, learning the history
included: where fewer trials than asked for were done by then, their number is shown; where not two
were, that it takes longer.

Exit code 1 where ``auto`` takes longer than its targets.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import mean, median
from threading import Event, Thread
from typing import Any

import numpy as np

from autotune.search.contract import Observation, Problem, Strategy
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration, Value, plain
from autotune.space.knobs import Flag, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.options import Options
from benchmarks.peers.client import Client, Found, PeerError, find
from benchmarks.peers.described import described
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, counts, run_as_command, split_names

HISTORIES = (200, 1_000, 10_000)
REPLAY = 220
TARGETS: Mapping[int, float] = {200: 5.0, 1_000: 15.0, 10_000: 50.0}
"""Milliseconds of ``auto`` by trials so far."""
REPLAY_TARGET = 2.0
"""Seconds of ``auto`` for a search of :data:`REPLAY` trials."""
POLL = 0.2
"""Seconds between two looks at what a peer has used."""


def product_space() -> Space:
    """A tiled matrix product: tiles are shared out among threads and vectors, and fit what holds them."""
    tiles, threads, vectors = (16, 32, 64, 128), (8, 16, 32), (1, 2, 4, 8)
    knobs = [
        OrderedValues("tile_m", tiles),
        OrderedValues("tile_n", tiles),
        OrderedValues("tile_k", (16, 32)),
        OrderedValues("threads_m", threads),
        OrderedValues("threads_n", threads),
        OrderedValues("load_m", threads),
        OrderedValues("load_n", threads),
        OrderedValues("vector_m", vectors),
        OrderedValues("vector_n", vectors),
        Flag("staged"),
    ]
    constraints = [
        "tile_m % (threads_m * vector_m) == 0",
        "tile_n % (threads_n * vector_n) == 0",
        "tile_m % (load_m * vector_m) == 0",
        "tile_n % (load_n * vector_n) == 0",
        "tile_m * tile_n <= 64 * threads_m * threads_n",
        "not staged or (tile_m + tile_n) * tile_k * 4 <= 24576",
    ]
    return Space(knobs, constraints)


def seconds_of(values: Mapping[str, Value]) -> float:
    """A time for a configuration: a bowl over the logarithms of the knobs, tilted and rippled."""
    place = {name: math.log2(float(value) + 1) for name, value in values.items()}  # type: ignore[arg-type]
    reuse = place["tile_m"] + place["tile_n"] - 12.1
    balance = place["threads_m"] - place["threads_n"]
    vectors = place["vector_m"] * place["vector_n"] - 3.7
    staged = 0.3 * place["staged"] * (place["tile_k"] - 4.6)
    ripple = math.sin(7 * place["load_m"] + 5 * place["load_n"] + 3 * place["tile_k"])
    return 1e-3 * math.exp(0.1 * reuse**2 + 0.05 * balance**2 + 0.04 * vectors**2 - staged + 0.05 * ripple)


@dataclass(frozen=True)
class Cell:
    """What one strategy took with one history, in ms of processor time."""

    first: float
    cycles: tuple[float, ...]
    """One entry an ask with its tell, after the first."""
    wanted: int

    def __str__(self) -> str:
        done = f", {len(self.cycles)} trials" if len(self.cycles) < self.wanted else ""
        rest = f"mean {number(mean(self.cycles))}, first {number(self.first)}{done}"
        return f"{number(self.typical)} ({rest})"

    @property
    def typical(self) -> float:
        return median(self.cycles)


# --- autotune's strategies, each cell in a process of its own ------------------------------------------


def own_cell(name: str, history: int, cycles: int) -> Cell:
    strategy, space = _made(name, history + cycles + 1)
    rng = np.random.default_rng(history)
    drawn = space.feasible.sample(rng, 3 * history)
    distinct = {c.hash: c for c in map(space.configuration, drawn)}
    told = [_observation(configuration) for configuration in list(distinct.values())[:history]]
    if len(told) < history:
        rest = (space.configuration(values) for values in space.feasible)
        fresh = (c for c in rest if c.hash not in distinct)
        told += [_observation(c) for c, _ in zip(fresh, range(history - len(told)), strict=False)]
    strategy.restore(history, [], [_observation(space.default()), *told[:-1]])
    taken = [_cycle(strategy) for _ in range(cycles + 1)]
    return Cell(1e3 * taken[0], tuple(1e3 * seconds for seconds in taken[1:]), cycles)


def own_replay(name: str) -> float:
    strategy, _ = _made(name, REPLAY)
    return sum(_cycle(strategy) for _ in range(REPLAY))


def _made(name: str, budget: int) -> tuple[Strategy, Space]:
    space = product_space()
    space.feasible  # noqa: B018 (built once in a session, before the first ask)
    return make_strategy(name, Problem(space, (MetricSpec("time", "minimize", "s"),), budget), 0), space


def _cycle(strategy: Strategy) -> float:
    began = time.process_time()
    (proposal,) = strategy.ask(1)
    asked = time.process_time() - began
    observation = _observation(proposal.configuration)
    began = time.process_time()
    strategy.tell([observation])
    return asked + time.process_time() - began


def _observation(configuration: Configuration) -> Observation:
    return Observation(configuration, Status.OK, {"time": seconds_of(configuration)})


# --- peers -------------------------------------------------------------------------------------------


def peer_cell(found: Found, history: int, cycles: int, limit: float) -> Cell | None:
    """``None`` where the limit passed before two trials were done."""
    space = product_space()
    drawn = space.sample(np.random.default_rng(history), history)
    told = [({k: plain(v) for k, v in c.items()}, seconds_of(c)) for c in drawn]
    taken: list[float] = []
    with Client(found) as client, limited(client, limit):
        client.start(described(space), 0, history + cycles)
        client.tell(told)
        for _ in range(cycles + 1):
            taken.append(_peer_cycle(client))
    if len(taken) < 2:
        return None
    return Cell(1e3 * taken[0], tuple(1e3 * seconds for seconds in taken[1:]), cycles)


def peer_replay(found: Found, limit: float) -> float | None:
    with Client(found) as client, limited(client, limit):
        client.start(described(product_space()), 0, REPLAY)
        return sum(_peer_cycle(client) for _ in range(REPLAY))
    return None


@contextmanager
def limited(client: Client, limit: float) -> Iterator[None]:
    """Ends the peer, and what is done with it, once it has used ``limit`` seconds of processor time."""
    over = Event()
    done = Event()

    def watch() -> None:
        while not done.wait(POLL):
            if client.used() > limit:
                over.set()
                client.kill()
                return

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    except PeerError:
        if not over.is_set():
            raise
    finally:
        done.set()
        watcher.join()


def _peer_cycle(client: Client) -> float:
    before = client.seconds
    values = client.ask()
    client.tell([(values, seconds_of(values))])
    return client.seconds - before


# --- the table ---------------------------------------------------------------------------------------


def number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def own_row(name: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The cells of one of autotune's strategies, and which targets it missed."""
    cells, missed = [], []
    for history in options.histories:
        cell = apart(own_cell, name, history, options.cycles)
        cells.append(str(cell))
        if name == "auto" and cell.typical > TARGETS.get(history, math.inf):
            missed.append(
                f"auto: {number(cell.typical)} ms at {history:,} trials, not {TARGETS[history]:.0f}"
            )
        say(f"{name}, {history:,}: {cell} ms")
    replay = apart(own_replay, name)
    if name == "auto" and replay > REPLAY_TARGET:
        missed.append(f"auto: {replay:.2f} s for {REPLAY} trials, not {REPLAY_TARGET:.0f}")
    say(f"{name}, {REPLAY} trials: {replay:.2f} s")
    return [*cells, f"{replay:.2f}"], missed


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """``function`` in a fresh process, which reads the number of threads when it loads its linear algebra."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peer_row(found: Found, options: argparse.Namespace) -> list[str]:
    longer = f"over {options.limit:.0f} s"
    cells = []
    for history in options.histories:
        cell = peer_cell(found, history, options.cycles, options.limit)
        cells.append(longer if cell is None else str(cell))
        say(f"{found.name}, {history:,}: {cells[-1]}")
    replay = peer_replay(found, options.limit)
    say(f"{found.name}, {REPLAY} trials: {replay}")
    return [*cells, longer if replay is None else f"{replay:.2f}"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The page, and what to complain of."""
    histories = " | ".join(f"ms at {history:,}" for history in options.histories)
    lines = head(f"strategy | {histories} | s for {REPLAY} trials")
    complaints, on = [], []
    for name in split_names(options.strategies):
        cells, missed = own_row(name, options)
        lines.append(f"| {' | '.join([name, *cells])} |")
        complaints += [f"MISSED: {problem}" for problem in missed]
    for name in split_names(options.peers):
        try:
            found = find(name, tuple(options.peer_python))
        except PeerError as error:
            complaints.append(f"NOT RUN: {error}")
            continue
        lines.append(f"| {' | '.join([f'{name} (peer)', *peer_row(found, options)])} |")
        on.append(found.on)
    peers = "".join(f"; {versions}" for versions in dict.fromkeys(on))
    versions = f"{software('numpy')}{peers}; {machine()}, load average {os.getloadavg()[0]:.1f} at the end."
    about = (
        f"Processor time of one ask with its tell, one thread, median of {options.cycles} trials after a "
        "history of so many random ones (in brackets their mean, since some trials fit more than others, "
        "and the first, which may build a model from nothing), on "
        f"{len(product_space().feasible):,} feasible configurations of ten knobs; and of a whole search. "
        f"A peer's cell has {options.limit:.0f} s of processor time in all."
    )
    said = [[f"- {complaint}" for complaint in complaints]] if complaints else []
    return page("How long a strategy thinks", options.command, versions, about, lines, *said), complaints


def main() -> int:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default="auto,bayes,evolution,random,grid")
    parser.add_argument("--peers", default="optuna-tpe,optuna-gp,skopt-gp,skopt-et")
    parser.aside("--peer-python", action="append", default=[], help="an interpreter that has peers")
    parser.add_argument("--histories", type=counts, default=HISTORIES, help="trials before, with commas")
    parser.add_argument("--cycles", type=at_least_one, default=20)
    parser.add_argument("--limit", type=float, default=120.0, help="processor seconds for a peer's cell")
    options = parser.read()
    text, complaints = report(options)
    publish(text, options.out)
    return 1 if complaints else 0


if __name__ == "__main__":
    run_as_command(main)
