"""Whether the rows of an archive are what a store may hold. Types follow from the schema, the rest is here.

A store takes what it is given and hands it to everything else. So what comes from outside is held against the
types of its columns, and the documents in it against what autotune writes there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

import sqlalchemy as sa

from autotune.interop.archives.documents import FACTS, METRIC, REASON, SEGMENT, SETTINGS, STUDY, VERDICT
from autotune.interop.archives.kinds import (
    WrongRowError,
    any_list,
    any_object,
    flag,
    key,
    list_of,
    moment,
    object_of,
    real,
    require_names,
    text,
    whole,
)
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.portable import Document, columns
from autotune.store.records import NO_ROOM, Purpose
from autotune.store.schema import (
    Count,
    Json,
    Number,
    OneOf,
    Real,
    Whole,
    Words,
    asks,
    pauses,
    segments,
    sessions,
    space_revisions,
    studies,
    trials,
)
from autotune.store.schema import verdicts as verdicts_table

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
_HASH = re.compile("[0-9a-f]{64}")


def check_row(part: str, row: Document) -> Document:
    """``row`` itself, where it may be one of ``part``. Raises :class:`WrongRowError`."""
    if part == "readings":
        return _readings(row)
    if part == "reports":
        return _reports(row)
    require_names(row, {c.name for c in columns(_TABLES[part])} | set(_EXTRA.get(part, ())))
    for name in _EXTRA.get(part, ()):
        if not (name == "parent" and row[name] is None):
            whole(row[name], name, least=0)
    for column in columns(_TABLES[part]):
        _typed(column, row[column.name], part)
    if part in _MEANING:
        _MEANING[part](row)
    return row


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
        flag(value, name)
    elif isinstance(column.type, Count):
        whole(value, name, least=0)
    elif isinstance(column.type, (sa.Integer, Whole)):
        whole(value, name)
    elif isinstance(column.type, (Real, Number)):
        (moment if name.endswith("_at") else real)(value, name)
    elif isinstance(column.type, (Words, OneOf)):
        text(value, name)
    else:
        key(value, name)


def _digest(value: object, name: str) -> None:
    if not isinstance(value, str) or _HASH.fullmatch(value) is None:
        raise WrongRowError(f"{name} is no hash of a file")


def _metrics(value: object, without_error: bool = False) -> None:
    """Estimates by name; ``without_error``: those of an early verdict may have none."""

    def estimate(one: object, name: str) -> None:
        if not isinstance(one, dict):
            raise WrongRowError(f"{name} is no estimate")
        optional = {"error"} - one.keys() if without_error else set()
        require_names(one, {"value", "low", "high", "n", "error"} - optional)
        for part in one.keys() - {"n"}:
            real(one[part], f"{name}.{part}")
        whole(one["n"], f"{name}.n", least=0)

    object_of(estimate)(value, "metrics")


# -- what types do not say ------------------------------------------------------------------------------


def _study(row: Document) -> None:
    for name in ("workload", "differs"):
        any_object(row[name], name)
    STUDY(row["document"], "document")
    if "space" not in row["document"]:
        raise WrongRowError("document has no 'space'")
    list_of(METRIC)(row["metrics"], "metrics")
    goals = 0
    for metric in row["metrics"]:
        if not {"name", "goal", "unit"} <= set(metric) <= {"name", "goal", "unit", "at_most", "at_least"}:
            raise WrongRowError("metrics has something else than metrics")
        text(metric["name"], "the name of a metric")
        if metric["goal"] not in (None, "minimize", "maximize"):
            raise WrongRowError("a metric has a goal that is none")
        goals += metric["goal"] is not None
    if not goals:
        raise WrongRowError("no metric has a goal")


def _segment(row: Document) -> None:
    object_of(_digest)(row["artifacts"], "artifacts")
    SEGMENT(row["document"], "document")
    for file in row["document"].get("files") or ():
        text(file.get("name"), "the name of a file")


def _session(row: Document) -> None:
    settings = row["settings"]
    SETTINGS(settings, "settings")
    for source in settings.get("sources", ()):
        if missing := {"study", "trials"} - set(source):
            raise WrongRowError(f"a source has no {sorted(missing)[0]!r}")


def _ask(row: Document) -> None:
    for number in any_list(row["trials"], "trials"):
        if number is not None:
            whole(number, "a trial's number", least=NO_ROOM)


def _trial(row: Document) -> None:
    if row["status"] not in {status.value for status in Status}:
        raise WrongRowError(f"status is {str(row['status'])[:40]!r}")
    if row["purpose"] not in get_args(Purpose):
        raise WrongRowError(f"purpose is {str(row['purpose'])[:40]!r}")
    any_object(row["configuration"], "configuration")
    FACTS(row["facts"], "facts")
    REASON(row["reason"], "reason")
    object_of(real)(row["phases"], "phases")
    object_of(_digest)(row["artifacts"], "artifacts")
    if _configuration(row["configuration"]).hash != row["hash"]:
        raise WrongRowError("its configuration is not the one that its hash stands for")


def _configuration(values: Document) -> Configuration:
    try:
        return Configuration(values)
    except TypeError as error:
        raise WrongRowError(f"configuration: {error}") from None


def _pause(row: Document) -> None:
    FACTS(row["facts"], "facts")
    object_of(real)(row["phases"], "phases")


def _verdict(row: Document) -> None:
    document = row["document"]
    VERDICT(document, "document")
    if document.get("configuration") is not None:
        _configuration(document["configuration"])
    _metrics(document.get("metrics", {}), without_error=True)
    for comparison in (document.get("speedup"), document.get("gain"), *(document.get("baselines") or ())):
        if comparison is not None:
            _comparison(comparison)


def _comparison(value: object) -> None:
    comparison = any_object(value, "a comparison")
    require_names(comparison, {"against", "estimate", "low", "high"})
    text(comparison["against"], "what a comparison is against")
    for part in ("estimate", "low", "high"):
        real(comparison[part], f"{part} of a comparison")


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
    require_names(row, {"trial", "readings"})
    whole(row["trial"], "trial", least=0)
    for reading in any_list(row["readings"], "readings"):
        if not isinstance(reading, list) or len(reading) != 5:
            raise WrongRowError("a reading is no list of metric, value, at, discarded and context")
        metric, value, at, discarded, context = reading
        text(metric, "the metric of a reading")
        text(discarded, "why a reading was discarded")
        for number, name in ((value, "a value"), (at, "the time of a reading")):
            if number is not None:
                real(number, name)
        if context is not None:
            object_of(real)(context, "context")
    return row


def _reports(row: Document) -> Document:
    require_names(row, {"trial", "step", "at", "metrics"})
    whole(row["trial"], "trial", least=0)
    whole(row["step"], "step")
    real(row["at"], "at")
    object_of(real)(row["metrics"], "metrics")
    return row
