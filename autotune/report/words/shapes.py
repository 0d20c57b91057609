"""The result of a search over several workloads in words: what won, and how good it is for the others."""

from __future__ import annotations

import math
from collections.abc import Iterator

from autotune.report.numbers import say_count, say_gain, say_ratio, say_value
from autotune.report.rules.rule import varying
from autotune.report.words.summary import say_outcomes
from autotune.report.words.what_next import say_next
from autotune.session.families.matrix import Cell, Matrix
from autotune.session.families.result import ManyResult
from autotune.session.result import Result
from autotune.space.spec import say_workload


def summarize_many(result: ManyResult, *, program: str = "autotune", store_option: str = "") -> str:
    """The lines that ``autotune search`` ends with for a file with several ``workloads``."""
    labels = _labels(result.matrix)
    width = max(map(len, labels))
    lines = ["", f"{result.name}: {say_count(len(labels), 'workload')}", ""]
    for label, one, held_out in zip(labels, result.results, result.matrix.held_out, strict=True):
        lines.append(f"  {label:{width}}  {_line(one, held_out)}")
        if one.why_nothing:
            lines.append(f"  {'':{width}}  {one.why_nothing}  ({one.study.label})")
    lines += [f"  {where:{width}}  given up: {_first_line(why)}" for where, why in result.failures.items()]
    if matrix := list(_matrix(result.matrix, labels, width)):
        lines += ["", *matrix]
    if busy := _busy(result, labels):
        lines += ["", f"remark         {busy}"]
    lines += ["", f"tried          {'; '.join(say_outcomes(result.results))}; ended by: {result.reason}"]
    lines += [f"stored in      {result.results[0].store}", "", *_next(result, program, store_option)]
    return "\n".join(lines)


def _labels(matrix: Matrix) -> list[str]:
    """A label for each workload, with the facts in which they differ."""
    names = varying(matrix)
    return [say_workload({name: workload[name] for name in names}) for workload in matrix.workloads]


def _busy(result: ManyResult, labels: list[str]) -> str:
    """Of the first workload where the machine was busy that it was, and of how many others; else empty."""
    said = [(label, one.busy) for label, one in zip(labels, result.results, strict=True) if one.busy]
    if not said:
        return ""
    [(label, busy), *others] = said
    further = f" (and so for {say_count(len(others), 'other workload')})" if others else ""
    return f"{label}: {busy}{further}"


def _line(result: Result, held_out: bool) -> str:
    """One workload: its best, its speed-up, what was tried."""
    trials = "held out" if held_out else say_count(sum(result.statuses.values()), "trial")
    name = result.metric.name
    if result.best is None or name not in result.metrics:
        return f"{'nothing works':>12}  {trials}"
    value = say_value(result.metrics[name].value, result.metric.unit)
    if result.is_default:
        standing = "no better than the default"
    elif result.speedup is not None:
        standing = f"{say_ratio(*result.speedup.interval)} over the default"
    elif (gain := result.gain) is not None:
        standing = f"better than the default by {say_gain(*gain.interval, result.metric.unit)}"
    else:
        standing = "" if result.defended else result.undefended
    columns = (f"{value:>12}", f"{trials:>10}", standing, f"({result.study.label})")
    return "  ".join(column for column in columns if column)


def _matrix(matrix: Matrix, labels: list[str], width: int) -> Iterator[str]:
    """How many times worse each winner is on each workload than the best there: 1 is as good as the best.

    Where some value is not above 0 there are no ratios, and the table has the values themselves. ``-`` means
    that there is no value. A ratio of medians need not lie in the interval of the speed-up over the default,
    which is taken from the ratios of the rounds.
    """
    if not matrix.configurations:
        return
    name, unit = matrix.metric.name, matrix.metric.unit
    heads = [_head(matrix, column) for column in range(len(matrix.configurations))]
    say = _ratios
    if not matrix.has_ratios:
        say = _values
        yield f"{name} of each winner on each workload{f', in {unit}' if unit else ''} (medians):"
    elif matrix.metric.goal == "minimize":
        yield f"{name} of each winner on each workload, over the best there (ratios of medians):"
    else:
        yield f"the best {name} on each workload, over that of each winner (ratios of medians):"
    yield f"  {'':{width}}" + "".join(f"{head:>12}" for head in heads)
    for label, cells in zip(labels, matrix.cells, strict=True):
        yield f"  {label:{width}}" + "".join(f"{text:>12}" for text in say(matrix, cells))


def _head(matrix: Matrix, column: int) -> str:
    """The studies whose winner a column is, as far as there is room: ``#12+#14``, or ``#123 +2``."""
    if column == matrix.default:
        return "default"
    won = [f"#{matrix.studies[row].id}" for row in sorted(matrix.found_by[column])]
    said = "+".join(won) or "-"
    return said if len(said) < 12 else f"{won[0]} +{len(won) - 1}"


def _ratios(matrix: Matrix, cells: tuple[Cell, ...]) -> Iterator[str]:
    known = [cell.value for cell in cells if math.isfinite(cell.value)]
    best = (min if matrix.metric.goal == "minimize" else max)(known, default=math.nan)
    for cell in cells:
        ratio = cell.value / best if matrix.metric.goal == "minimize" else best / cell.value
        yield f"{ratio:.3f}" if math.isfinite(ratio) else "-"


def _values(matrix: Matrix, cells: tuple[Cell, ...]) -> Iterator[str]:
    for cell in cells:
        yield f"{cell.value:.4g}" if math.isfinite(cell.value) else "-"


def _next(result: ManyResult, program: str, store_option: str) -> list[str]:
    study = f"--study {result.name}{store_option}"
    works = next((one for one in result.results if one.best is not None), None)
    label = (works or result.results[0]).study.label
    rule = f"{program} rule {study} -o rule.py", "a function that chooses for other workloads, and its regret"
    best = f"{program} best --study {label}{store_option}", "what is best for one workload"
    commands = [
        *([rule] if works and result.matrix.has_ratios else []),
        *([best] if works else []),
        (f"{program} report {label}{store_option}", "one page: how sure, how found, what failed"),
        (f"{program} show --study {label}{store_option}", "its best trials, and how many failed"),
    ]
    return say_next(commands, result.results[0].store)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:100] if text.strip() else "no message"
