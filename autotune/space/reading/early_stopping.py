"""The section ``search: {early_stopping: ...}`` of a space file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from typing import Any

from autotune.errors import nearest
from autotune.space.reading.converters import integer, number, one_of, text
from autotune.space.reading.fields import Converter, Fields, Problems, as_map, wrong
from autotune.space.reading.yaml_nodes import YamlNode, YamlScalar, value_at
from autotune.space.spec import EarlyStopping

RUNG_POLICIES = ("asha", "async-hyperband", "successive-halving", "hyperband")
"""The policies of autotune itself, which decide at rungs."""

_PACE = {"n_startup_trials": integer(0), "n_warmup_steps": integer(0), "interval_steps": integer(1)}
_PERCENT = number(0, 100, expected="a percentage between 0 and 100")

PRUNERS: Mapping[str, Mapping[str, Converter[Any]]] = {
    "optuna-median": {**_PACE, "n_min_trials": integer(1)},
    "optuna-percentile": {"percentile": _PERCENT, **_PACE, "n_min_trials": integer(1)},
    "optuna-successive-halving": {"min_early_stopping_rate": integer(0), "bootstrap_count": integer(0)},
    "optuna-hyperband": {"bootstrap_count": integer(0)},
    "optuna-patient": {"wrapped": text, "patience": integer(0), "min_delta": number(-1e-300)},
    "optuna-wilcoxon": {"p_threshold": number(0, 1), "n_startup_steps": integer(0)},
    "optuna-threshold": {
        "lower": number(),
        "upper": number(),
        "n_warmup_steps": integer(0),
        "interval_steps": integer(1),
    },
}
"""Optuna's pruners and their options; other arguments come from ``min``, ``max`` and ``factor``."""

WRAPPABLE = tuple(name for name in PRUNERS if name != "optuna-patient")

POLICIES = (*RUNG_POLICIES, *PRUNERS, "none")

KEYS = tuple(field.name for field in dataclass_fields(EarlyStopping))

_FORM = "a mapping such as {policy: asha, resource: epochs, max: 27}"
_WHOLE = "the steps of a complete trial, such as max: 27"


def read_early_stopping(goals: Sequence[str]) -> Converter[EarlyStopping]:
    """``goals`` are the names of the metrics with a goal; empty: they are not known."""

    def convert(node: YamlNode, title: str) -> EarlyStopping:
        problems = Problems()
        named = node.value if isinstance(node, YamlScalar) else None
        hint = f"write {{policy: {named}, max: ...}}" if named in POLICIES else ""
        section = Fields(as_map(node, title, _FORM, hint), title, KEYS, problems)
        otherwise = "" if "policy" in section else EarlyStopping.policy
        policy = section.get("policy", one_of(*POLICIES), otherwise)
        nothing: Mapping[str, Any] = {}
        settings = EarlyStopping(
            max=section.require("max", integer(2), 0, _WHOLE),
            policy=policy,
            resource=section.get("resource", text, EarlyStopping.resource),
            min=section.get("min", integer(1), EarlyStopping.min),
            factor=section.get("factor", integer(2), EarlyStopping.factor),
            metric=section.get("metric", _metric(goals), ""),
            options=section.get("options", _options(policy), nothing),
        )
        if not problems.found:
            _require_a_rung(settings, section, problems)
            _require_a_limit(settings, section, problems)
        problems.raise_all()
        return settings

    return convert


def _metric(goals: Sequence[str]) -> Converter[str]:
    def convert(node: YamlNode, title: str) -> str:
        name = text(node, title)
        if goals and name not in goals:
            expected = "a metric with a goal: " + ", ".join(goals)
            raise wrong(node, title, expected, nearest(name, goals))
        return name

    return convert


def _options(policy: str) -> Converter[Mapping[str, Any]]:
    """The options of one of Optuna's pruners; our own policies have none."""

    def convert(node: YamlNode, title: str) -> Mapping[str, Any]:
        problems = Problems()
        entries = as_map(node, title, "a mapping of the pruner's options")
        known = PRUNERS.get(policy, {})
        if not policy:  # it is wrong, which is reported already
            return {}
        if not known and list(entries):
            raise wrong(node, title, f"nothing: {policy} has no options")
        if policy == "optuna-patient":  # the options of the one that it wraps stand beside its own
            wrapped = value_at(entries, "wrapped")
            name = (
                problems.attempt(lambda: one_of(*WRAPPABLE)(wrapped, f"{title}.wrapped")) if wrapped else None
            )
            known = {**PRUNERS.get(name or "", {}), **known}
        given = Fields(entries, title, [*known], problems)
        chosen = {key: given.get(key, known[key], None) for key in given.entries if key in known}
        problems.raise_all()
        return chosen

    return convert


def _require_a_rung(settings: EarlyStopping, section: Fields, problems: Problems) -> None:
    """Refuse settings by which no trial could be stopped before its last step."""
    by_rungs = settings.policy in (*RUNG_POLICIES, "optuna-successive-halving", "optuna-hyperband")
    least, why = (settings.min * settings.factor, "min * factor") if by_rungs else (settings.min, "min")
    if settings.policy != "none" and settings.max < least:
        node = section.node("max")
        left = "no rung to stop at" if by_rungs else "no step to stop at"
        problems.add(
            f"{section.name('max')} is {settings.max}, which leaves {left}",
            node.where if node else section.where,
            f"at least {why} = {least}",
        )


def _require_a_limit(settings: EarlyStopping, section: Fields, problems: Problems) -> None:
    options = settings.options
    stops_past_limits = "optuna-threshold" in (settings.policy, options.get("wrapped"))
    if stops_past_limits and not {"lower", "upper"} & set(options):
        problems.add(
            f"{section.title}: optuna-threshold stops nothing without a limit",
            section.where,
            "options: {lower: ...} or {upper: ...}",
        )
    lower, upper = options.get("lower"), options.get("upper")
    if isinstance(lower, float) and isinstance(upper, float) and lower > upper:
        problems.add(
            f"{section.title}: every value is below lower ({lower:g}) or above upper ({upper:g})",
            section.where,
            "lower below upper",
        )
