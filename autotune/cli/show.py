"""``autotune show``: the studies of a store, or one study with its trials and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, same_store, store_option, study_argument
from autotune.errors import shorten
from autotune.measure.diagnostics import headline

if TYPE_CHECKING:
    from autotune.session.result import Result
    from autotune.store.records import StudyRecord, TrialRecord
    from autotune.store.store import Store

TOP = 10

KNOBS_WIDTH = 100
"""Characters of knobs on a line; if a trial has more, the knobs that all share are shown once, above."""


@click.command("show")
@study_argument("all are listed")
@click.option(
    "--top", type=click.IntRange(1), metavar="N", help="How many of the best trials to list.  [default: 10]"
)
@click.option("--failures", is_flag=True, help="List every failed trial with its message.")
@store_option
@json_option
def command(study: str | None, top: int | None, failures: bool, store: str | None, as_json: bool) -> int:
    """Show the studies of a store; with STUDY, one study: its answer, its best trials and its failures.

    Without STUDY, --top and --failures show the latest study.
    """
    from autotune.report.words.summary import say_answer
    from autotune.session.answers import load_best
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        if study is None and top is None and not failures:
            document: dict[str, Any] = {"store": opened.url, "studies": [_line(s) for s in opened.studies()]}
            text = say_studies(document, same_store(store))
        else:
            record = opened.study(study)
            result = load_best(opened, record, front=len(record.goals) > 1)
            document = describe(opened, result, top or TOP, failed=as_json or failures)
            text = say_study(document, say_answer(result), same_store(store), failures=failures)
    if as_json:
        print_json(document)
    else:
        echo(text)
    return 0


def _line(study: StudyRecord) -> dict[str, Any]:
    return {
        "study": study.name,
        "id": study.id,
        "created": study.created_at,
        "trials": sum(study.counts.values()),
        "replayed": study.replayed,
        "parent": study.parent_id,
        "objective": study.objective,
        "workload": dict(study.workload),
    }


def describe(store: Store, result: Result, top: int, *, failed: bool = True) -> dict[str, Any]:
    """The study as JSON: its answer, its best trials, its failures (if ``failed``), its sessions."""
    from autotune.session.answers import best_trials

    goal = result.metric
    best = best_trials(store, result.study, goal, top)
    kinds = result.failures if failed else ()
    failures = [trial for kind in kinds for trial in store.trials(result.study.id, "search", kind)]
    return {
        **result.to_document(),
        "metric": goal.name,
        "unit": goal.unit,
        "goal": goal.goal,
        "goals": {each.name: each.unit for each in result.goals},
        "differs": result.study.differs,
        "parent": result.study.parent_id,
        "top": [_trial(trial) for trial in best],
        "failed": [_trial(t) for t in sorted(failures, key=lambda t: t.number)],
        "unstated_rules": _unstated(store, result) if failures else [],
        "sessions": [
            {"id": s.id, "started": s.started_at, "finished": s.finished_at, "reason": s.reason}
            for s in store.sessions(result.study.id)
        ],
    }


def _unstated(store: Store, result: Result) -> list[dict[str, Any]]:
    """What may be rules that the failures have in common."""
    from dataclasses import asdict

    from autotune.report.unstated_rules import unstated_rules_of

    _, results = store.results_from(result.study.id, 0)
    ended = (one for one in results if not one.paused)
    return [asdict(rule) for rule in unstated_rules_of(result.study, ended)]


def _trial(trial: TrialRecord) -> dict[str, Any]:
    from autotune.session.result import estimate_document
    from autotune.space.configuration import plain

    return {
        "trial": trial.number,
        "id": trial.id,
        "status": str(trial.status),
        "strategy": trial.strategy,
        "configuration": plain(trial.configuration),
        "metrics": {name: estimate_document(e) for name, e in trial.metrics.items()},
        "message": trial.message,
    }


def say_studies(document: dict[str, Any], store_option: str = "") -> str:
    from collections import Counter
    from datetime import datetime

    from autotune.report.numbers import say_count
    from autotune.space.spec import say_workload

    if not document["studies"]:
        return f"no study in {document['store']}; start with: autotune search gemm-c{store_option}"
    several = Counter(study["study"] for study in document["studies"])
    rows = []
    for study in document["studies"]:
        created = datetime.fromtimestamp(study["created"]).astimezone().strftime("%Y-%m-%d %H:%M")
        label = "  REPLAYED" if study["replayed"] else ""
        # Studies of one name usually differ in the workload.
        apart = f"  {say_workload(study['workload'])}" if several[study["study"]] > 1 else ""
        count, word = say_count(study["trials"], "trial").split()
        rows.append((f"{study['study']}#{study['id']}", created, count, f"{word:6}{label}{apart}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"  {row[0]:<{widths[0]}}  {row[1]}  {row[2]:>{widths[2]}} {row[3]}" for row in rows]
    return "\n".join([f"{document['store']}", *(line.rstrip() for line in lines)])


def say_study(document: dict[str, Any], answer: str, store_option: str = "", *, failures: bool) -> str:
    """A study in lines; ``answer`` says in words what kind of answer it has."""
    from autotune.report.numbers import say_count, say_value
    from autotune.report.unstated_rules import UnstatedRule, say_rule
    from autotune.status import Status

    name, unit = document["metric"], document["unit"]
    label = "  (REPLAYED from a recording)" if document["replayed"] else ""
    statuses = ", ".join(f"{n} {s}" for s, n in document["statuses"].items())
    count = say_count(document["trials"], "trial") + (f" ({statuses})" if statuses else "")
    lines = [
        f"{document['study']}#{document['study_id']}{label}: {count}",
        answer,
        *_standing(document),
    ]
    lines += [said for said in (document["why_nothing"], document["remark"]) if said and said != answer]
    best = {row["trial"] for row in document["front"]}
    if document["top"]:
        lines.append(f"best by {name} in the search:" + ("  (*: on the front)" if best else ""))
    shared, knobs = _told_apart(document["top"])
    lines += shared
    for row, said in zip(document["top"], knobs, strict=True):
        mark = "*" if row["trial"] in best else " "
        value = say_value(row["metrics"][name]["value"], unit)
        lines.append(f"  #{row['trial']:<5}{mark}{value:>12}  {said}")
    lines += _front(document)
    if failed := sum(n for status, n in document["statuses"].items() if Status(status).failed):
        lines.append(f"failed: {failed}" + ("" if failures else "  (--failures lists them)"))
    if failures:
        for row in document["failed"]:
            lines.append(f"  #{row['trial']:<5} {row['status']:14} {shorten(headline(row['message']), 100)}")
        for rule in document["unstated_rules"]:
            lines.append(f"  a rule? {rule['constraint']}: {say_rule(UnstatedRule(**rule))}")
    label = f"{document['study']}#{document['study_id']}{store_option}"
    lines.append(f"one trial: autotune trial NUMBER --study {label}")
    return "\n".join(lines)


def _standing(document: dict[str, Any]) -> list[str]:
    """The values of the best and of the default, measured in the same way, and how the best compares."""
    from autotune.report.numbers import digits_apart, say_gain, say_value
    from autotune.report.words.summary import say_strongest
    from autotune.space.spec import ratio_title

    name, unit, default = document["metric"], document["unit"], document["default"]
    if name not in document["metrics"]:
        return []
    best = document["metrics"][name]["value"]
    digits = digits_apart(best, best if default is None else default["value"])
    # A workload that was held out has no trial of its own winner.
    trial = "" if document["trial"] is None else f"trial {document['trial']}: "
    said = f"{trial}{name} {say_value(best, unit, digits)}"
    if document["is_default"]:
        lines = [f"{said}, which is the default"]
    else:
        lines = [
            said if default is None else f"{said}; the default {say_value(default['value'], unit, digits)}"
        ]
        if found := document["speedup"]:
            lines.append(f"{ratio_title(document['goal'], unit)} {_ratio(found)} over {found['against']}")
        if gain := document["gain"]:
            by = say_gain(gain["estimate"], gain["low"], gain["high"], unit)
            lines.append(f"better by {by} than the default")
    if vendor := document["vendor"]:
        also = say_strongest(len(document["baselines"]))
        lines.append(f"standing {_ratio(vendor)} of {vendor['against']}{also}")
    return lines


def _ratio(comparison: Mapping[str, Any]) -> str:
    from autotune.report.numbers import say_ratio

    return say_ratio(comparison["estimate"], comparison["low"], comparison["high"])


def _front(document: dict[str, Any]) -> list[str]:
    """With several goals, the lines of the Pareto front."""
    from autotune.report.numbers import say_value

    if not document["front"]:
        return []
    goals = document["goals"]
    shared, knobs = _told_apart(document["front"])
    lines = [f"front of {' and '.join(goals)}: {len(document['front'])}", *shared]
    for row, said in zip(document["front"], knobs, strict=True):
        values = [f"{say_value(row['metrics'][name]['value'], unit):>12}" for name, unit in goals.items()]
        lines.append(f"  #{row['trial']:<5}*{' '.join(values)}  {said}")
    return lines


def _told_apart(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Lines of the knobs that all ``rows`` share (none if all knobs fit), and the other knobs of each."""
    from textwrap import wrap

    from autotune.report.knob_views import same_value

    configurations = [row["configuration"] for row in rows]
    said = [_knobs(configuration) for configuration in configurations]
    if len(rows) < 2 or max(map(len, said)) <= KNOBS_WIDTH:
        return [], said
    first, *others = configurations
    shared = {k: v for k, v in first.items() if all(k in o and same_value(o[k], v) for o in others)}
    common = wrap(f"all have {_knobs(shared)}", KNOBS_WIDTH, break_long_words=False, break_on_hyphens=False)
    apart = [{k: v for k, v in each.items() if k not in shared} for each in configurations]
    return [f"  {line}" for line in common if shared], list(map(_knobs, apart))


def _knobs(configuration: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_short(value)}" for name, value in configuration.items())


def _short(value: Any) -> str:
    from autotune.report.text import MOST_OF_A_NAME
    from autotune.report.words.summary import say_knob

    said = ",".join(map(say_knob, value)) if isinstance(value, list) else say_knob(value)
    return shorten(said, MOST_OF_A_NAME)  # autotune best prints values in full
