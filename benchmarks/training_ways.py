"""One search of :mod:`benchmarks.training`, in a process of its own.

    python -m benchmarks.training_ways \\
        '{"space": "digits-mlp", "way": "autotune", "seed": 0, "seconds": 60}'

It prints a JSON line: the best validation loss so far after how many seconds, whenever it improved. The clock
starts with the process, so that what a tuner loads and starts is its own cost. Every way trains by the same
code, one thread each, and counts what any of its trainings, complete or stopped, has reported.
"""

from __future__ import annotations

import time

BEGAN = time.monotonic()

import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402
from contextlib import suppress  # noqa: E402
from dataclasses import dataclass, field, replace  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from autotune.measure.outcome import Report
    from autotune.session.execution.workers import WorkerExecutor
    from autotune.space.spec import StudySpec

SPACES = Path(__file__).parents[1] / "searchspaces"
FACTOR = 3


@dataclass(frozen=True)
class Task:
    """What is searched by whom, and how long."""

    space: str
    way: str
    seed: int
    seconds: float


@dataclass
class Watch:
    """The best loss so far, and how much was trained."""

    best: float = float("inf")
    improved: list[tuple[float, float]] = field(default_factory=list)
    steps: int = 0
    trials: int = 0

    def hear(self, loss: float) -> None:
        self.steps += 1
        if loss < self.best:
            self.best = loss
            self.improved.append((round(elapsed(), 3), loss))


class TimeIsUpError(BaseException):
    """Ends the training that is running when the time is up; no tuner is to catch it."""


def elapsed() -> float:
    return time.monotonic() - BEGAN


def read_space(task: Task) -> StudySpec:
    from autotune.session.opening.loading import load_spec
    from autotune.session.opening.overrides import Overrides

    return load_spec(SPACES / f"{task.space}.yaml", Overrides(trials=100_000, seed=task.seed))


# -- autotune -------------------------------------------------------------------------------------


def autotune_by(strategy: str, policy: str = "") -> Callable[[Task, Watch], None]:
    """A search with a strategy, and a policy of early stopping or that of the space file.

    The finalists are not measured again.
    """

    def search(task: Task, watch: Watch) -> None:
        from autotune.measure.kernels.compile_cache import cache_folder
        from autotune.provenance.device import device_facts
        from autotune.search.registry import strategy_class
        from autotune.session.api import capture_environment
        from autotune.session.session import Session
        from autotune.store.store import Store

        spec = read_space(task)
        early = spec.search.early_stopping
        assert early is not None
        early = replace(early, policy=policy or early.policy, factor=FACTOR)
        spec = replace(
            spec,
            search=replace(spec.search, strategy=strategy, early_stopping=early),
            measure=replace(spec.measure, finalists=0, cores=1),
        )
        with tempfile.TemporaryDirectory() as folder, Store.open(str(Path(folder) / "store.db")) as store:
            load = partial(strategy_class, strategy)  # as `autotune search` does while the worker starts
            executor = _hearing(watch)(spec, device_facts(), compiled=cache_folder(), meanwhile=load)
            environment = capture_environment(spec)
            spec = replace(spec, budget=replace(spec.budget, time=task.seconds - elapsed()))
            watch.trials = len(Session(spec, store, executor, environment).run().trials)

    return search


def _hearing(watch: Watch) -> type[WorkerExecutor]:
    """An executor that lets the watch hear each report as the session does."""
    from autotune.session.execution.workers import WorkerExecutor

    class Hearing(WorkerExecutor):
        _session: Callable[..., str] = staticmethod(lambda *_: "")

        @property
        def listener(self) -> Callable[..., str]:
            return self._heard

        @listener.setter
        def listener(self, session: Callable[..., str]) -> None:
            self._session = session

        def _heard(self, trial: int, report: Report, waits: bool) -> str:
            watch.hear(report.metrics["loss"])
            return self._session(trial, report, waits)

    return Hearing


# -- others ---------------------------------------------------------------------------------------


class Trainings:
    """Trains configurations in this process, as a script does that is tuned by a library."""

    def __init__(self, task: Task, watch: Watch) -> None:
        from autotune.measure.kernels.compile_cache import cache_folder
        from autotune.measure.loading.load import load_objective
        from autotune.measure.objective import Context

        self.spec = read_space(task)
        early = self.spec.search.early_stopping
        assert early is not None
        self.steps = early.max
        self._task = task
        self._watch = watch
        self._count = 0
        self._folder = tempfile.TemporaryDirectory()
        context = Context(self.spec.workload, {}, Path(self._folder.name), task.seed, cache_folder())
        self.objective: Any = load_objective(self.spec.objective, context)

    def train(self, knobs: Mapping[str, Any], tell: Callable[[int, float], None]) -> float:
        """The loss at the end of a training; ``tell`` may end it. Raises the objective's own signals."""
        import numpy as np

        self._count += 1
        self._watch.trials += 1
        self.objective.report = _Told(self.steps, self._task, self._watch, tell)
        rng = np.random.default_rng((self._task.seed, self._count))
        return float(self.objective.measure(self.objective.load(knobs), rng).values["loss"])


