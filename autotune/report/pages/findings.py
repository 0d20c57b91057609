"""Sections of a study's report: how the answer was found, which knobs matter, what failed, noise and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from autotune.provenance.document import part_of
from autotune.report import figures
from autotune.report.convergence import convergence
from autotune.report.evidence import Evidence
from autotune.report.failures import failed_again, failure_map, failures
from autotune.report.importance import importance, interactions, say_learned_from
from autotune.report.numbers import say_count, say_seconds, say_value
from autotune.report.pages.page import Paragraph, Part, Picture, Section, Table, Text
from autotune.report.pages.subject import Subject
from autotune.report.relations import pair, parallel
from autotune.report.rows import rows_of
from autotune.report.spend import spend
from autotune.report.steadiness import CONTEXT, steadiness
from autotune.report.text import one_line
from autotune.report.unstated_rules import Tried, say_rule, unstated_rules
from autotune.report.words.story import reasons_of
from autotune.status import Status

if TYPE_CHECKING:
    import pandas as pd


MILESTONES = tuple(m * 10**e for e in range(7) for m in (1, 2, 5))
"""The numbers of trials at which the table of a search shows its best so far."""


# -- how it was found --------------------------------------------------------------------------


def how_found(subject: Subject) -> Section:
    """Which strategy proposed, and how the best improved, compared with random draws."""
    frame = convergence(subject.evidence)
    parts: list[Part] = [Paragraph(_searched(subject))]
    if frame["best"].notna().any():
        parts += [_curve(frame), Paragraph(_beside_random(frame), "note")]
    parts += _why_tried(subject)
    return Section("How it was found", parts)


def _searched(subject: Subject) -> str:
    evidence = subject.evidence
    if not evidence.tried:
        held_out = "Nothing was searched for this workload: what won for others was measured on it."
        return held_out if evidence.sessions else "No search has begun."
    counts = ", ".join(f"{n:,} {status}" for status, n in evidence.statuses.items()) or "no trial yet"
    last = evidence.tried[-1]
    searches = [session.settings.get("search") or {} for session in evidence.tried]
    named = [f"{one['strategy']} (seed {one.get('seed', 0)})" for one in searches if "strategy" in one]
    by = "A caller"
    if several := list(dict.fromkeys(named)):
        by = f"{'Strategy' if len(several) == 1 else 'Strategies'} {', '.join(several)}"
    times = "once" if len(evidence.tried) == 1 else f"in {len(evidence.tried)} sessions"
    ended = f" It ended by: {last.reason}." if last.reason else ""
    return f"{by} proposed, {times}: {counts}.{ended}"


def _curve(frame: pd.DataFrame) -> Picture:
    unit, metric = frame.attrs["unit"], frame.attrs["metric"]
    places = sorted({m - 1 for m in MILESTONES if m <= len(frame)} | {len(frame) - 1})
    rows = [
        (
            f"{row.tries:,}",
            say_value(row.best, unit) if math.isfinite(row.best) else "none yet",
            say_value(row.random, unit) if math.isfinite(row.random) else "-",
            f"{say_value(row.random_low, unit)} to {say_value(row.random_high, unit)}"
            if math.isfinite(row.random)
            else "-",
        )
        for row in rows_of(frame.iloc[places])
    ]
    headings = ("trials", "best so far", "random, expected", "random, nine times in ten")
    best = say_value(float(frame["best"].iloc[-1]), unit)
    described = (
        f"Best {metric} so far over {say_count(len(frame), 'trial')}: it ends at {best}, beside random draws"
    )
    table = Table("The best after so many trials", headings, rows, folded=True)
    return Picture(figures.convergence_figure(frame), described, table)


def _beside_random(frame: pd.DataFrame) -> str:
    draws = frame.attrs["to_match"]
    said = "No random draw was as good, so it cannot be said how many would be needed."
    if math.isfinite(draws):
        needed = say_count(round(draws), "try", "tries")
        said = f"Random draws are expected to need {needed} to find one as good."
    return f"{said} This is an estimate: random is judged by {frame.attrs['drawn_from']}."


def _why_tried(subject: Subject) -> list[Part]:
    """Why the winner was proposed."""
    result = subject.result
    if result.trial is None:
        return []
    found = subject.store.numbered(result.study.id, [result.trial])
    if not found or not found[0].reason:
        return []
    reasons = reasons_of(subject.store, result.study, found[0])
    said = "; ".join([*reasons.because, *(f"expected {one.say()}" for one in reasons.expected)])
    return [Paragraph(f"Why trial {result.trial} was tried: {said}.")]


# -- knobs -------------------------------------------------------------------------------------


def which_knobs(subject: Subject) -> Section:
    """Importance, interactions, and lines through all knobs."""
    evidence = subject.evidence
    frame = importance(evidence)
    if frame.empty:
        said = f"Which knobs matter cannot be said: {frame.attrs['remark']}."
        return Section("Which knobs matter", (Paragraph(said),) if len(evidence.trials) else ())
    rows = [
        (row.knob, f"{row.importance:z.0%}", f"{row.low:z.0%} to {row.high:z.0%}") for row in rows_of(frame)
    ]
    headings = ("knob", "share of the variance", "nine splits in ten")
    table = Table("Importance of each knob", headings, rows, folded=True)
    knob, share, _ = rows[0]
    described = f"Importance of {say_count(len(rows), 'knob')}; {knob} is first with {share}"
    explained = max(frame.attrs["explained"], 0.0)
    parts: list[Part] = [
        Paragraph(
            f"A forest, fitted to {say_learned_from(frame)}, explains {explained:.0%} of the held-out"
            f" variance of {frame.attrs['scale']}{evidence.metric.name}. This holds for the configurations"
            " that were tried, which do not cover the space evenly."
        ),
        Picture(figures.importance_figure(frame), described, table),
    ]
    if frame.attrs["remark"]:
        parts.insert(1, Paragraph(frame.attrs["remark"].capitalize() + ".", "note"))
    else:
        parts += _together(subject, frame["knob"].tolist())
    lines = parallel(evidence)
    if len(lines):
        described = f"{len(lines)} trials as lines through their values of all knobs; the best stand out"
        parts.append(Picture(figures.parallel_figure(lines), described))
    return Section("Which knobs matter", parts)


def _together(subject: Subject, ranked: Sequence[str]) -> list[Part]:
    frame = interactions(subject.evidence, ranked)
    if frame.empty:
        return []
    top = frame.iloc[0]
    rows = [(f"{row.knob} and {row.other}", f"{row.strength:.1%}") for row in rows_of(frame.head(10))]
    table = Table("What pairs of knobs do only together", ("pair", "of the variance"), rows, folded=True)
    cells = pair(subject.evidence, top["knob"], top["other"])
    metric = subject.evidence.metric.name
    described = f"The best {metric} at each value of {top['knob']} and {top['other']}; the best stand out"
    return [Picture(figures.pair_figure(cells), described, table)]


# -- failures ----------------------------------------------------------------------------------


def what_failed(subject: Subject) -> Section:
    """Each kind of failure with its first message, and the values of knobs at which it occurs."""
    evidence = subject.evidence
    frame = failures(evidence)
    if frame.empty:
        none = (Paragraph("No trial of the search failed."),) if len(evidence.trials) else ()
        return Section("What failed", (*none, *_failed_again(evidence)), short=True)
    rows = [
        (row.status, f"{row.trials:,}", f"{row.share:.1%}", f"{row.first}", row.message or "-")
        for row in rows_of(frame)
    ]
    headings = ("outcome", "trials", "of all", "first in trial", "message")
    parts: list[Part] = [Table("Kinds of failure", headings, rows), *_unstated(evidence)]
    places = failure_map(evidence)
    if len(places) and places["tells"].max() > 0.02:
        worst = places[places["knob"] == places["knob"].iloc[0]].sort_values("share").iloc[-1]
        described = (
            f"Share of trials that failed at each value of each knob; {worst['knob']} tells most, at"
            f" {worst['value']} {worst['share']:.0%} failed"
        )
        cells = [
            (row.knob, row.value, f"{row.trials:,}", f"{row.failed:,}", f"{row.share:.0%}", row.status or "-")
            for row in rows_of(places[places["failed"] > 0].head(60))
        ]
        columns = ("knob", "value", "trials", "failed", "share", "mostly")
        table = Table("Failures by knob and value", columns, cells, folded=True)
        parts.append(Picture(figures.failure_figure(places), described, table))
    parts += _failed_again(evidence)
    parts += _printed(subject, frame["first"].tolist()[:3])
    return Section("What failed", parts, short=True)


def _unstated(evidence: Evidence) -> list[Part]:
    """Constraints that the space seems to lack, for the reader to judge."""
    own, space = evidence.trials, part_of(evidence.study.document, "space")
    measured = own.filter(like="metric.").notna().any(axis=1)
    tried = [
        Tried(evidence.configurations[number], Status(status), bool(has))
        for number, status, has in zip(own["trial"], own["status"], measured, strict=True)
    ]
    rows = [(rule.constraint, say_rule(rule)) for rule in unstated_rules(tried, space)]
    return [Table("Constraints that the space seems to lack", ("rule", "evidence"), rows)] if rows else []


def _failed_again(evidence: Evidence) -> list[Part]:
    """The contenders that failed in a finale; they may have succeeded in the search."""
    frame = failed_again(evidence)
    rows = [(row.label, row.status, f"{row.trial}", row.message or "-") for row in rows_of(frame)]
    headings = ("who", "outcome", "as trial", "message")
    return [Table("Failed when measured again", headings, rows)] if rows else []


def _printed(subject: Subject, numbers: Sequence[int]) -> list[Part]:
    found = subject.store.numbered(subject.evidence.study.id, numbers)
    return [
        Text(f"What trial {trial.number} ({trial.status}) printed last", trial.stderr.strip(), tail=True)
        for trial in found
        if trial.stderr.strip()
    ]


# -- readings and time -------------------------------------------------------------------------


def how_steady(subject: Subject) -> Section:
    """Readings over time beside the state of the machine."""
    if subject.evidence.study.replayed:
        return Section("How steady the readings were", ())
    frame = steadiness(subject.store, subject.evidence)
    if frame.empty:
        return Section("How steady the readings were", ())
    noise, trials = frame.attrs["noise"], frame.attrs["trials"]
    are = "is" if len(frame) == 1 else "are"
    said = f"{say_count(len(frame), 'reading')} of {say_count(trials, 'trial')} {are} shown."
    if math.isfinite(noise):
        said += f" Within a trial, a reading typically differs by {noise:.2%} from the trial's median."
    discarded = frame.loc[frame["discarded"] != "", "discarded"]
    if len(discarded):
        why = ", ".join(
            f"{one_line(reason)} ({count:,})" for reason, count in discarded.value_counts().items()
        )
        said += f" {len(discarded):,} {'was' if len(discarded) == 1 else 'were'} discarded: {why}."
    rows = _sampled(frame)
    headings = ("what", "median", "95 % below", "most")
    table = Table("What the machine did meanwhile", headings, rows, folded=True) if rows else None
    described = "Each reading relative to the median of its trial, over time; below, the state of the machine"
    picture = Picture(figures.steadiness_figure(frame), described, table)
    return Section("How steady the readings were", (Paragraph(said), picture))


def _sampled(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    rows = []
    for name, meaning in CONTEXT.items():
        if name in frame.columns:
            values = frame[name].dropna().to_numpy(dtype=np.float64)
            numbers = (np.median(values), np.quantile(values, 0.95), values.max())
            rows.append((meaning, *(f"{number:.3g}" for number in numbers)))
    return rows


def where_time_went(subject: Subject) -> Section:
    """The wall-clock time by what the measuring device did."""
    if subject.evidence.study.replayed:
        return Section("Where the time went", ())
    frame = spend(subject.evidence)
    if frame.empty or not frame.attrs["wall"]:
        return Section("Where the time went", ())
    table = spend_table(frame)
    wall, busy = say_seconds(frame.attrs["wall"]), frame.attrs["busy"]
    said = f"{wall} of searching; the device had a trial for {busy:.0%} of it."
    picture = Picture(figures.spend_figure(frame), f"The time of the search by part: {said}", table)
    return Section("Where the time went", (Paragraph(said), picture))


def spend_table(frame: pd.DataFrame) -> Table:
    """The parts of a search's time as text."""
    rows = [
        (
            row.part,
            say_seconds(row.seconds),
            f"{row.share:.1%}" if row.where == "device" else row.where,
            row.meaning,
        )
        for row in rows_of(frame)
    ]
    return Table("The time by part", ("part", "time", "of the search", "what it is"), rows, folded=True)
