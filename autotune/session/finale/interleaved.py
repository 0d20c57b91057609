"""Contenders read in rounds: each once a round, in a new random order, so that drift falls on all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Outcome
from autotune.measure.rules.bounds import beyond_bounds
from autotune.measure.rules.statistics import estimate
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import Contender
from autotune.session.finale.disturbed import undisturbed
from autotune.session.finale.rounds import FEWEST_RUNS, MAX_ROUNDS, Rounds
from autotune.space.spec import StudySpec
from autotune.status import Status

ROUGHLY = 0.05
"""Once the time for a finale is up, three rounds are enough that tell so much of everybody: of programs that
take seconds, say, and no two per cent more or less from run to run."""


def read_again(
    spec: StudySpec,
    executor: Executor,
    contenders: Sequence[Contender],
    limits: Rounds,
    before: int = 0,
    after_reading: Callable[[], None] = lambda: None,
    run: int = 0,
) -> tuple[int, dict[str, Outcome]]:
    """Read the contenders in rounds: how many rounds there were, and what came of each by its label.

    ``before``: how many rounds they were read in already, with other processes. Each has a seed of its own.
    ``run``: see :meth:`~autotune.session.execution.executor.Executor.entrants`.
    """
    with ExitStack() as stack, executor.together():
        began = monotonic()
        # In a new order each time: who comes first may get the better pages.
        order = np.random.default_rng([spec.search.seed, before, run]).permutation(len(contenders))
        entering_so = [contenders[place] for place in order]
        entrants = executor.entrants([c.what for c in entering_so], run)
        entering = (monotonic() - began) / max(len(contenders), 1)
        for contender, entrant in zip(entering_so, entrants, strict=True):
            contender.entrant, contender.entering = entrant, entering
            stack.callback(contender.entrant.close)
            contender.failure, contender.checked = entrant.failure, entrant.checked
        rounds = read_in_rounds(spec, contenders, limits, before, after_reading)
    return rounds, {c.label: outcome_of(spec, c) for c in contenders}


def read_in_rounds(
    spec: StudySpec,
    contenders: Sequence[Contender],
    limits: Rounds,
    before: int = 0,
    after_reading: Callable[[], None] = lambda: None,
) -> int:
    """One reading of each in a new random order, again and again; how many rounds there were.

    Where a finale that was cut short is gone on with, its last round is completed first.
    """
    rng = np.random.default_rng([spec.search.seed, before])
    first_seed = int(spec.search.seed) * MAX_ROUNDS + before
    began = monotonic()
    deadline = began + limits.seconds
    again_until = deadline if spec.search.early_stopping is None else began  # trainings are not run again
    rounds = begun = min((contender.rounds for contender in contenders), default=0)
    most, least = _most_rounds(contenders, limits.most), limits.least
    while rounds < most and not _are_enough(spec, contenders, rounds, least, late=monotonic() > deadline):
        standing = [c for c in contenders if c.failure is None]
        for index in rng.permutation(len(standing)):
            if standing[index].rounds == rounds:
                _read(standing[index], rounds, first_seed + rounds, until=again_until)
                after_reading()
        rounds += 1
        if rounds == begun + 1:
            # Fresh inputs and warming up, which a trial does once, take longer than its readings on a GPU.
            least = min(least, limits.among(len(standing), monotonic() - began).least)
    return rounds


def _are_enough(
    spec: StudySpec, contenders: Sequence[Contender], rounds: int, least: int, *, late: bool
) -> bool:
    """Whether so many rounds tell what is to be told, or as much of it as there is time for."""
    if all(contender.failure is not None for contender in contenders):
        return True
    if rounds >= least and (late or _known(spec, contenders)):
        return True
    if rounds == FEWEST_RUNS and _without_noise(spec, contenders):
        return True
    return late and rounds >= FEWEST_RUNS and _known(spec, contenders, ROUGHLY)


def _most_rounds(contenders: Sequence[Contender], most: int) -> int:
    """How many rounds there are readings for: a replay has no more than were recorded of each contender."""
    entrants = [c.entrant for c in contenders if c.entrant is not None and c.failure is None]
    limits = [e.most_readings for e in entrants if e.most_readings is not None]
    return min([most, *limits])


def _read(contender: Contender, round_number: int, seed: int, until: float) -> None:
    """One reading; where it was disturbed, others ``until`` then."""
    entrant = contender.entrant
    assert entrant is not None
    for reading in undisturbed(lambda: entrant.read(seed), lambda: monotonic() < until):
        contender.readings.append(replace(reading, context={**reading.context, "round": round_number}))
    contender.failure = entrant.failure


def _known(spec: StudySpec, contenders: Sequence[Contender], within: float | None = None) -> bool:
    """Whether each contender is known ``within`` a part of its value; ``None``: as the space file asks for.

    That speaks of their noise, and not of who is ahead: to look at it after each round favours nobody.
    """
    goal = spec.goals[0].name
    part = spec.measure.precision / 2 if within is None else within
    for contender in contenders:
        values = contender.values(goal)
        if contender.failure is None and values:
            e = estimate(values, spec.measure.confidence)
            if (e.high - e.low) / 2 > part * abs(e.value):
                return False
    return True


def _without_noise(spec: StudySpec, contenders: Sequence[Contender]) -> bool:
    """Whether all readings of each contender are the same, as of sizes and counts: more would say no more.

    Not where the space file asks for readings, nor where something with a bound has noise: of a size under a
    limit of time three readings say the size, and not whether the limit is kept.
    """
    decisive = [m.name for m in spec.metrics if m.is_judged]
    standing = [c for c in contenders if c.failure is None]
    return spec.measure.min_readings is None and all(
        len(set(c.values(name))) <= 1 for c in standing for name in decisive
    )


def outcome_of(spec: StudySpec, contender: Contender) -> Outcome:
    """The outcome of the re-measurement of one contender, its bounds included."""
    if contender.failure is not None:
        return failed(contender, contender.failure)
    metrics = dict(contender.checked)
    for name in dict.fromkeys(r.metric for r in contender.readings if not r.discarded):
        metrics[name] = estimate(contender.values(name), spec.measure.confidence)
    status, message = beyond_bounds(spec.metrics, metrics) or (Status.OK, "")
    return Outcome(status, metrics, tuple(contender.readings), message=message)


def failed(contender: Contender, failure: Outcome) -> Outcome:
    """Its failure, with what it read in the rounds before."""
    return replace(failure, readings=(*contender.readings, *failure.readings))
