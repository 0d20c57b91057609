"""One call of an objective's ``measure``: what it returned, as plain numbers, and what happened meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.clocks import monotonic
from autotune.measure.facts import given_facts
from autotune.measure.forked import forks_end_here
from autotune.measure.objective import Lost, Objective
from autotune.measure.own_folder import FOLDER
from autotune.measure.phases.mistakes import MissingMetricError
from autotune.measure.readings import Clock, Sample, named_values, plain_numbers
from autotune.measure.reports import SILENT, Curve, Reporter, Stopped


class Meter:
    """Takes readings of what an objective has loaded, on one clock.

    With a ``curve`` each reading is a whole run, which begins from nothing and reports while it goes.
    """

    def __init__(self, objective: Objective, goals: Sequence[str], clock: Clock, curve: Curve | None) -> None:
        """``goals``: the metrics to optimise; a bare number that ``measure`` returns is the first of them."""
        self.clock = clock
        self._objective = objective
        self._goals = goals
        self._curve = curve

    def take(self, loaded: Any, rng: np.random.Generator) -> Sample:
        """One reading; raises ``TypeError`` for one that cannot be used, and what the objective raises.

        One that was lost is a discarded reading, and may be taken again.
        """
        try:
            if self._curve is None:
                return self._plain(self._call(loaded, rng))
            with self._empty_folder() as folder:
                return self.follow(loaded, rng, Reporter(self._curve, folder=folder))
        except Lost as lost:
            return Sample({}, self.clock.context, discarded=f"lost ({lost})")

    def is_late(self, deadline: float) -> bool:
        """Whether another reading, if it took 1.5 times as long as the last, would end after the deadline."""
        return monotonic() + 1.5 * self.clock.last_seconds > deadline

    def follow(self, loaded: Any, rng: np.random.Generator, reporter: Reporter) -> Sample:
        """The values at the end of one run, or where it was stopped (``reporter.ended``).

        Metrics that it does not return are taken from its last report.
        """
        returned: object = None
        self._objective.report = reporter
        try:
            returned = self._call(loaded, rng)
        except Stopped:
            pass  # the reporter knows why
        finally:
            self._objective.report = SILENT
            reporter.close()
        reported = dict(reporter.last.metrics) if reporter.last is not None else {}
        if reporter.ended is not None or (returned is None and reported):
            facts = given_facts(returned.facts) if isinstance(returned, Sample) else {}
            return Sample(reported, self.clock.context, facts=facts)
        sample = self._plain(returned)
        return replace(sample, values={**reported, **sample.values}, discarded="")

    def _call(self, loaded: Any, rng: np.random.Generator) -> object:
        with forks_end_here(), self.clock:
            return self._objective.measure(loaded, rng)

    def _plain(self, returned: object) -> Sample:
        """What ``measure`` returned, as it can be sent and stored, and the context of the clock."""
        given = returned if isinstance(returned, Sample) else Sample({})
        goal, *_ = self._goals
        if returned is None:
            raise TypeError(f"the objective returned nothing; expected a number: the metric {goal!r}")
        values = named_values(given.values if given is returned else returned, goal, self._goals)
        if goal not in values:
            known = ", ".join(values) or "nothing"
            message = f"measure() must return the metric {goal!r}; it returned {known}"
            raise MissingMetricError(message, [goal], given.facts) if values else TypeError(message)
        context = {**self.clock.context, **plain_numbers(given.context, "context")}
        facts = given_facts(given.facts)
        return Sample(values, context, str(given.discarded or ""), facts, given.cut_off)

    @contextmanager
    def _empty_folder(self) -> Iterator[Path]:
        """A place for the checkpoints of one run, which must not find any; removed when the run is over."""
        folder = self._objective.context.cache / FOLDER / f"{os.getpid()}-{id(self)}"
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
