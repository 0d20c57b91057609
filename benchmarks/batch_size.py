"""The largest batch that fits under a real memory cap: how many trials it takes to find, and how near one
gets.

    python -m benchmarks.batch_size --seeds 5 --out benchmarks/results/batch_size.md

A trial trains the language model of ``objectives/training`` for two updates, in a worker below a real cap (a
control group where one can be made): batches that do not fit are killed, and nothing else is. Compared are,
each with at most 12 trials:

* ``autotune``: the ready space ``largest-batch``, which maximises the batch under a bound of the memory;
* ``doubling``: 2, 4, 8 ... until it fails (the mode ``power`` of Lightning's ``BatchSizeFinder``);
* ``bisection``: from 2 by doubling until it fails, then halving the interval (its mode ``binsearch``).

The procedures of Lightning (as of 2.6.6) are made anew, for its own tries run in the process of the
training, which a control group kills. The margin of 5 % that it takes off in the end is not held against it.
The truth is looked for from the largest that any of them saw succeed, without a limit of trials, with three
tries at each batch, all of which must fit. *Found* is the largest batch that a search saw succeed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.kept import Kept
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command

if TYPE_CHECKING:
    from autotune.space.spec import StudySpec

MOST_TRIALS = 12
CLOSE = 0.02
SPACE = Path(__file__).parents[1] / "searchspaces" / "largest-batch.yaml"
REPEATS = 3


@dataclass(frozen=True)
class Case:
    """A model, and the memory it is given in MiB."""

    name: str
    memory: int
    workload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return self.memory << 20


CASES = (
    Case("float32", 400),
    Case("recomputed", 400, {"plan": {"dtype": "float32", "optimiser": "adamw", "recompute": True}}),
    Case("wide", 700, {"width": 128}),
)


class Tried(NamedTuple):
    """One trial of a search."""

    batch: int
    fits: bool
    status: str


Fits = Callable[[int, int], Tried]
"""Whether a batch fits, by a training from a seed."""


# -- the ways -------------------------------------------------------------------------------------


def doubling(fits: Fits, seed: int) -> Iterator[Tried]:
    batch = 2
    while True:
        tried = fits(batch, seed)
        yield tried
        if not tried.fits:
            return
        batch *= 2


def bisection(fits: Fits, seed: int) -> Iterator[Tried]:
    low, high, batch = 1, 0, 2
    while not high or high - low > 1:
        tried = fits(batch, seed)
        yield tried
        low, high = (batch, high) if tried.fits else (low, batch)
        batch = (low + high) // 2 if high else 2 * batch


WAYS: Mapping[str, Callable[[Fits, int], Iterator[Tried]]] = {"doubling": doubling, "bisection": bisection}


def take(way: str, fits: Fits, seed: int) -> list[Tried]:
    """The first so many that a way is allowed."""
    return list(islice(WAYS[way](fits, seed), MOST_TRIALS))


# -- running --------------------------------------------------------------------------------------


def spec_of(case: Case, seed: int = 0) -> StudySpec:
    """The ready space with the cap of a case, as a limit of the worker and as a bound of the metric."""
    from autotune.session.opening.loading import load_spec
    from autotune.session.opening.overrides import Overrides
    from autotune.space.configuration import FrozenMap

    spec = load_spec(SPACE, Overrides(trials=MOST_TRIALS, seed=seed))
    metrics = tuple(replace(m, at_most=case.bytes) if m.name == "peak_memory" else m for m in spec.metrics)
    measure = replace(spec.measure, memory=case.bytes)
    return replace(
        spec, metrics=metrics, measure=measure, workload=FrozenMap({**spec.workload, **case.workload})
    )


@contextmanager
def trials_of(case: Case) -> Iterator[Fits]:
    """Runs one batch after another in workers below the cap."""
    from autotune.session.execution.choosing import make_executor
    from autotune.session.execution.executor import Finished, Ticket
    from autotune.space.configuration import Configuration
    from autotune.status import Status

    executor = make_executor(spec_of(case), None, None)
    count = 0

    def fits(batch: int, seed: int) -> Tried:
        nonlocal count
        count += 1
        executor.submit(Ticket(count, Configuration({"batch": batch}), 1000 * seed + count))
        while True:
            for event in executor.poll(1.0):
                if isinstance(event, Finished):
                    status = event.outcome.status
                    return Tried(batch, status is Status.OK, str(status))

    try:
        yield fits
    finally:
        executor.close()


def search(case: Case, seed: int, folder: Path) -> list[Tried]:
    """What ``autotune search largest-batch`` tries."""
    from autotune.session.api import open_session
    from autotune.status import Status
    from autotune.store.store import Store

    with Store.open(str(folder / f"{case.name}-{seed}.db")) as store:
        result = open_session(spec_of(case, seed), store).run()
    trials = sorted(result.trials, key=lambda trial: trial.number)
    return [Tried(int(str(t.configuration["batch"])), t.status is Status.OK, str(t.status)) for t in trials]


def truth(fits: Fits, near: int) -> int:
    """The largest batch that fits each of three times, looked for from ``near`` on."""

    def always(batch: int) -> bool:
        return all(fits(batch, seed).fits for seed in range(REPEATS))

    low, high, step = 0, max(near, 1), 1
    while always(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if always(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Measured:
    """All searches of a case, by way and for each seed, and the largest batch that fits."""

    case: Case
    runs: Mapping[str, list[list[Tried]]]
    largest: int


def measure(case: Case, seeds: int, kept: Kept) -> Measured:
    """What of a case is not ``kept`` yet is run."""

    def searches(way: str, make: Callable[[int], list[Tried]]) -> list[list[Tried]]:
        runs = []
        for seed in range(seeds):
            tries = kept.get_or_make(partial(make, seed), case=case.name, way=way, seed=seed)
            print(f"{case.name}, {way}, seed {seed}: {tries}", flush=True)
            runs.append([Tried(*tried) for tried in tries])
        return runs

    with tempfile.TemporaryDirectory() as folder:
        runs = {"autotune": searches("autotune", lambda seed: search(case, seed, Path(folder)))}
    with trials_of(case) as fits:
        for way in WAYS:
            runs[way] = searches(way, partial(take, way, fits))
        near = max(found(tries) for own in runs.values() for tries in own)
        largest = kept.get_or_make(lambda: truth(fits, near), case=case.name, way="truth")
    return Measured(case, runs, largest)


# -- the table ------------------------------------------------------------------------------------


def found(tries: list[Tried], upto: int = MOST_TRIALS) -> int:
    return max((t.batch for t in tries[:upto] if t.fits), default=0)


def trials_to(tries: list[Tried], largest: int) -> int | None:
    """Trials until one within 2 % of the largest batch had succeeded."""
    for number, tried in enumerate(tries, 1):
        if tried.fits and tried.batch >= (1 - CLOSE) * largest:
            return number
    return None


def table(measured: Iterable[Measured]) -> list[str]:
    rows = head(
        "case | cap | fits | way | found, median of it | within 2 % | trials to that, median | did not fit,"
        " a search | what was tried, the first seed"
    )
    for one in measured:
        for way, runs in one.runs.items():
            counts = [trials_to(tries, one.largest) for tries in runs]
            close = [count for count in counts if count is not None]
            share = statistics.median(found(tries) / one.largest for tries in runs)
            failed = statistics.mean(sum(not t.fits for t in tries) for tries in runs)
            first = " ".join(f"{t.batch}{'' if t.fits else '✗'}" for t in runs[0])
            rows.append(
                f"| {one.case.name} | {one.case.memory} MiB | {one.largest} | {way} | {share:.3f} | "
                f"{len(close)}/{len(runs)} |"
                f" {statistics.median(close) if close else '-'} | {failed:.1f} | {first} |"
            )
    return rows


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--seeds", type=at_least_one, default=5)
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", default=names, choices=names)
    parser.aside("--kept", type=Path, default=Path("batch_size.jsonl"), help="what was measured so far")
    options = parser.read()
    kept = Kept(options.kept)
    measured = [measure(case, options.seeds, kept) for case in CASES if case.name in options.cases]
    about = (
        f"{software('torch')}. At most {MOST_TRIALS} trials each, {options.seeds} seeds. A batch that is"
        " marked ✗ was killed at the cap, or measured past it. A trial of autotune is two readings."
        " *Fits* is the largest of which three tries in three fit; near it one may succeed where another"
        " does not, so that *found* can be past 1."
    )
    title = "The largest batch under a memory cap"
    publish(page(title, options.command, about, table(measured)), options.out)


if __name__ == "__main__":
    run_as_command(main)
