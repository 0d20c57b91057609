"""What benchmarks share: how they end, names and numbers of their options, workers of one thread."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from autotune.errors import AutotuneError, InputError, Problem, listed, nearest
from benchmarks.kept import add_line
from benchmarks.peers.client import PeerError

if TYPE_CHECKING:
    import numpy as np

Search = TypeVar("Search")
Found = TypeVar("Found")
Line = Mapping[str, object]


def run_as_command(main: Callable[[], int | None]) -> NoReturn:
    """End with the exit code of ``main``; an error in what it was given is said without a traceback."""
    try:
        sys.exit(main())
    except AutotuneError as error:
        raise SystemExit(str(error)) from None


def one_thread_each() -> None:
    """One thread a search, unless the user says otherwise: the searches themselves run beside one another.

    Spawned workers read this when they load their linear algebra; what is loaded already stays as it is.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


def at_least_one(text: str) -> int:
    """What an option that counts is read with."""
    return _at_least(1, text)


def at_least_two(text: str) -> int:
    """The same of what is needed twice: rounds of which some choose and the others tell, or a spread."""
    return _at_least(2, text)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is not at least {least}")
    return number


def counts(text: str) -> list[int]:
    """Numbers separated by commas, each at least 1: what an option is read with."""
    return [at_least_one(number) for number in text.split(",")]


def split_names(text: str) -> list[str]:
    """The names in an option, separated by commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def known_names(text: str, what: str, known: Iterable[str]) -> list[str]:
    """As :func:`split_names`; :class:`InputError` where there is none, or one that is not ``known``."""
    names, known = split_names(text), list(known)
    for name in names:
        if name not in known:
            raise InputError(
                Problem(f"there is no {what} {name!r}", expected=listed(known), hint=nearest(name, known))
            )
    if not names:
        raise InputError(Problem(f"no {what} is named", expected=listed(known)))
    return names


def known_strategies(text: str) -> list[str]:
    """As :func:`split_names`; an error for one that is no strategy."""
    from autotune.search.registry import strategy_class

    names = split_names(text)
    for name in names:
        strategy_class(name)
    return names


def problem_random(seed: int, what: str) -> np.random.Generator:
    """Random numbers for ``what`` a problem of this seed has, which no strategy of the same seed draws too.

    A strategy's ask number ``i`` draws from ``(seed, i)``. A problem that drew its optimum from the same
    numbers would have a random try exactly there.
    """
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(what.encode())))


def in_workers(
    run: Callable[..., Found], todo: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[tuple[tuple[Any, ...], Found]]:
    """Each of ``todo`` with what ``run`` gives for these arguments, in their order."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from zip(todo, pool.map(run, *zip(*todo, strict=True)), strict=True)


def search_all(
    search: Callable[[str, str, int], Found],
    problems: Iterable[str],
    strategies: Iterable[str],
    seeds: Iterable[int],
    jobs: int,
) -> dict[tuple[str, str], list[Found]]:
    """What each search came to, in ``jobs`` workers: by problem and strategy, in the order of the seeds."""
    runs: dict[tuple[str, str], list[Found]] = {}
    for (problem, strategy, _), found in in_workers(search, list(product(problems, strategies, seeds)), jobs):
        runs.setdefault((problem, strategy), []).append(found)
    return runs


def mean_ranks(
    strategies: Sequence[str], runs: Mapping[tuple[str, str], Sequence[Sequence[float]]], after: Iterable[int]
) -> list[str]:
    """By strategy, over problems and seeds, after each number of tries: 1 is the best."""
    import numpy as np
    from scipy.stats import rankdata

    problems = dict.fromkeys(problem for problem, _ in runs)
    found = np.array([[runs[problem, name] for name in strategies] for problem in problems])
    means = [rankdata(found[..., tries - 1], axis=1).mean(axis=(0, 2)) for tries in after]
    return [", ".join(f"{rank:.2f}" for rank in own) for own in np.transpose(means)]


def append_lines(
    run: Callable[[Search], Line],
    todo: Sequence[Search],
    jobs: int,
    out: Path,
    named: Callable[[Search], str],
    figure: Callable[[Line], str],
    missing: Iterable[str] = (),
) -> int:
    """Run all of ``todo`` in ``jobs`` workers; append a JSON line for each to ``out`` as soon as it is there.

    A peer that gives up does not end the others, nor does a file that cannot be read. What could not be run,
    and what was ``missing`` before, is said at the end, a line for each reason; then the exit code is 1.
    """
    failures: dict[str, list[str]] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(run, search): search for search in todo}
        for number, future in enumerate(as_completed(futures), 1):
            head = f"{number}/{len(todo)} {named(futures[future])}:"
            try:
                line = future.result()
            except (PeerError, AutotuneError) as error:
                failures.setdefault(str(error), []).append(named(futures[future]))
                continue
            add_line(out, line)
            print(f"{head} {figure(line)}", flush=True)
    reasons = list(missing)
    for why, heads in failures.items():
        more = f" and {len(heads) - 1} more" if len(heads) > 1 else ""
        reasons.append(f"{heads[0]}{more}: {why}")
    for reason in reasons:
        print(f"NOT RUN: {reason}", file=sys.stderr)
    return 1 if reasons else 0
