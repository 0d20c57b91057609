"""What benchmarks of many searches share: workers of one thread each, lines kept as they come."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from autotune.errors import AutotuneError
from benchmarks.peers.client import PeerError

Search = TypeVar("Search")
Line = Mapping[str, object]


def one_thread_each() -> None:
    """One thread a search, unless the user says otherwise: the searches themselves run beside one another.

    Spawned workers read this when they load their linear algebra; what is loaded already stays as it is.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


def at_least_one(text: str) -> int:
    """What an option that counts is read with."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def append_lines(
    run: Callable[[Search], Line],
    todo: Sequence[Search],
    jobs: int,
    out: Path,
    named: Callable[[Search], str],
    figure: Callable[[Line], str],
) -> list[str]:
    """Run all of ``todo`` in ``jobs`` workers; append a JSON line for each to ``out`` as soon as it is there.

    Returns what could not be run, a line each: a peer that gives up does not end the others, nor does a
    file that cannot be read.
    """
    failures = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool, out.open("a") as file:
        futures = {pool.submit(run, search): search for search in todo}
        for number, future in enumerate(as_completed(futures), 1):
            head = f"{number}/{len(todo)} {named(futures[future])}:"
            try:
                line = future.result()
            except (PeerError, AutotuneError) as error:
                failures.append(f"{head} {error}")
                continue
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(f"{head} {figure(line)}", flush=True)
    return failures
