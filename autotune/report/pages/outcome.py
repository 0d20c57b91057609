"""Sections of a study's report: the winner, the final measurement, and with several goals the front."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from autotune.measure.outcome import Estimate
from autotune.report import figures
from autotune.report.knob_views import same_value, say_configuration
from autotune.report.numbers import digits_apart, say_count, say_estimate, say_ratio, say_value
from autotune.report.pages.page import Commands, Paragraph, Part, Picture, Section, Table
from autotune.report.pages.subject import Subject
from autotune.report.rows import rows_of
from autotune.report.standing import finale, front
from autotune.report.text import shown
from autotune.report.words.what_next import form_to_use
from autotune.session.answers import default_in
from autotune.space.configuration import plain

MOST_ON_FRONT = 40
"""The most configurations of a front that are listed."""


def what_won(subject: Subject) -> Section:
    """The configuration beside the default, and its metrics."""
    result = subject.result
    if result.best is None:
        return Section("What was found", ())
    defended = "The default stays" if result.is_default else "What won"
    title = defended if result.defended or result.only_default else "What is best so far"
    best = {name: plain(value) for name, value in result.best.items()}
    default = _default(subject)
    rows = []
    for name in dict.fromkeys([*best, *default]):
        # In full, since people copy these values.
        now, before = (shown(side[name]) if name in side else "-" for side in (best, default))
        changed = default and not same_value(best.get(name), default.get(name))
        rows.append((name, now, before, "changed" if changed else ""))
    parts: list[Part] = [Table("The configuration", ("knob", "best", "default", "changed?"), rows)]
    units = {m["name"]: m["unit"] for m in result.study.metrics}
    metrics = [(name, say_estimate(e, units.get(name, "")), f"{e.n}") for name, e in result.metrics.items()]
    if metrics:
        parts.append(Table("What it measured", ("metric", "value [interval]", "readings"), metrics))
    if result.trial is not None:
        parts.append(Paragraph(f"It was tried first as trial {result.trial}."))
    if result.remark:
        parts.append(Paragraph(result.remark[0].upper() + result.remark[1:] + ".", "note"))
    if not result.is_default:
        which = f"--study {shlex.quote(result.study.label)} --store {shlex.quote(subject.store.url)}"
        what = "the winner" if result.defended else "the best so far"
        form, others = form_to_use(result.study)
        parts.append(Commands([(f"autotune best --format {form} {which}", f"{what} as {others}, to use it")]))
    return Section(title, parts, short=True)


def _default(subject: Subject) -> Mapping[str, Any]:
    """The default of the present space, or else the configuration that was tried as the default.

    If neither is known, the defaults of the single knobs.
    """
    evidence = subject.evidence
    if (default := default_in(evidence.study)) is not None:
        return {name: plain(value) for name, value in default.items()}
    own = evidence.all_trials
    tried = own[(own["purpose"] == "default") | (own["kind"] == "default")]
    if len(tried):
        return evidence.configurations[int(tried["trial"].iloc[-1])]
    return {knob.name: knob.default for knob in evidence.knobs if knob.default is not None}


def how_sure(subject: Subject) -> Section:
    """The contenders that were measured again, and how they compare."""
    result, evidence = subject.result, subject.evidence
    frame = finale(evidence)
    if not evidence.verdicts or frame.empty:
        return Section("How sure that is", ())
    document = evidence.verdicts[-1].document
    unit = result.metric.unit
    again = "measured again, interleaved"
    compared = "The recorded readings of the contenders were compared"
    how = compared if result.study.replayed else f"The contenders were {again}"
    rounds = f" in {say_count(document['rounds'], 'round')}" if document.get("rounds") else ""
    if result.processes > 1:
        rounds += f", then the winner and the default in {result.processes} runs of fresh processes"
    parts: list[Part] = [
        Paragraph(f"{how}{rounds}; the intervals hold with {result.confidence:.0%} confidence each.")
    ]
    measured = frame[frame["value"].notna()]
    digits = digits_apart(measured["value"].min(), measured["value"].max())
    rows = [
        (
            row.label,
            row.role,
            say_estimate(Estimate(row.value, row.low, row.high, max(int(row.readings), 2)), unit, digits)
            if math.isfinite(row.value)
            else row.status,
            f"{row.readings}",
        )
        for row in rows_of(frame)
    ]
    table = Table("Measured again", ("who", "as", f"{result.metric.name} [interval]", "readings"), rows)
    if len(measured):
        first = measured.iloc[0]
        described = (
            f"{result.metric.name} of {say_count(len(measured), 'contender')} with intervals; the best is"
            f" {first['label']}"
            f" at {say_value(float(first['value']), unit)}"
        )
        parts.append(Picture(figures.finale_figure(_with_attrs(measured, frame)), described, table))
    else:
        parts.append(table)
    against = [c for c in (None if result.is_default else result.speedup, *result.baselines) if c]
    ratios = [(c.against, say_ratio(*c.interval)) for c in against]
    if ratios:
        parts.append(Table("The winner over", ("over", "ratio [interval], more is better"), ratios))
    return Section("How sure that is", parts, short=True)


def _with_attrs(part: Any, whole: Any) -> Any:
    part = part.reset_index(drop=True)
    part.attrs |= whole.attrs
    return part


def front_section(subject: Subject) -> Section:
    """With several goals, the Pareto front."""
    evidence = subject.evidence
    if len(evidence.goals) < 2:
        return Section("The front", ())
    frame = front(evidence)
    best = frame[frame["front"]].sort_values(f"metric.{evidence.goals[0].name}", kind="stable")
    if best.empty:
        return Section("The front", (Paragraph("No trial has a number for every goal."),))
    names = [goal.name for goal in evidence.goals]
    rows = [
        (
            f"trial {row['trial']}",
            *(say_value(row[f"metric.{goal.name}"], goal.unit) for goal in evidence.goals),
            say_configuration(evidence.configurations[row["trial"]]),
        )
        for row in best.head(MOST_ON_FRONT).to_dict("records")
    ]
    table = Table("On the front", ("trial", *names, "configuration"), rows)
    on_it = f"{len(best)} of {say_count(len(frame), 'configuration')} {'is' if len(best) == 1 else 'are'}"
    said = f"{on_it} beaten by no other in {' and '.join(names)}."
    picture = Picture(figures.front_figure(frame), f"{names[0]} against {names[1]}: {said}", table)
    note = Paragraph("As measured while searching, not measured again.", "note")
    return Section("The front", (Paragraph(said), picture, note), short=True)
