"""What a caller says in place of the space file: how much to try, by which strategy, from which seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autotune.arguments import count_problems, target_problems
from autotune.errors import InputError, Problem
from autotune.measure.recordings.replay import limit_to_recording
from autotune.space.reading.settings import target_problem
from autotune.space.spec import Budget, ReplayObjective, SearchSettings, StudySpec
from autotune.space.units import given_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """``None``: as the file says.

    Raises :class:`autotune.errors.InputError` with every value that no search could have.
    """

    trials: int | None = None
    time: float | str | None = None
    """Seconds, or a text such as ``"1h30m"``."""
    patience: int | None = None
    """Trials without an improvement."""
    target: float | None = None
    """A value of the goal that is good enough, in its unit."""
    strategy: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise InputError(problems)

    def applied_to(self, spec: StudySpec) -> StudySpec:
        """The study with these in place of its own.

        Raises :class:`autotune.errors.InputError` for a target where there is not one goal.
        """
        spec = replace(spec, budget=self._budget(spec), search=self._search(spec.search))
        return limit_to_recording(spec) if isinstance(spec.objective, ReplayObjective) else spec

    def _budget(self, spec: StudySpec) -> Budget:
        own = spec.budget
        budget = Budget(
            trials=own.trials if self.trials is None else self.trials,
            time=own.time if self.time is None else given_time(self.time),
            patience=own.patience if self.patience is None else self.patience,
            target=own.target if self.target is None else float(self.target),
        )
        if problem := target_problem(budget.target, spec.metrics):
            raise InputError(problem)
        return budget

    def _search(self, own: SearchSettings) -> SearchSettings:
        return replace(
            own,
            strategy=self.strategy or own.strategy,
            seed=own.seed if self.seed is None else int(self.seed),
        )

    def _problems(self) -> Iterator[Problem]:
        yield from count_problems("trials", self.trials, 1)
        yield from count_problems("patience", self.patience, 1)
        yield from count_problems("seed", self.seed, 0)
        yield from target_problems(self.target)
        try:
            given_time(self.time)
        except InputError as error:
            yield from error.problems
        if self.strategy is not None and not isinstance(self.strategy, str):
            yield Problem(f"strategy is {self.strategy!r:.60}", expected="the name of a strategy")


AS_THE_FILE_SAYS = Overrides()