@dataclass
class _Told:
    """Stands in the place of the reporter."""

    steps: int
    task: Task
    watch: Watch
    tell: Callable[[int, float], None]
    folder: None = None

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        if elapsed() > self.task.seconds:
            raise TimeIsUpError
        self.watch.hear(metrics["loss"])
        self.tell(step, metrics["loss"])


def random_search(task: Task, watch: Watch) -> None:
    """Uniform draws, each trained to its end."""
    import numpy as np

    from autotune.measure.objective import Signal

    trainings = Trainings(task, watch)
    rng = np.random.default_rng(task.seed)
    while True:
        for drawn in trainings.spec.space.sample(rng, 1):
            try:
                trainings.train(drawn, lambda *_: None)
            except Signal:
                continue  # diverged


def optuna_hyperband(task: Task, watch: Watch) -> None:
    """TPE with the Hyperband pruner, as they come. A training that diverges is a failed trial of it."""
    import optuna

    from autotune.measure.objective import Signal
    from benchmarks.peers.described import described
    from benchmarks.peers.optuna_peer import suggested

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    trainings = Trainings(task, watch)
    knobs = described(trainings.spec.space)

    def objective(trial: Any) -> float:
        values: dict[str, Any] = {}
        for knob in knobs:
            if knob.when is None or values.get(knob.when.knob) in knob.when.values:
                values[knob.name] = suggested(trial, knob)

        def tell(step: int, loss: float) -> None:
            trial.report(loss, step)
            if trial.should_prune():
                raise optuna.TrialPruned

        return trainings.train(values, tell)

    pruner = optuna.pruners.HyperbandPruner(1, trainings.steps, FACTOR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=task.seed), pruner=pruner)
    study.optimize(objective, catch=(Signal,))


def ray_asha(task: Task, watch: Watch) -> None:
    """Ray Tune's ASHA over random draws, one training at a time in an actor that is used again."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    folder = Path(tempfile.mkdtemp())
    file = folder / "reports"
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    spec = read_space(task)
    early = spec.search.early_stopping
    assert early is not None
    scheduler = ASHAScheduler("steps", "loss", "min", early.max, 1, FACTOR)
    tuner = tune.Tuner(
        tune.with_parameters(_ray_training, task=task, began=BEGAN, file=str(file)),
        param_space=_ray_space(spec),
        tune_config=tune.TuneConfig(
            scheduler=scheduler,
            num_samples=-1,
            time_budget_s=task.seconds - elapsed(),
            max_concurrent_trials=1,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder), verbose=0, failure_config=tune.FailureConfig(max_failures=0)
        ),
    )
    results = tuner.fit()
    watch.trials = len(results)
    for line in file.read_text().splitlines() if file.exists() else []:
        at, loss = map(float, line.split())
        watch.steps += 1
        if at <= task.seconds and loss < watch.best:
            watch.best = loss
            watch.improved.append((round(at, 3), loss))
    ray.shutdown()


def _ray_training(config: Mapping[str, Any], task: Task, began: float, file: str) -> None:
    """One training in Ray's actor; the clock of a machine is the same in all its processes."""
    from ray import tune

    from autotune.measure.objective import Signal

    def tell(step: int, loss: float) -> None:
        with open(file, "a") as reports:  # noqa: PTH123 - in an actor
            reports.write(f"{time.monotonic() - began} {loss}\n")
        tune.report({"loss": loss, "steps": step})

    knobs = {name: value for name, value in config.items() if value is not None}
    trainings = Trainings(replace(task, seconds=float("inf")), Watch())
    try:
        trainings.train(knobs, tell)
    except Signal:
        tune.report({"loss": float("inf"), "steps": trainings.steps})


def _ray_space(spec: StudySpec) -> dict[str, Any]:
    from ray import tune

    from benchmarks.peers.described import described

    made: dict[str, Any] = {}
    for knob in described(spec.space):
        if knob.kind == "float":
            made[knob.name] = (tune.loguniform if knob.log else tune.uniform)(knob.low, knob.high)
        elif knob.kind == "integer":
            made[knob.name] = (tune.lograndint if knob.log else tune.randint)(
                int(knob.low), int(knob.high) + 1
            )
        else:
            made[knob.name] = tune.choice(list(knob.values))
    return made


WAYS: Mapping[str, Callable[[Task, Watch], None]] = {
    "autotune": autotune_by("bayes"),
    "autotune-asha": autotune_by("bayes", "asha"),
    "autotune-async-hyperband": autotune_by("bayes", "async-hyperband"),
    "autotune-hyperband": autotune_by("bayes", "hyperband"),
    "random": random_search,
    "optuna": optuna_hyperband,
    "ray": ray_asha,
}


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    watch = Watch()
    with suppress(TimeIsUpError):
        WAYS[task.way](task, watch)
    line = {**vars(task), "improved": watch.improved, "steps": watch.steps, "trials": watch.trials}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
