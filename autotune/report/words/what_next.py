"""The commands that the answer of a search ends with: to use what won, to see more, and to go on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from autotune.measure.commands.handing import unwritten
from autotune.provenance.document import part_of
from autotune.report.numbers import as_duration
from autotune.session.budget import out_of_patience, reached_target
from autotune.session.opening.identity import CALLABLE, command_of
from autotune.session.result import EXHAUSTED, INTERRUPTED, Result
from autotune.session.same_failure import MISTAKEN
from autotune.space.reading.given_facts import given_beside
from autotune.space.spec import Budget
from autotune.store.databases.address import IN_MEMORY
from autotune.store.records import StudyRecord


def what_next(result: Result, space: str, program: str, store_option: str, budget: Budget) -> list[str]:
    """The winner in a form to use, the report, the trials, and how to go on searching."""
    study = f"--study {result.study.name}{store_option}"
    form, others = form_to_use(result.study)
    winner = "the default" if result.is_default else "the winner"
    what = winner if result.defended else "the best so far"
    commands = []
    if result.best is not None:
        commands.append((f"{program} best --format {form} {study}", f"{what} as {others}"))
        if len(result.goals) > 1:
            commands.append((f"{program} best --front {study}", "the whole front"))
    page = "one page: how sure, how found, what failed"
    commands.append((f"{program} report {result.study.label}{store_option}", page))
    if in_vain := _in_vain(result):
        commands.append((f"{program} show --failures {study}", "why each trial failed: mend that first"))
    else:
        commands.append((f"{program} show {study}", "the best trials, and how many failed"))
    if not (file := space or _space_file(result.study)):
        return say_next(commands, result.store)
    if result.reason == MISTAKEN:
        again = f"{program} search {file}{store_option}"
        commands.append((again, "once the mistake is mended: begins a new study"))
    elif in_vain:
        commands.append((f"{program} search {file} --fresh{store_option}", "then search anew"))
    elif result.reason != EXHAUSTED:
        more = f"{program} search {file}{_more(result, budget)}{store_option}"
        commands.append((more, "go on searching"))
    return say_next(commands, result.store)


def _space_file(study: StudyRecord) -> str:
    """The space file and the workload as arguments of a command; empty if only a Python program can go on."""
    source = study.space_file
    if not source or study.objective.startswith(CALLABLE):
        return ""
    return shlex.join([source, *workload_words(study)])


def workload_words(study: StudyRecord) -> list[str]:
    """``--workload`` options for facts of the study's workload that differ from the space file's."""
    return [word for fact in given_beside(study.spec_text, study.workload) for word in ("--workload", fact)]


def _in_vain(result: Result) -> bool:
    """Whether going on is likely to fail as everything has; a known mistake is reported elsewhere."""
    ended_otherwise = result.reason not in (INTERRUPTED, MISTAKEN)
    return result.best is None and bool(result.failures) and ended_otherwise


def form_to_use(study: StudyRecord) -> tuple[str, str]:
    """The format in which the objective reads its knobs, and a text that names it and the others."""
    command = command_of(study)
    knobs = list(part_of(study.document, "space", "knobs"))
    if command is None or command.config_file:
        return "yaml", f"YAML (or json, env, flags, set{', command, config' if command else ''})"
    if len(unwritten(command, knobs)) == len(knobs):  # the program asks for all by autotune.run
        # Only scripts that call run.add_arguments accept --set; others would ignore it without a message.
        return "yaml", "YAML (or json, env, flags; set, for a script with run.add_arguments)"
    if unwritten(command, knobs):
        return "flags", "flags (or yaml, json, env, set)"
    return "command", "a command line (or yaml, json, env, flags, set)"


def say_next(commands: Sequence[tuple[str, str]], store: str) -> list[str]:
    """The commands to go on with, each with what it is for."""
    if store == IN_MEMORY:
        return ["next:", "  nothing, since the store was in memory and is gone: --store FILE keeps it"]
    width = max(len(command) for command, _ in commands)
    return ["next:", *(f"  {command:{width}}  # {text}" for command, text in commands)]


def _more(result: Result, budget: Budget) -> str:
    """The options to go on with: the budget itself if some of it is left, or else twice what was spent.

    The budget is for the study as a whole. A search that ran out of patience needs twice the patience, and
    keeps its other limits. An interrupted search keeps all its limits, by which its finale goes on too. One
    that reached its target needs a better one: a tenth better than what it found.
    """
    if budget.target is not None and result.reason.endswith(reached_target(budget.target)):
        return _limits(replace(budget, target=_better(result, budget.target) or None))
    if budget.patience and result.reason == out_of_patience(budget.patience):
        time = f" --time {as_duration(budget.time)}" if budget.time else ""
        trials = f" --trials {budget.trials}" if budget.trials else ""
        return f"{time}{trials} --patience {2 * budget.patience}"
    if result.reason == INTERRUPTED:
        return _limits(budget)
    tried = sum(result.statuses.values()) - result.outside
    options = f" --time {as_duration(2 * budget.time)}" if budget.time else ""
    if budget.trials and budget.trials > tried:
        return options or f" --trials {budget.trials}"
    return options if budget.time and not budget.trials else f"{options} --trials {max(2 * tried, 10)}"


def _limits(budget: Budget) -> str:
    """The options that a search with this budget has."""
    time = as_duration(budget.time) if budget.time else ""
    limits = {"time": time, "trials": budget.trials, "patience": budget.patience}
    options = "".join(f" --{name} {limit}" for name, limit in limits.items() if limit)
    return options if budget.target is None else f"{options} --target={budget.target:.9g}"


def _better(result: Result, target: float) -> float:
    """A tenth better than the target, or than what was found if that is better still; 0 if that is 0."""
    sign = result.metric.sign
    found = result.metrics.get(result.metric.name)
    best = sign * target if found is None else min(sign * target, sign * found.value)
    return float(f"{sign * (best - abs(best) / 10):.2g}")
