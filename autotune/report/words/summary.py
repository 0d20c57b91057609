"""The result of a search in words: what won, how sure that is, compared with what, what failed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from autotune.errors import shorten_middle
from autotune.measure.facts import MISTAKE, SAME_CODE_AS, SURE
from autotune.report.knob_views import same_value
from autotune.report.numbers import (
    digits_apart,
    say_count,
    say_estimate,
    say_gain,
    say_ratio,
    say_value,
)
from autotune.report.text import shown
from autotune.report.unstated_rules import say_rule, unstated_rules_of
from autotune.report.words.nearest_to_bounds import nearest_to_bounds
from autotune.report.words.throughput import disagreement
from autotune.report.words.what_next import what_next
from autotune.session.answers import default_in
from autotune.session.caveats import MOST_OF_A_MESSAGE
from autotune.session.remarks.oversubscribed import say_oversubscribed
from autotune.session.result import Result
from autotune.session.same_failure import MISTAKEN
from autotune.space.configuration import Value, plain
from autotune.space.reading.given_facts import given_beside
from autotune.space.spec import Budget, ratio_title
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord

MOST_KNOBS = 24
"""With more knobs than this, only those that differ from the default are printed."""

_TITLES = 14
"""The width of the titles beside which the lines on a result stand."""


def summarize(
    result: Result,
    *,
    space: str = "",
    program: str = "autotune",
    store_option: str | None = None,
    budget: Budget | None = None,
) -> str:
    """The lines that ``autotune search`` prints at its end.

    ``space`` and ``program`` are how the suggested commands name the space file and autotune.
    ``store_option`` is their ``--store`` option, with a leading space; ``None`` means the store's whole
    address. ``budget`` is that of the search.
    """
    if store_option is None:
        store_option = f" --store {shlex.quote(result.store)}"
    lines = ["", headline(result), *_given(result.study)]
    if result.best is not None:
        lines += ["", *_configuration(result), *_metrics(result), *_standing(result), *_front(result)]
        lines += _throughput(result)
    lines += [
        "",
        _tried(result),
        *_why_failed(result),
        *_unstated(result),
        *_nearest_to_bounds(result),
        *_oversubscribed(result),
        _row("stored in", f"{result.store}  (study {result.study.name}#{result.study.id})"),
    ]
    lines += ["", *what_next(result, space, program, store_option, budget or Budget())]
    return "\n".join(lines)


def _row(title: str, text: str) -> str:
    """A line of the table below the configuration; without a title it goes on with the one above."""
    return f"{title:{_TITLES}} {text}"


def headline(result: Result) -> str:
    """One line: what kind of answer this is, and whether it is a replay."""
    label = "REPLAYED from a recording, nothing was measured here: " if result.study.replayed else ""
    return f"{label}{say_answer(result)}"


def say_answer(result: Result) -> str:
    """What kind of answer this is."""
    if result.best is None:
        return result.remark
    if result.only_default:
        return f"no better than the default was found for {result.study.name}: {result.undefended}"
    if not result.defended:
        return f"best so far of {result.study.name}, {result.undefended}"
    if result.is_default:
        return f"no better than the default was found for {result.study.name}"
    return f"winner of {result.study.name}"


def _given(study: StudyRecord) -> list[str]:
    """A line on facts of the workload that were given instead of those in the space file."""
    given = given_beside(study.spec_text, study.workload)
    return [f"workload {', '.join(given)}, instead of the space file's"] if given else []


def _configuration(result: Result) -> list[str]:
    assert result.best is not None
    named, more = worth_saying(result.best, result.study)
    width = max(map(len, named), default=0)
    said = (f"{name:{width}}  {say_knob(value)}" for name, value in named.items())
    return [f"  {line}" for line in (*said, *more)]


def worth_saying(
    configuration: Mapping[str, Value], study: StudyRecord
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The knobs to print, and a text on those left out: of many knobs, those that are as in the default."""
    default = default_in(study) if len(configuration) > MOST_KNOBS else None
    if default is None:
        return dict(configuration), ()
    other = {
        name: v
        for name, v in configuration.items()
        if name not in default or not same_value(default[name], v)
    }
    return other, (f"and {say_count(len(configuration) - len(other), 'knob')} as in the default",)


def say_knob(value: Value) -> str:
    """A knob's value on one line."""
    return shown(plain(value))


def _metrics(result: Result) -> list[str]:
    units = {m["name"]: m["unit"] for m in result.study.metrics}
    said = {name: say_estimate(e, units.get(name, "")) for name, e in result.metrics.items()}
    goal = result.metric
    if goal.name in said and result.default is not None and not result.is_default:
        best, default = result.metrics[goal.name], result.default
        digits = digits_apart(best.value, default.value)
        sides = (say_estimate(one, goal.unit, digits) for one in (best, default))
        said[goal.name] = "; the default ".join(sides)
    wide = max(_TITLES, *map(len, said)) if said else _TITLES
    return ["", *(f"{name:{wide}} {text}" for name, text in said.items())]


def say_goals(result: Result, trial: TrialRecord) -> str:
    """The value of each goal of a trial: ``time 4.1 ms, energy 2 J``."""
    values = [(g, trial.metrics[g.name].value) for g in result.goals if g.name in trial.metrics]
    return ", ".join(f"{goal.name} {say_value(value, goal.unit)}" for goal, value in values)


