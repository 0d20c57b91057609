"""Any strategy as a searcher for Ray Tune.

::

    search = AutotuneSearch(metric="time", mode="min", constraints=["tile_m * tile_n <= 4096"])
    tune.Tuner(trainable, param_space=..., tune_config=tune.TuneConfig(search_alg=search, num_samples=50))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

try:
    from ray import cloudpickle
    from ray.tune.search import Searcher
except ImportError as error:
    raise ImportError("autotune.interop.ray needs Ray Tune: pip install 'autotune[ray]'") from error

from autotune.errors import InputError, Problem
from autotune.interop.ray_space import ray_space
from autotune.search.contract import Observation, Option, Strategy
from autotune.search.contract import Problem as SearchProblem
from autotune.search.registry import make_strategy
from autotune.session.loading import load_spec
from autotune.space.configuration import Configuration, plain
from autotune.space.rule import Rule
from autotune.space.space import Space
from autotune.space.spec import MetricSpec, StudySpec
from autotune.status import Status

GOALS = {"min": "minimize", "max": "maximize"}
ITERATION = "training_iteration"
"""How many results a trial has reported, in each of them."""


class AutotuneSearch(Searcher):  # type: ignore[misc]
    """Lets a strategy (``autotune search --help`` lists them) propose the trials of a Tune experiment.

    ``space`` is Tune's own search space (or comes with the Tuner's ``param_space``), a
    :class:`~autotune.space.space.Space`, or the path of a space.yaml. A file says what the metrics
    are too, and a trial past a metric's bound counts as wrong. ``constraints`` are rules over the parameters
    of Tune's space; how they are called there, :func:`~autotune.interop.ray_space.ray_space` says.
    Several metrics are lists: ``metric=["time", "memory"], mode=["min", "min"]``.

    ``points_to_evaluate`` are tried first. A failed trial teaches that it failed, one that a scheduler
    stopped what it reported last. Trials in flight are pending. No configuration of a discrete space is
    proposed twice; when all were, the experiment ends. State is saved and restored with the experiment.
    With one trial at a time the same ``seed`` gives the same trials.

    Raises :class:`~autotune.errors.InputError` for bad arguments.
    """

    _metric: str | list[str] | None
    _mode: str | list[str] | None

    def __init__(
        self,
        space: Mapping[str, Any] | Space | StudySpec | str | Path | None = None,
        *,
        metric: str | list[str] | None = None,
        mode: str | list[str] | None = None,
        strategy: str = "auto",
        seed: int | None = None,
        constraints: Sequence[str] = (),
        options: Mapping[str, Option] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if isinstance(constraints, str):
            raise InputError(f"constraints must be a list of rules: [{constraints!r}]")
        self._bounds: tuple[MetricSpec, ...] = ()
        if isinstance(space, (StudySpec, str, Path)):
            spec = load_spec(space)
            space, self._bounds = spec.space, spec.metrics
            if metric is None and mode is None:
                metric = [goal.name for goal in spec.goals]
                mode = ["min" if goal.goal == "minimize" else "max" for goal in spec.goals]
                if len(metric) == 1:
                    metric, mode = metric[0], mode[0]
        super().__init__(metric=metric, mode=mode)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._strategy_name, self._seed, self._options = strategy, seed, dict(options or {})
        self._rules = tuple(Rule.parse(text) for text in constraints)
        self._points = [dict(point) for point in points_to_evaluate]
        self._translation: _Translation | None = None
        self._asks = 0
        self._flying: dict[str, Configuration] = {}
        self._told: list[Observation] = []
        self._longest = 0
        self._ended: set[str] = set()
        self._strategy: Strategy | None = None
        if space is not None:
            self._set_space(space)

    # -- what Tune calls

    def set_search_properties(
        self,
        metric: str | list[str] | None,
        mode: str | list[str] | None,
        config: dict[str, Any],
        **spec: Any,
    ) -> bool:
        self._metric = self._metric or metric
        self._mode = self._mode or mode
        if self._translation is not None:
            return False  # Tune then sees to it that config holds constants alone
        self._set_space(config)
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str:
        strategy, translation = self._ready()
        while self._points:
            configuration = translation.configuration(self._points.pop(0))
            if configuration.hash not in strategy.taken:
                strategy.restore(self._asks, [configuration], [])
                return self._handed_out(trial_id, configuration)
        for proposal in strategy.ask(1):
            self._asks = strategy.asks
            return self._handed_out(trial_id, proposal.configuration)
        if not strategy.usable and not self._flying:
            rules = ", ".join(repr(rule.text) for rule in translation.space.constraints) or "the space"
            raise InputError(f"no configuration satisfies {rules}")
        finished: str = Searcher.FINISHED
        return finished

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        configuration = self._flying.pop(trial_id, None)
        if configuration is not None:
            stopped = self._stopped(trial_id, result or {})
            self._tell(configuration, result or {}, error, stopped)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """A trial teaches when it ends; here only how far trials go, and which of them end by themselves."""
        self._longest = max(self._longest, int(result.get(ITERATION, 0)))
        if result.get("done"):
            self._ended.add(trial_id)

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Learn from a trial of elsewhere. With several metrics there is no telling which ``value`` is."""
        _, translation = self._ready()
        (goal,) = self._goals()
        self._tell(translation.configuration(parameters), {goal.name: value}, error, pruned)

    def save(self, checkpoint_path: str) -> None:
        Path(checkpoint_path).write_bytes(cloudpickle.dumps(self.__getstate__()))

    def restore(self, checkpoint_path: str) -> None:
        self.__setstate__(cloudpickle.loads(Path(checkpoint_path).read_bytes()))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_strategy": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # -- how

    def _set_space(self, space: Mapping[str, Any] | Space) -> None:
        if isinstance(space, Space):
            if self._rules:
                raise InputError(
                    "both a space and constraints were given: put the constraints into the space"
                )
            self._translation = _OwnSpace(space)
        else:
            self._translation = ray_space(space, self._rules)

    def _ready(self) -> tuple[Strategy, _Translation]:
        """The strategy, which stands where the experiment stands."""
        if self._translation is None:
            hint = "give space= to AutotuneSearch, or param_space= with tune.choice and the like to the Tuner"
            raise InputError(Problem("there is nothing to search", hint=hint))
        if self._strategy is None:
            metrics = (*self._goals(), *(m for m in self._bounds if m.name not in self._metric_names()))
            problem = SearchProblem(self._translation.space, metrics, options=self._options)
            self._strategy = make_strategy(self._strategy_name, problem, self._seed)
            self._strategy.restore(self._asks, list(self._flying.values()), self._told)
        return self._strategy, self._translation

    def _metric_names(self) -> list[str]:
        return [self._metric] if isinstance(self._metric, str) else list(self._metric or ())

    def _goals(self) -> tuple[MetricSpec, ...]:
        """A metric a name, with its goal; ``obs`` is only looked at."""
        modes = [self._mode] if isinstance(self._mode, str) else list(self._mode or ())
        names = self._metric_names()
        if not names or len(names) != len(modes):
            hint = 'AutotuneSearch(metric="time", mode="min")'
            raise InputError(Problem("it is not known what to search for", expected=hint))
        bounds = {metric.name: metric for metric in self._bounds}
        found = []
        for name, mode in zip(names, modes, strict=True):
            bound = bounds.get(name, MetricSpec(name))
            goal: Any = GOALS.get(mode)
            found.append(MetricSpec(name, goal, bound.unit, bound.at_most, bound.at_least))
        return tuple(found)

    def _handed_out(self, trial_id: str, configuration: Configuration) -> dict[str, Any]:
        assert self._translation is not None
        self._flying[trial_id] = configuration
        return self._translation.config(configuration)

    def _stopped(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether a scheduler stopped the trial, as far as can be told.

        Tune marks every last result as done. But it announces it beforehand only where the trial ended by
        itself; else the trial was stopped early if another one went on for longer.
        """
        by_itself = trial_id in self._ended
        self._ended.discard(trial_id)
        return not by_itself and int(result.get(ITERATION, self._longest)) < self._longest

    def _tell(
        self, configuration: Configuration, result: Mapping[str, Any], error: bool, stopped: bool
    ) -> None:
        strategy, _ = self._ready()
        observation = _observation(configuration, strategy.problem.metrics, result, error, stopped)
        self._told.append(observation)
        strategy.tell([observation])


class _Translation(Protocol):
    """Between Tune's configurations and ours."""

    @property
    def space(self) -> Space: ...

    def config(self, configuration: Configuration) -> dict[str, Any]: ...

    def configuration(self, config: Mapping[str, Any]) -> Configuration: ...


class _OwnSpace:
    """The trainable gets the knobs that exist by their names, as plain values."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def config(self, configuration: Configuration) -> dict[str, Any]:
        return {name: plain(value) for name, value in configuration.items()}

    def configuration(self, config: Mapping[str, Any]) -> Configuration:
        names = [knob.name for knob in self.space.knobs]
        return self.space.configuration({name: config[name] for name in names if name in config})


def _observation(
    configuration: Configuration,
    metrics: Sequence[MetricSpec],
    result: Mapping[str, Any],
    error: bool,
    stopped: bool,
) -> Observation:
    """What a trial taught; how long it took is left out, so that a seeded experiment can be repeated."""
    if error:
        return Observation(configuration, Status.CRASHED)
    values = {m.name: float(result[m.name]) for m in metrics if _is_number(result.get(m.name))}
    if any(not math.isfinite(values.get(m.name, 0.0)) for m in metrics if m.goal):
        return Observation(configuration, Status.DIVERGED)
    if any(_beyond(metric, values) for metric in metrics):
        return Observation(configuration, Status.WRONG)
    stopped = stopped or any(m.goal and m.name not in values for m in metrics)
    return Observation(configuration, Status.PRUNED if stopped else Status.OK, values)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _beyond(metric: MetricSpec, values: Mapping[str, float]) -> bool:
    value = values.get(metric.name)
    if value is None:
        return False
    over = metric.at_most is not None and not value <= metric.at_most
    return over or (metric.at_least is not None and not value >= metric.at_least)
