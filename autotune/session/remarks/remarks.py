"""What outcomes show about the whole search; the user is told as soon as it shows, and once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from autotune.errors import listed
from autotune.measure.facts import CONSTANT_INPUTS, LEFT_RUNNING, OWN_DEFAULTS, STEP, UNREACHED
from autotune.measure.outcome import Outcome
from autotune.session.remarks.oversubscribed import say_oversubscribed
from autotune.session.remarks.substituted import say_substituted
from autotune.space.space import Space
from autotune.space.spec import TIMES, CommandObjective, StudySpec
from autotune.status import Status

Remark = Callable[[int, Outcome, StudySpec], str]
"""Gives what to say about a trial by its number and outcome, or an empty text."""


@dataclass
class Remarks:
    """Is told the outcomes of the trials of a search, which may have several sessions."""

    _said: set[Remark] = field(default_factory=set)
    _unreached: set[str] = field(default_factory=set)
    """The knobs that were named already as not reaching the command."""

    def on(
        self, number: int, outcome: Outcome, spec: StudySpec, *, is_default: bool = False
    ) -> Iterator[str]:
        """The remarks on the outcome of trial ``number`` that were not made before."""
        if is_default and outcome.status.failed:
            yield (
                f"trial {number} is the default, and it failed ({outcome.status}): without it there is no"
                " speed-up to state, so mend it first, or give the knobs other defaults"
            )
        if is_default and (text := _other_defaults(outcome, spec)):
            yield text
        if text := self._unreached_knobs(outcome, spec.space):
            yield text
        for remark in _ONCE:
            if remark not in self._said and (text := remark(number, outcome, spec)):
                self._said.add(remark)
                yield text

    def _unreached_knobs(self, outcome: Outcome, space: Space) -> str:
        """A remark on knobs that a command was not given although it was given others; each is named once.

        A knob in the condition of another has an effect even if the command is not given it.
        """
        found = outcome.facts.get(UNREACHED)
        act = {name for knob in space.knobs if knob.when is not None for name in knob.when.knobs}
        known = self._unreached | act
        new = [name for name in found if name not in known] if isinstance(found, list) else []
        self._unreached.update(new)
        if not new:
            return ""
        return (
            f"the knob {', '.join(map(repr, new))} never gets to the command, so no trial says anything about"
            " it: write {name} into an argument, a variable or the text of the config file"
        )


def _other_defaults(outcome: Outcome, spec: StudySpec) -> str:
    """A remark on knobs whose default in the script is not the space's, which the speed-up is over."""
    own = outcome.facts.get(OWN_DEFAULTS)
    default = spec.space.feasible_default()
    if not isinstance(own, dict) or default is None:
        return ""
    pairs = [(name, own[name], value) for name, value in default.items() if name in own]
    differ = [f"{name} = {mine!r:.40} ({value!r:.40})" for name, mine, value in pairs if mine != value]
    if not differ:
        return ""
    return (
        f"the script has other defaults than the space (in brackets): {listed(differ)}. The speed-up is over"
        " those of the space: let its 'default' of each knob be what you use today"
    )


SHORTEST = 1e-12
"""In seconds; far less than a cycle of any processor."""


def _no_time(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on a time that no clock can measure but that would win: one below 0, or nearly 0.

    An infinite value does not win, since the trial has diverged, and neither does a rate below 0.
    """
    for goal in spec.goals:
        estimate = outcome.metrics.get(goal.name)
        if estimate is None or goal.goal != "minimize" or goal.unit not in TIMES:
            continue
        if -math.inf < estimate.value < SHORTEST / TIMES[goal.unit]:
            how = "below 0" if estimate.value < 0 else f"less than any clock can tell ({SHORTEST:g} s)"
            return (
                f"the {goal.name} of trial {number} is {estimate.value:g} {goal.unit}: {how}, which counts"
                " as faster than any other. If it is no time, declare it under 'metrics', with its goal"
            )
    return ""


def _constant_inputs(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on inputs of a kernel that are one number throughout, such as zeros."""
    found = outcome.facts.get(CONSTANT_INPUTS)
    if not isinstance(found, dict):
        return ""
    inputs = ", ".join(f"{name!r} is {value:g}" for name, value in found.items())
    return (
        f"of the inputs, {inputs} throughout: on such data a GPU takes less power and may be a tenth faster"
        " than on what differs, and wrong answers may look right. Unless it is so in use, make_inputs(rng)"
        " should draw it from rng"
    )


def _read_twice(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on patterns that find the same number, as ``pack (.+) s`` does in ``unpack 0.25 s``.

    Whole numbers are often the same by chance.
    """
    if not isinstance(spec.objective, CommandObjective):
        return ""
    known = [
        (name, outcome.metrics[name].value) for name in spec.objective.patterns if name in outcome.metrics
    ]
    for (one, value), (other, same) in combinations(known, 2):
        if value == same and not value.is_integer():
            return (
                f"{one} and {other} of trial {number} are the same number, {value:g}: if their patterns match"
                r" the same line, begin one with ^ or \b (the last match counts)"
            )
    return ""


def _left_behind(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on processes that a command started and that outlived its run."""
    found = outcome.facts.get(LEFT_RUNNING)
    if not isinstance(found, list):
        return ""
    names = ", ".join(map(str, found))
    return (
        f"the program of trial {number} left {names} running, which is ended after each run, so that no run"
        " measures what another has started"
    )


def _silent_run(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on a run that ended by itself without reporting all its steps, or any, to early stopping."""
    early = spec.search.early_stopping
    if early is None or outcome.status is not Status.OK or "reports" not in outcome.facts:
        return ""
    metric = early.metric or spec.goals[0].name
    if outcome.facts["reports"] == 0:
        return (
            "a trial ended without any report, so early stopping has nothing to go by: call"
            f" report(step, {metric}=...) after each of its {early.resource}, or print"
            f' {{"step": 1, "{metric}": ...}} on a line, and flush it'
        )
    step = outcome.facts.get(STEP, 0)
    if not isinstance(step, int) or step >= early.max:
        return ""
    return (
        f"a trial ended by itself before it reported step {early.max}, and its value counts as that of a"
        f" complete one: a trial has {early.max} {early.resource}, counted from 1 (run.steps, report.steps or"
        " AUTOTUNE_STEPS says how many)"
    )


LONG = 20.0
"""Seconds of reading one configuration after which the user is told why."""

MANY = 20
"""How many readings. If fewer take long, the program itself is slow, which is no surprise."""


def _read_for_long(number: int, outcome: Outcome, spec: StudySpec) -> str:
    """A remark on a trial that was read for long, which a limit of time would have ended sooner."""
    readings = max((estimate.n for estimate in outcome.metrics.values()), default=0)
    seconds = outcome.phases.get("measure", 0.0)
    if spec.budget.time is not None or readings < MANY or seconds < LONG:
        return ""
    return (
        f"trial {number} was read {readings} times, in {seconds:.0f} s, since its readings differ: with a"
        " limit of time (--time, or budget: {time: 10m}) none is read for longer than its share of that"
    )


_ONCE: tuple[Remark, ...] = (
    _silent_run,
    lambda number, outcome, _: say_oversubscribed({number: outcome.facts}),
    lambda number, outcome, _: say_substituted({number: outcome.facts}),
    _no_time,
    _constant_inputs,
    _read_twice,
    _left_behind,
    _read_for_long,
)
"""Remarks that are made once, on the first trial that shows them, since they apply to others too."""
