"""Successive halving, asynchronous or in brackets. Pure.

The rungs of ``min: 1, max: 27, factor: 3`` are at 1, 3 and 9 steps. Of nine trials that reach the first,
three go on to the second, and one of these to the third.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotune.session.early_stopping.rules import GO, Board, Decision, Moves, Rule, Verdict, place, say_steps
from autotune.space.spec import EarlyStopping


class Unstopped(Rule):
    """Runs every trial to its end, to keep its curve and to compare other rules with."""

    def decide_at(self, number: int) -> tuple[int, ...]:
        return ()

    def heard(self, number: int, step: int, value: float) -> None:
        return

    def decide(self, number: int, step: int) -> Decision:
        return GO


class Asha(Rule):
    """Asynchronous successive halving that stops trials and never waits.

    A trial goes on past a rung if it is among the best ``1/factor`` of those that have reached it so far,
    itself included; the best one always goes on. Early trials pass more easily, since there are few others
    to compare them with. If each trial is better than all before it, as happens while the strategy learns,
    all of them pass. The algorithm of the paper pauses and promotes trials. This one stops them, so that
    nothing has to be resumed.

    L. Li, K. Jamieson, A. Rostamizadeh, E. Gonina, J. Ben-Tzur, M. Hardt, B. Recht, A. Talwalkar,
    *A System for Massively Parallel Hyperparameter Tuning*, MLSys 2020, section 3.
    """

    def __init__(self, settings: EarlyStopping, first: int = 0) -> None:
        """``first`` is the index, from 0, of the first rung at which trials are stopped."""
        self._settings = settings
        self._board = Board(settings.rungs[first:])

    def decide_at(self, number: int) -> tuple[int, ...]:
        return self._board.rungs

    def heard(self, number: int, step: int, value: float) -> None:
        self._board.heard(number, step, value)

    def decide(self, number: int, step: int) -> Decision:
        rung = self._board.reached(step)
        if rung is None:
            return GO
        ranking = self._board.ranking(rung)
        if number not in ranking:
            return GO  # nothing finite was reported: the run ends as diverged
        position, keep = ranking.index(number) + 1, max(1, len(ranking) // self._settings.factor)
        if position <= keep:
            return GO
        there = f"{place(position)} of {len(ranking)} at {say_steps(rung, self._settings.resource)}"
        return Decision(Verdict.STOP, f"{there}, where the best {keep} may go on")


class AsyncHyperband(Rule):
    """Asynchronous successive halving in the brackets of Hyperband: no trial waits for others.

    A trial is compared, as in :class:`Asha`, with the trials of its bracket only, and only at the bracket's
    first rung and those after it; the last bracket has none. So three or four of fifty trials run to their
    end whatever their first losses are. They are expensive, but they show how much a first loss says about
    the last: a search whose trials are all stopped by their first losses learns to begin well, and not to
    end well.

    The paper of :class:`Asha` describes this too.
    """

    def __init__(self, settings: EarlyStopping) -> None:
        shapes = hyperband_shapes(settings)
        self._brackets = [Asha(settings, first) for _, first in shapes]
        self._turns = _turns([size for size, _ in shapes])

    def _of(self, number: int) -> Asha:
        """The bracket of a trial; it depends on the number only, so that it is the same in every session."""
        return self._brackets[self._turns[number % len(self._turns)]]

    def decide_at(self, number: int) -> tuple[int, ...]:
        return self._of(number).decide_at(number)

    def heard(self, number: int, step: int, value: float) -> None:
        self._of(number).heard(number, step, value)

    def decide(self, number: int, step: int) -> Decision:
        return self._of(number).decide(number, step)


def _turns(sizes: Sequence[int]) -> list[int]:
    """A sequence of brackets in which each occurs as often as its size, spread as evenly as possible."""
    due = sorted(
        ((place + 0.5) / size, bracket) for bracket, size in enumerate(sizes) for place in range(size)
    )
    return [bracket for _, bracket in due]


@dataclass
class Bracket:
    """A group of trials that are halved together: ``size`` of them begin, and climb from rung ``first``."""

    size: int
    first: int
    members: list[int] = field(default_factory=list)
    left: dict[int, None] = field(default_factory=dict)
    """Its members that have not ended, in the order in which they joined."""
    stages: dict[int, Stage] = field(default_factory=dict)
    """What came of the rungs that are decided. Cached: it is needed far more often than it changes."""


@dataclass(frozen=True)
class Stage:
    """What came of a bracket at a rung, once all trials that were to reach it have done so or ended."""

    expected: int
    """How many trials were to reach the rung, including those that failed before."""
    chosen: tuple[int, ...]
    """The trials that go on, by number."""
    places: Mapping[int, int]
    """By number, the place (from 1) of each trial that reached the rung."""


class Brackets(Rule):
    """Successive halving in brackets: at a rung, a trial is paused until all others of its bracket are there.

    Then exactly the best ``1/factor`` are promoted, and the others are stopped. The next bracket begins
    meanwhile, so that no worker waits. If no trial will join any more, an incomplete bracket counts as
    complete. A trial that failed is one of those that do not go on.

    K. Jamieson and A. Talwalkar, *Non-stochastic Best Arm Identification and Hyperparameter
    Optimization*, AISTATS 2016, section 3.
    """

    pauses = True

    def __init__(self, settings: EarlyStopping, shapes: Sequence[tuple[int, int]]) -> None:
        """``shapes`` are the ``(size, first rung)`` of brackets, used one after another in a cycle."""
        self._settings = settings
        self._board = Board(settings.rungs)
        self._shapes = shapes
        self._brackets: list[Bracket] = []
        self._of: dict[int, Bracket] = {}
        self._over: set[int] = set()

    # -- what is known -------------------------------------------------------------------------

    def joined(self, number: int) -> None:
        bracket = self._of.get(number)
        if bracket is None:
            bracket = self._of[number] = self._open_bracket()
            bracket.members.append(number)
        elif number not in self._over:
            return
        self._over.discard(number)  # it was lost for good, and another search that tried it has left it
        bracket.left[number] = None
        bracket.stages.clear()  # the bracket may have counted as complete without this trial

    def _open_bracket(self) -> Bracket:
        """The one that trials join."""
        if not self._brackets or len(self._brackets[-1].members) == self._brackets[-1].size:
            self._brackets.append(Bracket(*self._shapes[len(self._brackets) % len(self._shapes)]))
        return self._brackets[-1]

    def heard(self, number: int, step: int, value: float) -> None:
        reached = self._board.heard(number, step, value)
        bracket = self._of.get(number)
        if reached and bracket is not None:  # even if the trial counted as failed until now
            bracket.stages = {rung: stage for rung, stage in bracket.stages.items() if rung < reached[0]}

    def ended(self, number: int, value: float | None) -> None:
        self._over.add(number)
        if (bracket := self._of.get(number)) is not None:
            bracket.left.pop(number, None)

    def decide_at(self, number: int) -> tuple[int, ...]:
        bracket = self._of.get(number)
        return () if bracket is None else self._board.rungs[bracket.first :]

    # -- what follows --------------------------------------------------------------------------

    def decide(self, number: int, step: int) -> Decision:
        rung = self._board.reached(step)
        if rung is None or rung not in self.decide_at(number):
            return GO
        return self._at(self._stages(self._of[number], closed=False), number, rung)

    def moves(self, closed: bool) -> Moves:
        promoted: list[int] = []
        stopped: dict[int, str] = {}
        for bracket in self._brackets:
            stages = self._stages(bracket, closed) if bracket.left else {}
            if not stages:
                continue
            for number in bracket.left:
                rung = self._stands(bracket, number)
                if rung is None:
                    continue
                decision = self._at(stages, number, rung)
                if decision.verdict is Verdict.GO:
                    promoted.append(number)
                elif decision.verdict is Verdict.STOP:
                    stopped[number] = decision.reason
        return Moves(tuple(promoted), stopped)

    def _stands(self, bracket: Bracket, number: int) -> int | None:
        """The highest rung of its bracket that the trial has reached; ``None`` if none."""
        rungs = self._board.rungs[bracket.first :]
        return next((rung for rung in reversed(rungs) if number in self._board.values[rung]), None)

    def _at(self, stages: Mapping[int, Stage], number: int, rung: int) -> Decision:
        """The decision on a trial at a rung that it has reached."""
        there = say_steps(rung, self._settings.resource)
        stage = stages.get(rung)
        if stage is None:
            return Decision(Verdict.PAUSE, f"paused at {there} until all of its bracket are there")
        at = stage.places.get(number)
        if at is not None and at <= len(stage.chosen):
            return GO
        position = "not among the " if at is None else f"{place(at)} of "
        reason = f"{position}{stage.expected} at {there}, of which {len(stage.chosen)} may go on"
        return Decision(Verdict.STOP, reason)

    def _stages(self, bracket: Bracket, closed: bool) -> Mapping[int, Stage]:
        """The rungs of a bracket that are decided."""
        if not closed and len(bracket.members) < bracket.size:
            return {}
        cohort: Sequence[int] = bracket.members
        for rung in self._board.rungs[bracket.first :]:
            if rung not in bracket.stages:
                there = self._board.values[rung]
                if not all(number in there or number in self._over for number in cohort):
                    break
                ranking = self._board.ranking(rung, set(cohort))
                chosen = tuple(ranking[: max(1, len(cohort) // self._settings.factor)])
                places = {number: at for at, number in enumerate(ranking, 1)}
                bracket.stages[rung] = Stage(len(cohort), chosen, places)
            cohort = bracket.stages[rung].chosen
        return bracket.stages


def successive_halving(settings: EarlyStopping) -> Brackets:
    """Brackets of one shape: all start at the first rung, with so many trials that one is left at the end."""
    return Brackets(settings, [(settings.factor ** len(settings.rungs), 0)])


def hyperband(settings: EarlyStopping) -> Brackets:
    """Brackets that begin at each of the rungs in turn; the last one is a few trials that are never stopped.

    Each costs about the same. If early values are misleading, the later brackets find what the first ones
    stop too early.

    L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar, *Hyperband: A Novel Bandit-Based
    Approach to Hyperparameter Optimization*, JMLR 18, 2018, algorithm 1.
    """
    return Brackets(settings, hyperband_shapes(settings))


def hyperband_shapes(settings: EarlyStopping) -> list[tuple[int, int]]:
    """The ``(size, first rung)`` of Hyperband's brackets, which each cost about the same."""
    top, factor = len(settings.rungs), settings.factor
    return [(math.ceil((top + 1) / (s + 1) * factor**s), top - s) for s in range(top, -1, -1)]
