"""The report of a study: what was won, how sure, against what, how it was found, and how to do it again."""

from __future__ import annotations

from collections.abc import Iterator

from autotune import __version__
from autotune.measure.outcome import Estimate
from autotune.provenance.document import part_of
from autotune.report.evidence import Evidence, load_evidence
from autotune.report.numbers import (
    UNKNOWN_RATIO,
    say_between,
    say_count,
    say_gain,
    say_ratio,
    say_seconds,
    say_times,
    say_value,
)
from autotune.report.pages.findings import how_found, how_steady, what_failed, where_time_went, which_knobs
from autotune.report.pages.origin import how_to_repeat, origin, trials_table
from autotune.report.pages.outcome import front_section, how_sure, what_won
from autotune.report.pages.page import Answer, Page, Section
from autotune.report.pages.subject import Subject, say_time
from autotune.session.answers import load_best
from autotune.session.result import Comparison, Result
from autotune.space.spec import is_speed, say_workload
from autotune.status import Status
from autotune.store.store import Store


def study_page(store: Store, study: str | int | None, now: float) -> Page:
    """The report of a study. ``now`` (POSIX seconds) is printed as its time."""
    record = store.study(study)
    subject = Subject(store, load_evidence(store, record.id), load_best(store, record, front=False), now)
    return Page(
        title=record.label,
        answer=answer_of(subject.result),
        facts=tuple(_facts(subject)),
        sections=tuple(section for section in _sections(subject) if section.parts),
        warnings=tuple(_warnings(subject)),
        footer=f"Written by autotune {__version__} on {say_time(now)} from {store.url}",
        about={"description": f"What autotune found for {record.label}, and how it knows"},
    )


def _sections(subject: Subject) -> Iterator[Section]:
    yield what_won(subject)
    yield how_sure(subject)
    yield front_section(subject)
    yield how_found(subject)
    yield which_knobs(subject)
    yield what_failed(subject)
    yield how_steady(subject)
    yield where_time_went(subject)
    yield how_to_repeat(subject)
    yield origin(subject)
    yield trials_table(subject)


# -- the answer at a glance --------------------------------------------------------------------


def answer_of(result: Result) -> Answer:
    """The answer of a study at a glance."""
    if result.best is None:
        tried = sum(result.statuses.values())
        if tried and not any(Status(status).finished for status in result.statuses):
            begun = f"{say_count(tried, 'trial')} begun"
            return Answer("no answer", "Nothing finished yet", begun, good=False)
        why = f"of {say_count(tried, 'trial')} none succeeded" if tried else "no trial has been run"
        if result.statuses.get(Status.OK):
            why = result.remark
        return Answer("no answer", "Nothing succeeded" if tried else "Nothing tried", why, good=False)
    if not result.defended:
        return _undefended(result)
    if result.is_default:
        tried = sum(result.statuses.values())
        among = f"of {say_count(tried, 'trial')} none" if tried else "no winner of another workload"
        beside = f"{among} was shown to be better"
        return Answer("no better than the default", "The default stays", beside, good=False)
    if (gain := result.gain) is not None:
        beside = f"better than {gain.against} by {say_gain(*gain.interval, result.metric.unit)}"
        return Answer("winner", _value(result), f"{beside}; measured again, interleaved", good=True)
    if result.speedup is None:
        beside = f"{result.remark or 'there is no default to compare with'}; measured again, interleaved"
        return Answer("winner", _value(result), beside, good=True)
    times, beside = _times(result, result.speedup), _how_sure(result, result.speedup)
    return Answer("winner", times, beside, good=True, goes_on=True)


def _undefended(result: Result) -> Answer:
    if result.only_default:
        return Answer("no better than the default", "The default stays", result.undefended, good=False)
    yet = f"{result.undefended} yet: a lucky reading looks the same"
    beside = result.remark if result.nobody_stood or result.read_once else yet
    kind = "best so far: the default" if result.is_default else "best so far"
    return Answer(kind, _value(result), beside, good=False)


def _value(result: Result) -> str:
    name = result.metric.name
    if name not in result.metrics:
        return "no value"
    return f"{name} {say_value(result.metrics[name].value, result.metric.unit)}"


def _times(result: Result, speedup: Comparison) -> str:
    speed = is_speed(result.metric.goal, result.metric.unit)
    word = "faster" if speed else f"better {result.metric.name}"
    return f"{say_times(speedup.estimate)} {word}"


def _how_sure(result: Result, speedup: Comparison) -> str:
    known = say_ratio(*speedup.interval).partition(" ")[2]
    where = "from recorded readings" if result.study.replayed else "measured again, interleaved"
    certain = speedup.low > 1 / UNKNOWN_RATIO and speedup.high < UNKNOWN_RATIO
    between = say_between(*speedup.interval)
    interval = between if certain else known.strip("[]")
    return f"than {speedup.against}; {interval} with {result.confidence:.0%} confidence, {where}"


def _facts(subject: Subject) -> Iterator[tuple[str, str]]:
    result, evidence = subject.result, subject.evidence
    if result.best is not None and result.metric.name in result.metrics:
        yield result.metric.name, say_interval(result.metrics[result.metric.name], result.metric.unit)
    total = sum(result.statuses.values())
    failed = sum(result.failures.values())
    yield "trials", f"{total:,}" + (f", {failed:,} failed" if failed else "")
    if evidence.sessions and not evidence.study.replayed:
        yield "searched", say_seconds(sum(evidence.end_of(s) - s.started_at for s in evidence.sessions))
    searches = [session.settings.get("search") or {} for session in evidence.tried]
    if strategies := dict.fromkeys(str(one["strategy"]) for one in searches if "strategy" in one):
        yield "strategy", ", ".join(strategies)
    if evidence.study.workload:
        yield "workload", say_workload(evidence.study.workload)
    processor = _machine(evidence)
    if processor and not evidence.study.replayed:  # a replay measured nothing on it
        yield "machine", processor
    yield "begun", say_time(evidence.study.created_at)


def _machine(evidence: Evidence) -> str:
    environment = evidence.environment
    devices = part_of(environment, "gpus").get("devices") or []
    names = [str(device.get("name")) for device in devices if isinstance(device, dict)]
    processor = part_of(environment, "machine", "processor").get("name")
    return ", ".join([*dict.fromkeys(names), *([str(processor)] if processor else [])])


def _warnings(subject: Subject) -> Iterator[str]:
    study, evidence, alone = subject.evidence.study, subject.evidence, subject.result.only_default
    if study.replayed:
        yield (
            "REPLAYED from a recording: the outcomes were looked up, nothing was measured here, and no time"
            " in this report is one of a device."
        )
    if subject.running:
        yield (
            f"A search is running, with {say_count(subject.running, 'trial')} in flight. This is the state on"
            f" {say_time(subject.now)}."
        )
    elif dropped := subject.dropped:
        yield (
            "The search was interrupted and its process is gone; not finished:"
            f" {say_count(dropped, 'trial')}. The next search tries again what was not finished."
        )
    elif evidence.sessions and not evidence.verdicts and len(evidence.succeeded) and not alone:
        yield "The finalists were not measured again: the search ended before, or the study asks for none."
    if len(evidence.all_trials) and (segments := evidence.all_trials["segment"].nunique()) > 1:
        yield f"The code changed during the study: its trials ran with {segments} versions of it."


def say_interval(estimate: Estimate, unit: str) -> str:
    """``4.12 ms (4.1 to 4.15)``."""
    from autotune.report.numbers import say_estimate

    return say_estimate(estimate, unit).replace("[", "(").replace("]", ")").replace(", ", " to ")
