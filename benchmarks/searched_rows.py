"""A table of which each row is a search of a ready space: its command line, and cells that are shared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import autotune
from autotune.errors import InputError
from autotune.measure.outcome import Estimate
from autotune.provenance.device import device_facts
from autotune.session.result import Comparison, Result
from autotune.space.configuration import Value
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish

Rows = Callable[[float, str], Iterator[str]]
"""Lines of a table, one search after the other: of so many seconds each, in a store."""


@dataclass(frozen=True)
class Searched:
    """What a page is made of."""

    title: str
    about: Callable[[], Sequence[str]]
    """What stands before the table, in paragraphs; looked at when all is measured."""
    columns: str
    rows: Rows


def searched_rows(file: str, text: str | None, seconds: float, searched: Searched) -> None:
    """The command of such a table. A study that ``--store`` holds already is not searched again."""
    parser = Options(file, text)
    parser.add_argument("--time", type=float, default=seconds, help="seconds of each search")
    parser.aside("--store", default="", help="where the studies are kept; default: nowhere")
    options = parser.read()
    lines = head(f"{searched.columns} | tries | winner")
    with tempfile.TemporaryDirectory() as folder:
        for line in searched.rows(options.time, options.store or f"{folder}/studies.db"):
            print(line, flush=True)
            lines.append(line)
    publish(page(searched.title, options.command, *searched.about(), lines), options.out)


def search(name: str, space: Path | StudySpec, seconds: float, store: str) -> Result:
    """What a row is made of.

    Raises :class:`~autotune.errors.InputError` where nothing has succeeded in the time.
    """
    result = autotune.search(space, time=seconds, trials=10_000, store=store)
    if result.best is None:
        why = f": {result.why_nothing}" if result.why_nothing else ""
        raise InputError(f"{name}: nothing succeeded within {seconds:g} s{why}")
    return result


def workload_rows(
    space: Path,
    workloads: Mapping[str, Mapping[str, Value]],
    line: Callable[[str, Result], str],
    seconds: float,
    store: str,
) -> Iterator[str]:
    """The ``line`` of each workload, which is said as it differs from that of the space."""
    for name, workload in workloads.items():
        spec = read_spec(space, device=device_facts(), workload=workload)
        yield line(name, search(name, spec, seconds, store))


def say_workloads(space: Path, workloads: Mapping[str, Mapping[str, Value]]) -> str:
    """The workload of the space, and in what each of the others differs from it."""

    def said(facts: Mapping[str, object]) -> str:
        return ", ".join(f"{name} {value}" for name, value in facts.items())

    whole = said(read_spec(space, device=device_facts()).workload)
    differing = "; ".join(f"*{name}*: {said(own)}" for name, own in workloads.items() if own)
    return f"The workload of the space: {whole}. {differing}."


def row(result: Result, *cells: str) -> str:
    """A line of the table: the cells, the number of tries, and the winner."""
    tries = str(sum(result.statuses.values()))
    winner = ", ".join(f"{knob} {value}" for knob, value in (result.best or {}).items())
    return f"| {' | '.join((*cells, tries, winner))} |"


def interval(one: Estimate, form: str, scale: float = 1.0) -> str:
    """A metric with its interval, each number times ``scale`` and in this ``form``."""
    value, low, high = (format(scale * number, form) for number in (one.value, one.low, one.high))
    return f"{value} [{low}, {high}]"


def ratio(one: Comparison | None, digits: int = 2) -> str:
    """With its interval."""
    if one is None:
        return "-"
    return f"{one.estimate:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"


def over(result: Result, baseline: str, digits: int = 2) -> str:
    """How much better the winner is than a baseline, with its interval; ``-`` where that was not read."""
    return ratio(next((one for one in result.baselines if one.against == baseline), None), digits)
