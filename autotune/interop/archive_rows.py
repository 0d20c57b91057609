"""Whether the rows of an archive are what a store may hold. Types follow from the schema, the rest is here.

A store takes what it is given and hands it to everything else. So what comes from outside is held against the
types of its columns, and the documents in it against what autotune writes there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.portable import Document, columns
from autotune.store.records import NO_ROOM
from autotune.store.schema import (
    Json,
    Number,
    asks,
    pauses,
    segments,
    sessions,
    space_revisions,
    studies,
    trials,
)
from autotune.store.schema import verdicts as verdicts_table

LONGEST = 1 << 53
"""Whole numbers up to here are the same in every JSON reader, and far within 64 bits."""

_TABLES: Mapping[str, sa.Table] = {
    "study": studies,
    "space_revisions": space_revisions,
    "segments": segments,
    "sessions": sessions,
    "asks": asks,
    "trials": trials,
    "pauses": pauses,
    "verdicts": verdicts_table,
}
_EXTRA: Mapping[str, tuple[str, ...]] = {
    "study": ("parent",),
    "asks": ("session",),
    "trials": ("session", "segment"),
    "pauses": ("trial",),
    "verdicts": ("session",),
}
_PURPOSES = ("search", "final", "default", "baseline")
_HASH = re.compile("[0-9a-f]{64}")


class WrongRowError(Exception):
    """A row is not what it should be; its text says how."""


def check_row(part: str, row: object) -> Document:
    """``row`` itself, where it may be one of ``part``. Raises :class:`WrongRowError`."""
    if not isinstance(row, dict):
        raise WrongRowError("it is no object")
    if part == "readings":
        return _readings(row)
    if part == "reports":
        return _reports(row)
    _names(row, {c.name for c in columns(_TABLES[part])} | set(_EXTRA.get(part, ())))
    for name in _EXTRA.get(part, ()):
        if not (name == "parent" and row[name] is None):
            _whole(row[name], name, least=0)
    for column in columns(_TABLES[part]):
        _typed(column, row[column.name], part)
    if part in _MEANING:
        _MEANING[part](row)
    return row


def _names(row: Document, wanted: set[str]) -> None:
    if missing := wanted - set(row):
        raise WrongRowError(f"it has no {sorted(missing)[0]!r}")
    if extra := set(row) - wanted:
        raise WrongRowError(f"it has {sorted(extra)[0]!r}, which no such row has")


def _typed(column: sa.Column[Any], value: object, part: str) -> None:
    name = column.name
    if value is None and (column.nullable or isinstance(column.type, Number)):
        return
    if part in ("trials", "pauses") and name == "metrics":
        _metrics(value)
    elif isinstance(column.type, Json):
        if not isinstance(value, (dict, list)):
            raise WrongRowError(f"{name} is no object")
    elif isinstance(column.type, sa.Boolean):
        if not isinstance(value, bool):
            raise WrongRowError(f"{name} is neither true nor false")
    elif isinstance(column.type, sa.Integer):
        _whole(value, name)
    elif isinstance(column.type, (sa.Double, Number)):
        _real(value, name)
    elif not isinstance(value, str):
        raise WrongRowError(f"{name} is no text")


def _whole(value: object, name: str, least: int = -LONGEST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LONGEST:
        raise WrongRowError(f"{name} is no whole number that it can be")
    return value


def _real(value: object, name: str) -> float:
    """A number that a float can hold, infinities and NaN included."""
    if isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max):
        return float(value)
    raise WrongRowError(f"{name} is no number")


def _object(value: object, name: str, check: Callable[[object, str], object]) -> None:
    if not isinstance(value, dict):
        raise WrongRowError(f"{name} is no object")
    for key, item in value.items():
        check(item, f"{name}.{key[:40]}")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise WrongRowError(f"{name} is no text")
    return value


def _digest(value: object, name: str) -> None:
    if not isinstance(value, str) or _HASH.fullmatch(value) is None:
        raise WrongRowError(f"{name} is no hash of a file")


def _metrics(value: object, without_error: bool = False) -> None:
    """Estimates by name; ``without_error``: those of an early verdict may have none."""

    def estimate(one: object, name: str) -> None:
        if not isinstance(one, dict):
            raise WrongRowError(f"{name} is no estimate")
        optional = {"error"} - one.keys() if without_error else set()
        _names(one, {"value", "low", "high", "n", "error"} - optional)
        for part in one.keys() - {"n"}:
            _real(one[part], f"{name}.{part}")
        _whole(one["n"], f"{name}.n", least=0)

    _object(value, "metrics", estimate)


# -- what types do not say ------------------------------------------------------------------------------


def _study(row: Document) -> None:
    for name in ("document", "workload", "differs"):
        if not isinstance(row[name], dict):
            raise WrongRowError(f"{name} is no object")
    metrics = row["metrics"]
    if not isinstance(metrics, list) or not all(isinstance(metric, dict) for metric in metrics):
        raise WrongRowError("metrics is no list of metrics")
    goals = 0
    for metric in metrics:
        if not {"name", "goal", "unit"} <= set(metric) <= {"name", "goal", "unit", "at_most", "at_least"}:
            raise WrongRowError("metrics has something else than metrics")
        _text(metric["name"], "the name of a metric")
        if metric["goal"] not in (None, "minimize", "maximize"):
            raise WrongRowError("a metric has a goal that is none")
        goals += metric["goal"] is not None
    if not goals:
        raise WrongRowError("no metric has a goal")
    for name in ("space", "identity", "search", "measure", "budget"):
        if not isinstance(row["document"].get(name, {}), dict):
            raise WrongRowError(f"document.{name} is no object")


def _segment(row: Document) -> None:
    _object(row["artifacts"], "artifacts", _digest)
    if not isinstance(row["document"], dict):
        raise WrongRowError("document is no object")
    files = row["document"].get("files") or []
    if not isinstance(files, list) or not all(
        isinstance(file, dict) and isinstance(file.get("name"), str) for file in files
    ):
        raise WrongRowError("document.files is no list of files")


def _session(row: Document) -> None:
    settings = row["settings"]
    if not isinstance(settings, dict):
        raise WrongRowError("settings is no object")
    sources = settings.get("sources") or []
    if not isinstance(sources, list):
        raise WrongRowError("settings.sources is no list")
    for source in sources:
        if not isinstance(source, dict):
            raise WrongRowError("a source is no object")
        _whole(source.get("trials"), "a source's trials", least=0)
        if source.get("study") is not None:
            _whole(source["study"], "a source's study", least=0)


def _ask(row: Document) -> None:
    numbers = row["trials"]
    if not isinstance(numbers, list):
        raise WrongRowError("trials is no list")
    for number in numbers:
        if number is not None:
            _whole(number, "a trial's number", least=NO_ROOM)


def _trial(row: Document) -> None:
    if row["status"] not in {status.value for status in Status}:
        raise WrongRowError(f"status is {str(row['status'])[:40]!r}")
    if row["purpose"] not in _PURPOSES:
        raise WrongRowError(f"purpose is {str(row['purpose'])[:40]!r}")
    for name in ("configuration", "reason", "facts"):
        if not isinstance(row[name], dict):
            raise WrongRowError(f"{name} is no object")
    _object(row["phases"], "phases", _real)
    _object(row["artifacts"], "artifacts", _digest)
    for name in ("number", "attempt", "reading_count"):
        _whole(row[name], name, least=0)
    try:
        known = Configuration(row["configuration"]).hash
    except TypeError as error:
        raise WrongRowError(f"configuration: {error}") from None
    if known != row["hash"]:
        raise WrongRowError("its configuration is not the one that its hash stands for")


def _pause(row: Document) -> None:
    if not isinstance(row["facts"], dict):
        raise WrongRowError("facts is no object")
    _object(row["phases"], "phases", _real)
    _whole(row["told"], "told", least=0)


def _verdict(row: Document) -> None:
    document = row["document"]
    if not isinstance(document, dict):
        raise WrongRowError("document is no object")
    for name in ("configuration", "metrics", "speedup"):
        if document.get(name) is not None and not isinstance(document[name], dict):
            raise WrongRowError(f"document.{name} is no object")
    _metrics(document.get("metrics") or {}, without_error=True)
    baselines = document.get("baselines") or []
    if not isinstance(baselines, list):
        raise WrongRowError("document.baselines is no list")
    for comparison in (document.get("speedup"), document.get("gain"), *baselines):
        if comparison is not None:
            _comparison(comparison)


def _comparison(value: object) -> None:
    if not isinstance(value, dict):
        raise WrongRowError("a comparison is no object")
    _names(value, {"against", "estimate", "low", "high"})
    _text(value["against"], "what a comparison is against")
    for part in ("estimate", "low", "high"):
        _real(value[part], f"{part} of a comparison")


_MEANING: Mapping[str, Callable[[Document], None]] = {
    "study": _study,
    "segments": _segment,
    "sessions": _session,
    "asks": _ask,
    "trials": _trial,
    "pauses": _pause,
    "verdicts": _verdict,
}


def _readings(row: Document) -> Document:
    _names(row, {"trial", "readings"})
    _whole(row["trial"], "trial", least=0)
    if not isinstance(row["readings"], list):
        raise WrongRowError("readings is no list")
    for reading in row["readings"]:
        if not isinstance(reading, list) or len(reading) != 5:
            raise WrongRowError("a reading is no list of metric, value, at, discarded and context")
        metric, value, at, discarded, context = reading
        _text(metric, "the metric of a reading")
        _text(discarded, "why a reading was discarded")
        for number, name in ((value, "a value"), (at, "the time of a reading")):
            if number is not None:
                _real(number, name)
        if context is not None:
            _object(context, "context", _real)
    return row


def _reports(row: Document) -> Document:
    _names(row, {"trial", "step", "at", "metrics"})
    _whole(row["trial"], "trial", least=0)
    _whole(row["step"], "step")
    _real(row["at"], "at")
    _object(row["metrics"], "metrics", _real)
    return row
