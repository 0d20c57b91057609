"""What the session and the store cost a trial, beside Optuna's storages, in one run.

    python -m benchmarks.session_overhead --trials 400 --rounds 5 --out benchmarks/results/session_overhead.md

A trial here is: ask a random strategy, write the proposal as running, write the outcome with ten
readings, tell the strategy what all sessions of the study came to. Nothing is measured in between.
Optuna's trial is ask (six parameters by its random sampler) and tell (one value): it stores less.

The writers are processes on one store: one; eight that take turns, so that each trial has seven others
to hear of and none to wait for; and eight that never pause. The storages take turns within each round, so
that a slow moment of the machine falls on all. Eight that never pause want every core: what a trial
then waits is mostly for a core, so the CPU time that it takes stands beside, and the strategy's part of it.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command

SPACE = """
autotune: 1
name: overhead
command: [/bin/true]
metrics: {time: {goal: minimize, unit: s}}
knobs:
""" + "".join(f"  k{i}: {{range: [1, 64], default: 1}}\n" for i in range(6))

READINGS = [1.0 + 0.001 * i for i in range(10)]
CROWDS = ("1", "8 in turn", "8 at once")
STORAGES = ("autotune-sqlite", "optuna-sqlite", "optuna-sqlite-wal", "optuna-journal")
WARM_UP = 5
"""Trials of each writer that are not counted: the first ones load and compile what the later ones use."""
BAR = 5e-3
"""Seconds a trial (median) that the session and the store may take."""


@dataclass
class Costs:
    """Of each trial, in seconds: waited, on a core, and on a core in the strategy."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    strategy: list[float] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True)
class Writer:
    """One process's part in a run. With ``mine`` and ``next`` it waits for its turn before each trial."""

    storage: str
    folder: Path
    trials: int
    seed: int
    together: Any = None
    mine: Connection | None = None
    next: Connection | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        if self.mine is not None:
            self.mine.recv()
        yield
        if self.next is not None:
            self.next.send("go")


# -- one writer ----------------------------------------------------------------------------------


@contextmanager
def autotune_trials(folder: Path, seed: int) -> Iterator[tuple[Callable[[], None], Callable[[], float]]]:
    """One trial asked, stored and told by autotune; and how long its strategy has been on a core."""
    import autotune

    space = folder / f"space-{seed}.yaml"
    space.write_text(SPACE)
    with autotune.ask_tell(space, strategy="random", seed=seed, store=folder / "autotune.db") as session:
        spent = _timed(session._ledger.strategy, "ask")

        def trial() -> None:
            (asked,) = session.ask()
            session.tell(asked, time=READINGS)

        yield trial, spent


def _timed(thing: object, method: str) -> Callable[[], float]:
    """Have calls of a method timed; what it gives says how many seconds they came to so far."""
    call, total = getattr(thing, method), 0.0

    def timed(*arguments: object) -> object:
        nonlocal total
        start = time.process_time()
        try:
            return call(*arguments)
        finally:
            total += time.process_time() - start

    setattr(thing, method, timed)
    return lambda: total


@contextmanager
def optuna_trials(
    folder: Path, seed: int, kind: str
) -> Iterator[tuple[Callable[[], None], Callable[[], float]]]:
    """One trial asked and told by Optuna on ``kind`` of storage."""
    import optuna
    import sqlalchemy as sa
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage: Any
    if kind == "optuna-journal":
        storage = JournalStorage(JournalFileBackend(str(folder / "optuna.log")))
    else:
        if kind == "optuna-sqlite-wal":

            @sa.event.listens_for(sa.engine.Engine, "connect")
            def as_durable_as_autotune(connection: Any, _: object) -> None:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")

        url = f"sqlite:///{folder}/optuna.db"
        storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})
    sampler = optuna.samplers.RandomSampler(seed=seed)
    study = optuna.create_study(storage=storage, study_name="overhead", load_if_exists=True, sampler=sampler)

    def trial() -> None:
        asked = study.ask()
        for i in range(6):
            asked.suggest_int(f"k{i}", 1, 64)
        study.tell(asked, 1.0)

    yield trial, lambda: 0.0


def write(writer: Writer) -> Costs:
    """Run a writer's trials."""
    costs = Costs()
    with ExitStack() as stack:
        if writer.storage == "autotune-sqlite":
            trial, strategy = stack.enter_context(autotune_trials(writer.folder, writer.seed))
        else:
            trial, strategy = stack.enter_context(optuna_trials(writer.folder, writer.seed, writer.storage))
        for _ in range(WARM_UP):
            with writer.turn():
                trial()
        if writer.together is not None:
            writer.together.wait()
        costs.began = time.monotonic()
        for _ in range(writer.trials):
            with writer.turn():
                wall, cpu, asking = time.perf_counter(), time.process_time(), strategy()
                trial()
                costs.wall.append(time.perf_counter() - wall)
                costs.cpu.append(time.process_time() - cpu)
                costs.strategy.append(strategy() - asking)
        costs.ended = time.monotonic()
    return costs


