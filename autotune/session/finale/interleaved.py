"""Reading contenders in rounds: each once a round, in a new random order, so that drift affects all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from autotune.measure.clocks import monotonic
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Outcome
from autotune.measure.rules.bounds import beyond_bounds
from autotune.measure.rules.statistics import estimate, estimates, relative_half_width
from autotune.session.execution.executor import Entrant, Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.disturbed import undisturbed
from autotune.session.finale.rounds import FEWEST_RUNS, MAX_ROUNDS, Rounds
from autotune.session.ledger import MAX_ATTEMPTS
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.status import Status

ROUGHLY = 0.05
"""Once the time for a finale is up, three rounds are enough if they give every value within this fraction:
as for programs that take seconds and differ by less than two per cent from run to run."""


def read_again(
    spec: StudySpec,
    executor: Executor,
    contenders: Sequence[Contender],
    limits: Rounds,
    before: int = 0,
    after_reading: Callable[[], None] = lambda: None,
    run: int = 0,
) -> tuple[int, dict[str, Outcome]]:
    """Start the contenders and read them in rounds; returns the number of rounds, and the outcomes by label.

    ``before`` is in how many rounds they were read already, by other processes; each round has its own seed.
    ``after_reading`` is called after each reading. ``run``: see
    :meth:`~autotune.session.execution.executor.Executor.entrants`.
    """
    with ExitStack() as stack, executor.together():
        began = monotonic()
        # In a new order each time: the first to start may get the better memory pages.
        order = np.random.default_rng([spec.search.seed, before, run]).permutation(len(contenders))
        entering_so = [contenders[place] for place in order]
        entrants = _entered(executor, [c.what for c in entering_so], run)
        entering = (monotonic() - began) / max(len(contenders), 1)
        for contender, entrant in zip(entering_so, entrants, strict=True):
            contender.entrant, contender.entering = entrant, entering
            stack.callback(contender.entrant.close)
            contender.failure, contender.checked = entrant.failure, entrant.checked
        rounds = read_in_rounds(spec, contenders, limits, before, after_reading)
    return rounds, outcomes_of(spec, contenders)


def _entered(executor: Executor, wanted: Sequence[Configuration | Baseline], run: int) -> list[Entrant]:
    """The entrants. Those that were lost on their way in have tried as often as a trial of the search may."""
    entrants = executor.entrants(wanted, run)
    for _ in range(MAX_ATTEMPTS - 1):
        failures = [entrant.failure for entrant in entrants]
        lost = [place for place, one in enumerate(failures) if one and one.status is Status.LOST]
        if not lost:
            break
        for place in lost:
            entrants[place].close()  # it may hold memory of a device that the next one needs
        for place, again in zip(lost, executor.entrants([wanted[n] for n in lost], run), strict=True):
            entrants[place] = again
    return entrants


def read_in_rounds(
    spec: StudySpec,
    contenders: Sequence[Contender],
    limits: Rounds,
    before: int = 0,
    after_reading: Callable[[], None] = lambda: None,
) -> int:
    """Read each contender once, in a new random order, again and again; returns the number of rounds.

    If a finale that was cut short is resumed, its last round is completed first.
    """
    rng = np.random.default_rng([spec.search.seed, before])
    first_seed = int(spec.search.seed) * MAX_ROUNDS + before
    began = monotonic()
    # Trainings are not run again.
    again_until = began + limits.seconds if spec.search.early_stopping is None else began
    rounds = begun = min((contender.rounds for contender in contenders), default=0)
    most, least = _most_rounds(contenders, limits.most), limits.least
    each = 0.0
    while rounds < most:
        taken = monotonic() - began
        late = taken > limits.seconds and not limits.promising(
            _usual_width(spec, contenders), rounds, each, taken
        )
        if _are_enough(spec, contenders, rounds, least, late=late):
            break
        standing = [c for c in contenders if c.failure is None]
        for index in rng.permutation(len(standing)):
            if standing[index].rounds == rounds:
                _read(standing[index], rounds, first_seed + rounds, until=again_until)
                after_reading()
        rounds += 1
        # On a GPU, fresh inputs and warming up take longer than a reading; a trial does these only once. By
        # all rounds so far: a machine that stood still during one of them had left fewer than there was time
        # for.
        each = (monotonic() - began) / (rounds - begun)
        least = limits.among(len(standing), each).least
    return rounds


def _are_enough(
    spec: StudySpec, contenders: Sequence[Contender], rounds: int, least: int, *, late: bool
) -> bool:
    """Whether ``rounds`` rounds give the precision that is asked for, or the best that the time allows."""
    if all(contender.failure is not None for contender in contenders):
        return True
    if rounds >= least and (late or _known(spec, contenders)):
        return True
    if rounds == FEWEST_RUNS and _without_noise(spec, contenders):
        return True
    return late and rounds >= FEWEST_RUNS and _known(spec, contenders, ROUGHLY)


def _most_rounds(contenders: Sequence[Contender], most: int) -> int:
    """The most rounds that are possible: a replay has only as many readings as were recorded."""
    entrants = [c.entrant for c in contenders if c.entrant is not None and c.failure is None]
    limits = [e.most_readings for e in entrants if e.most_readings is not None]
    return min([most, *limits])


def _read(contender: Contender, round_number: int, seed: int, until: float) -> None:
    """Take one reading; while it is disturbed, take it again, ``until`` this time (monotonic)."""
    entrant = contender.entrant
    assert entrant is not None
    for reading in undisturbed(lambda: entrant.read(seed), lambda: monotonic() < until):
        contender.readings.append(replace(reading, context={**reading.context, "round": round_number}))
    contender.failure = entrant.failure


def _known(spec: StudySpec, contenders: Sequence[Contender], within: float | None = None) -> bool:
    """Whether the interval of each contender is ``within`` a fraction of its value on either side.

    ``None`` means the precision that the space file asks for. This depends on the noise, not on who is
    ahead, so that checking it after each round favours no one.
    """
    part = spec.measure.precision / 2 if within is None else within
    return all(width <= part for width in _widths(spec, contenders))


def _usual_width(spec: StudySpec, contenders: Sequence[Contender]) -> float:
    return statistics.median(_widths(spec, contenders) or [0.0])


def _widths(spec: StudySpec, contenders: Sequence[Contender]) -> list[float]:
    """Half of the interval of each contender with values, as a fraction of its value; 0 for a single one."""
    values = [c.values(spec.goals[0].name) for c in contenders if c.failure is None]
    known = [estimate(own, spec.measure.confidence) for own in values if own]
    return [relative_half_width(one) if one.n > 1 else 0.0 for one in known]


def _without_noise(spec: StudySpec, contenders: Sequence[Contender]) -> bool:
    """Whether all readings of each contender are equal, as for sizes and counts, so that more are useless.

    False if the space file asks for a number of readings, or if a metric with a bound has noise: if a size is
    minimized under a bound of time, three readings give the size, but not whether the bound is kept.
    """
    decisive = [m.name for m in spec.metrics if m.is_judged]
    standing = [c for c in contenders if c.failure is None]
    return spec.measure.min_readings is None and all(
        len(set(c.values(name))) <= 1 for c in standing for name in decisive
    )


def outcomes_of(spec: StudySpec, contenders: Sequence[Contender]) -> dict[str, Outcome]:
    """The outcome of each contender by all its readings, by label.

    It is ``wrong`` if a metric is past its bound, or if a configuration has no value of a judged metric of
    which the default has one: it would win by being spared the check.
    """
    outcomes = {contender.label: _outcome_of(spec, contender) for contender in contenders}
    default = outcomes.get(DEFAULT)
    expected = [m.name for m in spec.metrics if default and m.is_judged and m.name in default.metrics]
    for contender in contenders:
        outcome = outcomes[contender.label]
        missing = [name for name in expected if name not in outcome.metrics]
        if missing and outcome.status is Status.OK and contender.configuration is not None:
            said = f"it has no {', '.join(missing)}, which the default has, and cannot be judged without"
            outcomes[contender.label] = replace(outcome, status=Status.WRONG, message=said)
    return outcomes


def _outcome_of(spec: StudySpec, contender: Contender) -> Outcome:
    if contender.failure is not None:
        return failed(contender, contender.failure)
    metrics = {**contender.checked, **estimates(contender.readings, spec.measure.confidence)}
    status, message = beyond_bounds(spec.metrics, metrics) or (Status.OK, "")
    return Outcome(status, metrics, tuple(contender.readings), message=message)


def failed(contender: Contender, failure: Outcome) -> Outcome:
    """The failure of a contender, with the readings of the rounds before it."""
    return replace(failure, readings=(*contender.readings, *failure.readings))
