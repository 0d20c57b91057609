"""The phases of one configuration: prepare, load, check, warm up, read. They run in the calling process.

Whatever an objective raises ends in an :class:`Outcome`. What it can do beyond raising (die, hang, use up
memory) is dealt with in :mod:`autotune.measure.workers.process`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from autotune.measure.clocks import monotonic
from autotune.measure.cores.pace import Pace
from autotune.measure.facts import CODE, CONSTANT_INPUTS, RESOURCES, given_facts
from autotune.measure.forked import forks_end_here
from autotune.measure.memory import PeakMemory
from autotune.measure.objective import Baseline, Code, Objective
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.phases.gathering import NoNotes, Notes, Trial
from autotune.measure.phases.meter import Meter
from autotune.measure.phases.mistakes import MissingMetricError
from autotune.measure.phases.raised import Failed
from autotune.measure.phases.repeating import Repetition, UnderTest
from autotune.measure.readings import Clock, named_values, plain_numbers
from autotune.measure.reports import Curve, Reporter
from autotune.measure.rules.bounds import beyond_bounds
from autotune.measure.rules.repetition import Decision, Verdict
from autotune.measure.rules.statistics import less_sure, suspicions
from autotune.measure.rules.worth import SHORT_SECONDS
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec, Share
from autotune.status import Status

WARM_UP = "warm-up"
"""The reason given with a reading that does not count because it only warms up."""

Unseal = Callable[[], Any]
"""Returns what was prepared. This is part of loading, and may fail as well."""


class Runner:
    """Takes configurations of one objective through their phases.

    ``metrics`` and ``settings`` are the space file's; readings stop by the
    :class:`~autotune.measure.rules.repetition.RepetitionRule` of these settings. A ``KeyboardInterrupt`` is
    the user's and is passed on to the caller, except in an ``own_process`` of the objective, which no user
    can reach. With a ``curve`` each reading is a whole run, which reports while it goes. ``share`` is how
    much of the search's time a trial may have.
    """

    def __init__(
        self,
        objective: Objective,
        metrics: tuple[MetricSpec, ...],
        settings: MeasureSettings,
        notes: Notes | None = None,
        *,
        own_process: bool = False,
        curve: Curve | None = None,
        share: Share | None = None,
    ) -> None:
        self.objective = objective
        self._metrics = metrics
        self._goal = next(metric for metric in metrics if metric.goal)
        self._goals = [metric.name for metric in metrics if metric.goal]
        self._settings = settings
        self._repetition = Repetition(objective, metrics, settings, share or Share())
        self._notes = notes or NoNotes()
        objective.waiting = self._notes.waiting
        self._own_process = own_process
        self._curve = curve
        self._pace = Pace()
        self._entered: tuple[Any, Meter] | None = None

    @property
    def stands_by(self) -> bool:
        """Whether the objective has anything to do ahead of its first trial."""
        return type(self.objective).stand_by is not Objective.stand_by

    def stand_by(self, *, final: bool) -> None:
        """Let the objective do that. A failure is ignored: the first trial meets it again and reports it."""
        self.objective.final = final
        with suppress(BaseException), forks_end_here():
            self.objective.stand_by()

    def rehearse(self) -> None:
        """Decide once on made-up readings: the first time takes longer, and belongs to no trial's time."""
        self._repetition.rehearse()

    # -- the phases ----------------------------------------------------------------------------

    def prepare(
        self, configuration: Configuration, seal: Callable[[Any], Any] = lambda made: made
    ) -> tuple[Outcome, Any]:
        """Returns ``(outcome, prepared)``. ``seal`` (pickling, say) is part of the phase and may fail too.

        The outcome is ``ok``, ``pruned`` where the objective says that running it is hopeless, or a failure.
        """
        trial = self._trial()
        prepared: Any = None

        def prepare() -> Outcome:
            nonlocal prepared
            with trial.during("prepare"):
                made = self.objective.prepare(configuration)
                code = self.objective.code(made)
                trial.facts |= _facts_of(code)
                hopeless = str(code.hopeless or "")
                prepared = seal(made)
            return trial.outcome(Status.PRUNED if hopeless else Status.OK, hopeless)

        return trial.typed(prepare), prepared

    def check(self, unseal: Unseal, seed: int) -> Outcome:
        """Load what ``unseal`` gives and check it, ahead of :meth:`measure`, which is then given the readings
        that the check has made."""
        self.objective.final = False
        trial = self._trial()

        def check() -> Outcome:
            self._check(trial, self._load(trial, unseal), seed)
            return trial.outcome(Status.OK)

        return trial.typed(check)

    def measure(
        self,
        unseal: Unseal,
        seed: int,
        incumbent: Estimate | None = None,
        seconds: float = math.inf,
        reporter: Reporter | None = None,
        checked: Sequence[Reading] | None = None,
        paid: float = 0.0,
    ) -> Outcome:
        """Load what ``unseal`` gives, check it, warm it up and read it, in about ``seconds`` at most.

        Once there is a reading that counts, no other is begun that would not end in time. With a ``reporter``
        it is read once and not warmed up: that one run is followed by its reports, and may be ended by them.
        ``checked``: what :meth:`check` has read of it already, elsewhere. ``paid``: how many seconds it has
        cost the search to prepare it.
        """
        self.objective.final = False
        trial = self._trial()
        trial.take_checked(checked or ())
        memory = self.objective.memory = PeakMemory()
        deadline = monotonic() + seconds

        def measure() -> Outcome:
            loaded = self._load(trial, unseal)
            if checked is None:
                self._check(trial, loaded, seed)
            if reporter is not None:
                return self._follow(trial, loaded, self._rng(seed, 1), reporter)
            return self._repeat(trial, loaded, self._rng(seed, 1), incumbent, deadline, paid)

        return replace(trial.typed(measure), peak_memory=memory.read())

    def enter(
        self, what: Configuration | Baseline, unseal: Unseal, seed: int, *, warm_up: bool = True
    ) -> Outcome:
        """Load (a baseline: as the objective says), check and warm up, and keep it for :meth:`read`."""
        self.objective.final = True
        trial = self._trial()

        def enter() -> Outcome:
            with trial.during("load"):
                if isinstance(what, Baseline):
                    loaded = self.objective.load_baseline(what)
                else:
                    loaded = self.objective.load(unseal())
            self._check(trial, loaded, seed)
            if self._curve is None and warm_up:
                self._warm_up(trial, loaded, self._rng(seed, 1), self._meter())
            self._entered = loaded, self._meter()
            return trial.outcome(Status.OK, metrics=dict(trial.checked))

        return trial.typed(enter)

    def read(self, seed: int) -> Outcome:
        """One counted reading of what was entered, on fresh inputs, after one that warms the caches again.

        The latter counts where the time limit allows no other after it, as in the search. Bounds are not
        looked at: one reading of a noisy metric may be past them, and all of them together decide.
        """
        assert self._entered is not None, "it was not entered"
        loaded, meter = self._entered
        trial = self._trial()
        deadline = monotonic() + self._settings.timeout

        def read() -> Outcome:
            rng, counts = self._rng(seed, 2), False
            with trial.during("measure"):
                if self._wants_warm_caches(meter.clock.last_seconds):
                    sample = meter.take(loaded, rng)
                    is_last = self._settings.warmup is None and meter.is_late(deadline)
                    counts = trial.keep(sample, meter.clock.at, "" if is_last else WARM_UP)
                while not (counts or trial.keep(meter.take(loaded, rng), meter.clock.at)):
                    trial.must_go_on(meter.is_late(deadline))
            metrics = trial.estimates(self._settings.confidence)
            without_bounds = [replace(spec, at_most=None, at_least=None) for spec in self._metrics]
            status, message = beyond_bounds(without_bounds, metrics) or (Status.OK, "")
            return trial.outcome(status, message, metrics=metrics)

        return trial.typed(read)

    # -- their parts ---------------------------------------------------------------------------

    def _load(self, trial: Trial, unseal: Unseal) -> Any:
        with trial.during("load"):
            return self.objective.load(unseal())

    def _check(self, trial: Trial, loaded: Any, seed: int) -> None:
        with trial.during("check"):
            returned = self.objective.check(loaded, self._rng(seed, 0))
            if returned is not None and not isinstance(returned, Mapping):
                raise TypeError(
                    f"check() must return metrics by name, or nothing, not {returned!r:.80}:"
                    " where the answer is wrong it raises WrongAnswer"
                )
            if constant := self.objective.constant_inputs:
                trial.facts[CONSTANT_INPUTS] = dict(constant)
            values = named_values(returned or {}, self._goal.name, self._goals)
            trial.take_checked([Reading(name, value) for name, value in values.items()])
            if unacceptable := beyond_bounds(self._metrics, trial.checked):
                raise Failed(*unacceptable)

    def _follow(self, trial: Trial, loaded: Any, rng: np.random.Generator, reporter: Reporter) -> Outcome:
        """One run, which its reports may end early."""
        meter = self._meter()
        with trial.during("measure"):
            sample = meter.follow(loaded, rng, reporter)
        trial.facts |= {**sample.facts, "reports": reporter.count}
        if reporter.last is not None:
            trial.facts |= {"step": reporter.last.step}
        ended = reporter.ended
        if ended is not None and ended.status is not Status.OK:
            stood = {name: Estimate.of_one(value) for name, value in sample.values.items()}
            return trial.outcome(ended.status, ended.message, metrics=trial.checked | stood)
        trial.keep(sample, meter.clock.at)
        return self._whole(trial, self._judged(trial))

    def _repeat(
        self,
        trial: Trial,
        loaded: Any,
        rng: np.random.Generator,
        incumbent: Estimate | None,
        deadline: float,
        paid: float,
    ) -> Outcome:
        """Reading after reading, until there are enough."""
        meter = self._meter()
        self._warm_up(trial, loaded, rng, meter, deadline)
        paid += sum(seconds for phase, seconds in trial.phases.items() if phase != "measure")
        with trial.during("measure"):
            tested = UnderTest(self._goal.name, trial, meter, loaded, rng, incumbent, deadline, paid)
            decision = self._repetition.read(tested)
        trial.facts |= {"stopped": f"{decision.verdict}: {decision.reason}"}
        if suspicious := suspicions(trial.values(self._goal.name)):
            trial.facts["suspicions"] = list(suspicious)
        return self._whole(trial, self._judged(trial, _ends_as(decision)))

    def _warm_up(
        self, trial: Trial, loaded: Any, rng: np.random.Generator, meter: Meter, deadline: float = math.inf
    ) -> None:
        """Take the readings that do not count: as many as the user asked for, else one where that is needed.

        The latter counts after all where there may be no other (:meth:`_is_dear`).
        """
        asked = self._settings.warmup
        count = int(self._needs_warming()) if asked is None else asked
        counts = False
        with trial.during("warmup"):
            for _ in range(count):
                sample = meter.take(loaded, rng)
                counts = asked is None and self._is_dear(trial, meter, deadline)
                trial.keep(sample, meter.clock.at, "" if counts else WARM_UP)
        if counts:
            trial.phases["measure"] = trial.phases.pop("warmup")

    def _is_dear(self, trial: Trial, meter: Meter, deadline: float) -> bool:
        """Whether the last reading is too dear to throw away, though it may have been a cold one.

        Either no other would end by the ``deadline``; or it was so slow that one is all there will be, and
        ran in a process of its own, for which being warm makes little difference.
        """
        last, paid = meter.clock.last_seconds, sum(trial.phases.values())
        return meter.is_late(deadline) or (self.objective.is_warm and self._repetition.is_slow(last, paid))

    def _wants_warm_caches(self, last: float) -> bool:
        """Whether a reading in a finale is preceded by one that does not count.

        ``last``: how many seconds the reading before took; 0 where there was none.
        """
        if self._settings.warmup == 0 or self._curve is not None or self.objective.warms_up:
            return False
        is_first = not last
        if is_first and self._settings.warmup is None and not self._needs_warming():
            return False
        return last < SHORT_SECONDS

    def _needs_warming(self) -> bool:
        """Whether a first reading may differ from those that follow."""
        return not (self.objective.is_warm or self._repetition.noiseless)

    def _judged(self, trial: Trial, otherwise: tuple[Status, str] = (Status.OK, "")) -> Outcome:
        """The outcome that the readings give: past a bound, else what ``otherwise`` says."""
        metrics = trial.estimates(self._settings.confidence)
        goal = self._goal.name
        if (shared := self.objective.shared_error) and goal in metrics:
            trial.facts |= {"shared_error": {goal: shared}}
            averaged = self.objective.averaged
            metrics[goal] = less_sure(metrics[goal], shared, self._settings.confidence, alone=averaged)
        status, message = beyond_bounds(self._metrics, metrics) or otherwise
        return trial.outcome(status, message, metrics=metrics)

    def _whole(self, trial: Trial, outcome: Outcome) -> Outcome:
        """``outcome``; one that is ``ok`` but has no number for one of several goals fails as a mistake."""
        missing = [m.name for m in self._metrics if m.goal and m.name not in outcome.metrics]
        if outcome.status is Status.OK and missing:
            names, known = ", ".join(map(repr, missing)), ", ".join(outcome.metrics)
            with trial.during("measure"):
                message = f"measure() or check() must return the metric {names}; they returned {known}"
                raise MissingMetricError(message, missing, trial.facts)
        return outcome

    def _trial(self) -> Trial:
        trial = Trial(self._notes, self._own_process)
        self.objective.note_facts = trial.note
        return trial

    def _meter(self) -> Meter:
        return Meter(self.objective, self._goals, Clock(self._pace), self._curve)

    def _rng(self, seed: int, purpose: int) -> np.random.Generator:
        """Fresh random numbers: different for each trial, and for its check and its readings."""
        return np.random.default_rng((abs(self.objective.context.seed), abs(seed), purpose))


def _facts_of(code: Code) -> dict[str, object]:
    """What a trial keeps of what its compiler said."""
    if not isinstance(code, Code):
        raise TypeError(f"code() must return an autotune.Code; it returned a {type(code).__name__}")
    facts = given_facts(code.facts)
    if code.fingerprint:
        facts[CODE] = str(code.fingerprint)
    if code.resources:
        facts[RESOURCES] = plain_numbers(code.resources, "resource")
    return facts


def _ends_as(decision: Decision) -> tuple[Status, str]:
    match decision.verdict:
        case Verdict.DIVERGED:
            return Status.DIVERGED, decision.reason
        case Verdict.REJECTED:
            return Status.PRUNED, decision.reason
        case _:
            return Status.OK, ""