# -- a crowd of them -----------------------------------------------------------------------------


def run(storage: str, crowd: str, trials: int) -> Costs:
    """Every trial's costs when ``crowd`` writes to a new store, ``trials`` in all."""
    writers = int(crowd.split()[0])
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(Writer(storage, folder, 0, 999))  # makes the tables
        together = context.Barrier(writers)
        # A ring: each writer hands the turn to the next.
        ring = [context.Pipe(duplex=False) for _ in range(writers)] if "turn" in crowd else []
        answers, processes = [], []
        for seed in range(writers):
            answer, reply = context.Pipe(duplex=False)
            mine = ring[seed][0] if ring else None
            following = ring[(seed + 1) % writers][1] if ring else None
            writer = Writer(storage, folder, max(trials // writers, 10), seed, together, mine, following)
            process = context.Process(target=_answer, args=(writer, reply))
            process.start()
            reply.close()  # so that a writer that dies is noticed
            answers.append(answer)
            processes.append(process)
        if ring:
            ring[0][1].send("go")
        parts = [answer.recv() for answer in answers]
        for process in processes:
            process.join()
    return Costs(
        [seconds for part in parts for seconds in part.wall],
        [seconds for part in parts for seconds in part.cpu],
        [seconds for part in parts for seconds in part.strategy],
        min(part.began for part in parts),
        max(part.ended for part in parts),
    )


def _answer(writer: Writer, reply: Connection) -> None:
    reply.send(write(writer))


# -- the table -----------------------------------------------------------------------------------


def table(trials: int, rounds: int, say: Callable[[str], None]) -> list[str]:
    results: dict[tuple[str, str], list[Costs]] = {}
    for number in range(rounds):
        for crowd in CROWDS:
            for storage in STORAGES:
                ours = storage == "autotune-sqlite"
                costs = run(storage, crowd, trials if ours else trials // 8)
                results.setdefault((crowd, storage), []).append(costs)
                say(
                    f"round {number + 1}: {storage}, {crowd}: {1e3 * statistics.median(costs.wall):.2f} ms, "
                    f"load {os.getloadavg()[0]:.1f}"
                )
    lines = head(
        "storage | writers | median ms a trial | p90 ms | CPU ms a trial | of it the strategy | trials/s"
    )
    lines += [_line(storage, crowd, parts) for (crowd, storage), parts in results.items()]
    medians = {
        crowd: statistics.median(seconds for part in parts for seconds in part.wall)
        for (crowd, storage), parts in results.items()
        if storage == "autotune-sqlite"
    }
    verdict = ", ".join(
        f"{crowd}: {1e3 * seconds:.2f} ms {'(met)' if seconds < BAR else '(missed)'}"
        for crowd, seconds in medians.items()
    )
    return [*lines, "", f"The bar is a median of {1e3 * BAR:g} ms a trial, the strategy included. {verdict}."]


def _line(storage: str, crowd: str, parts: list[Costs]) -> str:
    wall = sorted(1e3 * seconds for part in parts for seconds in part.wall)
    cpu = statistics.mean(seconds for part in parts for seconds in part.cpu)
    asking = statistics.mean(seconds for part in parts for seconds in part.strategy)
    rates = [len(part.wall) / (part.ended - part.began) for part in parts]
    return (
        f"| {storage} | {crowd} | {statistics.median(wall):.2f} | {wall[int(0.9 * len(wall))]:.2f} "
        f"| {1e3 * cpu:.2f} | {f'{1e3 * asking:.2f}' if storage == 'autotune-sqlite' else '-'} "
        f"| {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) |"
    )


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument(
        "--trials", type=at_least_one, default=400, help="of autotune a run; Optuna gets an eighth"
    )
    parser.add_argument("--rounds", type=at_least_one, default=5)
    options = parser.read()
    before = os.getloadavg()[0]
    lines = table(options.trials, options.rounds, lambda text: print(text, flush=True))
    on = (
        f"{software('optuna')}; {machine()}. Load average {before:.1f} before the run and "
        f"{os.getloadavg()[0]:.1f} after it; {_priority()}."
    )
    about = (
        "autotune-sqlite and optuna-sqlite-wal: SQLite in WAL with synchronous=NORMAL, durable against the "
        "death of the process; optuna-sqlite and optuna-journal: Optuna's defaults. *8 in turn*: eight "
        "sessions, of which one at a time has its trial; *8 at once*: none of them ever pauses."
    )
    title = "What the session and the store cost a trial"
    publish(page(title, options.command, on, about, lines), options.out)


def _priority() -> str:
    """How the system ranks this process, and where it groups processes, this group."""
    group = Path("/proc/self/autogroup")
    grouped = f", its group at {group.read_text().split(maxsplit=1)[1].strip()}" if group.exists() else ""
    return f"nice {os.nice(0)}{grouped}"


if __name__ == "__main__":
    run_as_command(main)
