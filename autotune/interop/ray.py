"""Any strategy as a searcher for Ray Tune.

::

    search = AutotuneSearch(metric="time", mode="min", constraints=["tile_m * tile_n <= 4096"])
    tune.Tuner(trainable, param_space=..., tune_config=tune.TuneConfig(search_alg=search, num_samples=50))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

try:
    from ray import cloudpickle
    from ray.tune.search import Searcher
except ImportError as error:
    raise ImportError("autotune.interop.ray needs Ray Tune: pip install 'ray[tune]'") from error

from autotune.errors import InputError, Problem
from autotune.interop.arguments import Engine, rules_of, spec_of
from autotune.interop.for_ray.space import ray_space
from autotune.interop.for_ray.trials import ITERATION, TuneTrial
from autotune.search.contract import Option, Reason, Strategy
from autotune.search.contract import Problem as SearchProblem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration, plain
from autotune.space.space import Space
from autotune.space.spec import MetricSpec, StudySpec

GOALS: Mapping[str, Literal["minimize", "maximize"]] = {"min": "minimize", "max": "maximize"}


class AutotuneSearch(Searcher):  # type: ignore[misc]
    """Lets a strategy (``autotune search --help`` lists them) propose the trials of a Tune experiment.

    ``space`` is Tune's own search space (or comes with the Tuner's ``param_space``), a
    :class:`~autotune.space.space.Space`, or the path of a space.yaml. A file says what the metrics
    are too, and a trial past a metric's bound counts as wrong. ``constraints`` are rules over the parameters
    of Tune's space; how they are called there, :func:`~autotune.interop.for_ray.space.ray_space` says.
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
        engine = Engine.of(strategy, seed, options)
        self._bounds: tuple[MetricSpec, ...] = ()
        if space is not None and not isinstance(space, (Mapping, Space)):
            spec = spec_of(
                space, "a Space, the path of a space.yaml, or a dictionary of tune.choice and the like"
            )
            space, self._bounds = spec.space, spec.metrics
            if metric is None and mode is None:
                metric = [goal.name for goal in spec.goals]
                mode = ["min" if goal.goal == "minimize" else "max" for goal in spec.goals]
                if len(metric) == 1:
                    metric, mode = metric[0], mode[0]
        for given in [mode] if isinstance(mode, str) else mode or ():
            if given not in GOALS:
                raise InputError(Problem(f"mode is {given!r}", expected="'min' or 'max'"))
        super().__init__(metric=metric, mode=mode)
        self._strategy_name, self._seed, self._options = engine.strategy, engine.seed, engine.options
        self._rules = rules_of(constraints)
        self._points = [dict(point) for point in points_to_evaluate]
        self._translation: _Translation | None = None
        self._asks = 0
        self._flying: dict[str, TuneTrial] = {}
        self._told: list[TuneTrial] = []
        self._longest = 0
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
                return self._handed_out(trial_id, configuration, {})
        for proposal in strategy.ask(1):
            self._asks = strategy.asks
            return self._handed_out(trial_id, proposal.configuration, proposal.reason)
        if not strategy.usable and not self._flying:
            rules = ", ".join(repr(rule.text) for rule in translation.space.constraints) or "the space"
            raise InputError(f"no configuration satisfies {rules}")
        finished: str = Searcher.FINISHED
        return finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """A trial teaches when it ends; here it is noted what it reports on its way."""
        trial = self._flying.get(trial_id)
        if trial is not None:
            trial.report(result, self._metrics())
            trial.by_itself = trial.by_itself or bool(result.get("done"))

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        trial = self._flying.pop(trial_id, None)
        if trial is not None:
            trial.error = error
            if result:
                trial.report(result, self._metrics())
            self._tell(trial)

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Learn from a trial of elsewhere. With several metrics there is no telling which ``value`` is.

        Raises :class:`~autotune.errors.InputError` for several.
        """
        _, translation = self._ready()
        goal, *others = (metric for metric in self._metrics() if metric.goal)
        if others:
            names = ", ".join(metric.name for metric in (goal, *others))
            raise InputError(
                Problem(
                    f"add_evaluated_point has one value, and the metrics are {names}",
                    expected="one metric",
                    hint="give such configurations as points_to_evaluate: they are tried first",
                )
            )
        configuration = translation.configuration(parameters)
        trial = TuneTrial(configuration, error=error, pruned=pruned, by_itself=not pruned)
        for number, each in enumerate(intermediate_values or (), 1):
            trial.report({goal.name: each, ITERATION: number}, [goal])
        trial.report({goal.name: value}, [goal])
        self._tell(trial)

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
            metrics = self._metrics()
            problem = SearchProblem(self._translation.space, metrics, options=self._options)
            self._strategy = make_strategy(self._strategy_name, problem, self._seed)
            flying = [trial.configuration for trial in self._flying.values()]
            told = [trial.observation(metrics, self._longest) for trial in self._told]
            self._strategy.restore(self._asks, flying, told)
        return self._strategy, self._translation

    def _metrics(self) -> tuple[MetricSpec, ...]:
        """A metric a name, with its goal (``obs`` has none), then those that are only bounded."""
        names = [self._metric] if isinstance(self._metric, str) else list(self._metric or ())
        modes = [self._mode] if isinstance(self._mode, str) else list(self._mode or ())
        if not names or len(names) != len(modes):
            hint = 'AutotuneSearch(metric="time", mode="min")'
            raise InputError(Problem("it is not known what to search for", expected=hint))
        bounds = {metric.name: metric for metric in self._bounds}
        found = [
            replace(bounds.pop(name, MetricSpec(name)), goal=GOALS.get(mode))
            for name, mode in zip(names, modes, strict=True)
        ]
        return (*found, *(replace(metric, goal=None) for metric in bounds.values()))

    def _handed_out(self, trial_id: str, configuration: Configuration, reason: Reason) -> dict[str, Any]:
        assert self._translation is not None
        self._flying[trial_id] = TuneTrial(configuration, reason)
        return self._translation.config(configuration)

    def _tell(self, trial: TuneTrial) -> None:
        strategy, _ = self._ready()
        self._told.append(trial)
        if trial.last > self._longest:
            self._longest, self._strategy = trial.last, None  # what the others came to means less now
        else:
            strategy.tell([trial.observation(strategy.problem.metrics, self._longest)])


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
