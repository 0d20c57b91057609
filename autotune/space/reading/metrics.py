"""The section ``metrics`` of a space file: what is measured, which values are better, and their bounds."""

from __future__ import annotations

import re

from autotune.errors import shorten
from autotune.space.reading.converters import number, one_of, written
from autotune.space.reading.fields import Fields, Problems, as_map
from autotune.space.reading.yaml_nodes import YamlEntry, YamlMap, YamlNode, YamlScalar
from autotune.space.spec import TIME, MetricSpec

KEYS = ("goal", "unit", "at_most", "at_least")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*")
"""What a metric can be called: also as trackers and tuners do (``val/loss``, ``recall@10``, ``GFLOP/s``)."""

INTERVAL = ("low", "high", "n")
"""Endings of the columns that tables have beside a metric's own: its interval and its number of readings."""

_FORM = "a mapping such as {goal: minimize, unit: s}"

_SOURCES = ("wall", "json-line")
"""Values of ``metrics`` inside ``command``, which some write at the top level."""


def read_metrics(node: YamlNode | None, problems: Problems) -> tuple[MetricSpec, ...]:
    """The metrics in file order. At least one must have a goal."""
    if node is None:
        return TIME
    source = node.value if isinstance(node, YamlScalar) and node.value in _SOURCES else ""
    hint = f"to say where a command's numbers are read, write command: {{run: ..., metrics: {source}}}"
    entries = problems.attempt(
        lambda: as_map(node, "metrics", "a mapping: a metric's name, then " + _FORM, hint if source else "")
    )
    if entries is None:
        return TIME
    before = len(problems.found)
    metrics = tuple(_metric(entry, problems) for entry in entries)
    _refuse_interval_names(entries, problems)
    if not any(metric.goal for metric in metrics) and len(problems.found) == before:
        problems.add(
            "no metric has a goal",
            node.where,
            "at least one metric with goal: minimize or goal: maximize",
        )
    return metrics


def _refuse_interval_names(entries: YamlMap, problems: Problems) -> None:
    """Refuse a metric ``time.low`` beside ``time``: tables have a column of that name for ``time``."""
    names = {entry.key for entry in entries}
    for entry in entries:
        name, _, part = entry.key.rpartition(".")
        if part in INTERVAL and name in names:
            problems.add(
                f"{shorten(entry.key)!r} cannot name a metric: it is a column of {shorten(name)!r} in tables",
                entry.where,
                f"another name than {shorten(name)!r} with {', '.join(f'.{one}' for one in INTERVAL)}",
            )


def _metric(entry: YamlEntry, problems: Problems) -> MetricSpec:
    title = f"metrics.{shorten(entry.key)}"
    if not NAME.fullmatch(entry.key):
        problems.add(
            f"{shorten(entry.key)!r} cannot name a metric",
            entry.where,
            "letters, digits, _ . - / @, a letter first",
        )
    node = entry.value
    hint = ""
    if isinstance(node, YamlScalar) and node.value in ("minimize", "maximize"):
        hint = f"write {{goal: {node.value}}}"
    # A metric without keys is only recorded.
    keys = problems.attempt(lambda: as_map(node, title, _FORM, hint)) or YamlMap((), node.where)
    fields = Fields(keys, title, KEYS, problems)
    any_number = number(expected="a finite number")
    metric = MetricSpec(
        entry.key,
        fields.get("goal", one_of("minimize", "maximize"), None),
        fields.get("unit", written, ""),
        fields.get("at_most", any_number, None),
        fields.get("at_least", any_number, None),
    )
    if metric.at_most is not None and metric.at_least is not None and metric.at_most < metric.at_least:
        problems.add(
            f"{title} can never hold: at_most ({metric.at_most:g}) is below at_least ({metric.at_least:g})",
            entry.where,
        )
    return metric