def _front(result: Result) -> list[str]:
    """With several goals: how many configurations are on the front, and which of them were measured again."""
    goals = [goal.name for goal in result.goals]
    if len(goals) < 2:
        return []
    others = f"{say_count(len(result.front), 'configuration')} that no other beats in {' and '.join(goals)}"
    if result.statuses.get(Status.PRUNED):
        others += ", of those that were not stopped early"
    return [_row("front", others), _row("", f"(the winner and the finalists are by {goals[0]})")]


def _throughput(result: Result) -> list[str]:
    """A line if the trial with the most samples a second does not learn soonest."""
    said = disagreement(result.trials, result.metric)
    return [_row("throughput", said)] if said else []


def _standing(result: Result) -> list[str]:
    lines = []
    if result.speedup is not None and not result.is_default:
        title = ratio_title(result.metric.goal, result.metric.unit)
        lines.append(_row(title, f"{say_ratio(*result.speedup.interval)} over the default"))
    if (gain := result.gain) is not None and not result.is_default:
        said = say_gain(*gain.interval, result.metric.unit)
        lines.append(_row("better by", f"{said} than the default"))
    vendor = result.vendor
    if vendor is not None:
        also = say_strongest(len(result.baselines))
        lines.append(_row("standing", f"{say_ratio(*vendor.interval)} of {vendor.against}{also}"))
    if lines:
        lines.append(_row("", f"({_how_sure(result)})"))
    if result.remark:
        lines.append(_row("remark", result.remark))
    return lines


def say_strongest(baselines: int) -> str:
    """What the baseline is that a winner is compared with, if there are several."""
    return f", the strongest of {baselines} baselines" if baselines > 1 else ""


def _how_sure(result: Result) -> str:
    confidence = f"{result.confidence:.0%}"
    if result.study.replayed:
        return f"{confidence} interval, from recorded readings"
    if result.processes > 1:
        return f"{confidence} interval, of {result.processes} runs in fresh processes, interleaved"
    return f"{confidence} interval, finalists and default measured again, interleaved"


def _tried(result: Result) -> str:
    parts = say_outcomes([result])
    same = sum(SAME_CODE_AS in trial.facts for trial in result.trials)
    parts += [f"{same} with the code of another, not measured again"] if same else []
    parts += [f"ended by: {result.reason}"] if result.reason else []  # none of ask and tell
    return _row("tried", "; ".join(parts))


def say_outcomes(results: Sequence[Result]) -> list[str]:
    """How many trials all ``results`` have together, how many failed in which way, and other outcomes."""
    statuses: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for result in results:
        statuses.update(result.statuses)
        failures.update(result.failures)
    failed = ", ".join(f"{n} {status}" for status, n in failures.items())
    said = {"pruned": "pruned", "running": "still running", "lost": "lost, to be tried again"}
    other = ", ".join(f"{n} {said[status]}" for status, n in statuses.items() if status in said and n)
    tried = say_tried(statuses.total(), sum(result.outside for result in results))
    return [tried, f"failed: {failed}" if failed else "none failed", *([other] if other else [])]


def say_tried(trials: int, outside: int) -> str:
    """``89 trials (44 in the space as it is now)``: only the latter count for the budget."""
    now = f" ({trials - outside} in the space as it is now)" if outside else ""
    return f"{say_count(trials, 'trial')}{now}"


def _why_failed(result: Result) -> list[str]:
    """The first message of each kind of failure; where nothing succeeded, also of what was lost or pruned."""
    if result.reason == MISTAKEN:
        return _mistake(result)
    first: dict[str, str] = {}
    for trial in result.trials:
        cut_off = result.best is None and trial.status in (Status.LOST, Status.PRUNED)
        if (trial.status.failed or cut_off) and trial.message.strip():
            message = shorten_middle(trial.message, MOST_OF_A_MESSAGE)
            said = f"{trial.status}, as trial {trial.number}: {message}"
            first.setdefault(str(trial.status), _row("", said))
    return list(first.values())


def _unstated(result: Result) -> list[str]:
    """Constraints that the space seems to lack, to be added to the space file."""
    rules = unstated_rules_of(result.study, result.trials)
    if not rules:
        return []
    lines = [line for rule in rules for line in (_row("a rule?", rule.constraint), _row("", say_rule(rule)))]
    return [*lines, _row("", "(if it is one, add it to the constraints, so that no trial breaks it)")]


def _nearest_to_bounds(result: Result) -> list[str]:
    if result.best is not None:
        return []
    said = next((trial for trial in result.trials if trial.status is Status.WRONG), None)
    nearest = nearest_to_bounds(result.trials, result.study.metrics)
    return [
        _row("", f"the nearest is trial {trial.number}: {past}")
        for trial, past in nearest
        if said is None or (trial.number, past) != (said.number, said.message)
    ]


def _oversubscribed(result: Result) -> list[str]:
    """A remark on trials with too few cores, if nothing succeeded; otherwise the result's remark has it."""
    said = "" if result.best is not None else say_oversubscribed({t.number: t.facts for t in result.trials})
    return [_row("remark", said)] if said else []


def _mistake(result: Result) -> list[str]:
    """The mistake that ended the search, and what to do if it is none."""
    facts = next(trial.facts for trial in result.trials if MISTAKE in trial.facts)
    said = [_row("mistake", shorten_middle(str(facts[MISTAKE]), MOST_OF_A_MESSAGE))]
    if not facts.get(SURE):
        limit = "(if only some configurations fail so, say it by autotune.Infeasible, or by exit code 78)"
        said.append(_row("", limit))
    return said
