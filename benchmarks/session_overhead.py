"""What the session and the store cost a trial, beside Optuna's storages, in one run.

    python -m benchmarks.session_overhead --trials 200 --rounds 5 --out benchmarks/results/session_overhead.md

A trial here is: ask a random strategy, write the proposal, mark it running, write the outcome with ten
readings, tell the strategy. Nothing is measured in between. Optuna's trial is ask (six parameters by its
random sampler) and tell (one value): it stores less. One writer, and eight processes on one store at once.
The storages take turns within each round, so that a slow moment of the machine falls on all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

SPACE = """
autotune: 1
name: overhead
command: [/bin/true]
metrics: {time: {goal: minimize, unit: s}}
knobs:
""" + "".join(f"  k{i}: {{range: [1, 64], default: 1}}\n" for i in range(6))

READINGS = [1.0 + 0.001 * i for i in range(10)]
WRITERS = (1, 8)
STORAGES = ("autotune-sqlite", "optuna-sqlite", "optuna-journal")


def autotune_trials(folder: Path, trials: int, seed: int) -> list[float]:
    """Seconds of each trial, asked, stored and told by autotune."""
    import autotune

    space = folder / f"space-{seed}.yaml"
    space.write_text(SPACE)
    taken = []
    with autotune.ask_tell(space, strategy="random", seed=seed, store=folder / "autotune.db") as session:
        for _ in range(trials):
            start = time.perf_counter()
            (trial,) = session.ask()
            session.tell(trial, time=READINGS)
            taken.append(time.perf_counter() - start)
    return taken


def optuna_trials(folder: Path, trials: int, seed: int, kind: str) -> list[float]:
    """Seconds of each trial, asked and told by Optuna on ``kind`` of storage."""
    import optuna
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if kind == "optuna-sqlite":
        storage: object = RDBStorage(
            f"sqlite:///{folder}/optuna.db", engine_kwargs={"connect_args": {"timeout": 120}}
        )
    else:
        storage = JournalStorage(JournalFileBackend(str(folder / "optuna.log")))
    study = optuna.create_study(
        storage=storage,  # type: ignore[arg-type]
        study_name="overhead",
        load_if_exists=True,
        sampler=optuna.samplers.RandomSampler(seed=seed),
    )
    taken = []
    for _ in range(trials):
        start = time.perf_counter()
        trial = study.ask()
        for i in range(6):
            trial.suggest_int(f"k{i}", 1, 64)
        study.tell(trial, 1.0)
        taken.append(time.perf_counter() - start)
    return taken


def one_writer(job: tuple[str, str, int, int]) -> list[float]:
    storage, folder, trials, seed = job
    if storage == "autotune-sqlite":
        return autotune_trials(Path(folder), trials, seed)
    return optuna_trials(Path(folder), trials, seed, storage)


def run(storage: str, writers: int, trials: int) -> tuple[list[float], float]:
    """Seconds a trial, and trials a second of all writers together."""
    with tempfile.TemporaryDirectory() as folder:
        one_writer((storage, folder, 1, 999))  # makes the tables; not counted
        jobs = [(storage, folder, max(trials // writers, 10), seed) for seed in range(writers)]
        context = multiprocessing.get_context("spawn")
        with context.Pool(writers) as pool:
            pool.map(warm, range(writers), chunksize=1)
            start = time.perf_counter()
            parts = pool.map(one_writer, jobs, chunksize=1)
            wall = time.perf_counter() - start
    taken = [seconds for part in parts for seconds in part]
    return taken, len(taken) / wall


def warm(_: int) -> None:
    """Load what a writer needs, so that imports are not counted."""
    import optuna

    import autotune.session.api
    import autotune.store.store

    assert optuna and autotune.session.api and autotune.store.store


def table(trials: int, rounds: int, say: Callable[[str], None]) -> list[str]:
    results: dict[tuple[str, int], tuple[list[float], list[float]]] = {}
    for round_number in range(rounds):
        for writers in WRITERS:
            for storage in STORAGES:
                taken, rate = run(
                    storage, writers, trials if storage == "autotune-sqlite" else max(trials // 4, 20)
                )
                times, rates = results.setdefault((storage, writers), ([], []))
                times += taken
                rates.append(rate)
                say(
                    f"round {round_number + 1}: {storage} with {writers}: "
                    f"{1e3 * statistics.median(taken):.2f} ms"
                )
    lines = [
        "| storage | writers | median ms a trial | p90 ms | trials/s, all writers (min to max) |",
        "|---|---|---|---|---|",
    ]
    for (storage, writers), (times, rates) in sorted(
        results.items(), key=lambda item: (item[0][1], item[0][0])
    ):
        p90 = sorted(times)[int(0.9 * len(times))]
        lines.append(
            f"| {storage} | {writers} | {1e3 * statistics.median(times):.2f} | {1e3 * p90:.2f} "
            f"| {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = table(options.trials, options.rounds, lambda text: print(text, flush=True))
    text = "\n".join([*header(options), *lines, ""])
    print(text)
    if options.out:
        options.out.write_text(text)


def header(options: argparse.Namespace) -> list[str]:
    import optuna

    import autotune
    from autotune.provenance.device import device_facts

    return [
        "# What the session and the store cost a trial",
        "",
        f"`python -m benchmarks.session_overhead --trials {options.trials} --rounds {options.rounds}`",
        "",
        f"autotune {autotune.__version__}, optuna {optuna.__version__}, Python {platform.python_version()}, "
        f"{device_facts()['name']}, {device_facts()['cores']} cores. autotune: SQLite in WAL with "
        "synchronous=NORMAL (durable against the death of the process); Optuna: its defaults.",
        "",
    ]


if __name__ == "__main__":
    main()
