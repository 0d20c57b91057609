"""Optuna studies that are resumed, shared, copied and read back."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.interop.for_optuna.trials import observation
from autotune.interop.optuna import AutotuneSampler, suggest
from autotune.space.knobs import IntegerRange, Permutation
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from tests.interop.for_optuna.cases import (
    RULE,
    SPACE,
    TILES,
    allowed,
    cost,
    different,
    kernel,
    resumes_the_same,
    stored,
    study,
    tried,
)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


class Meanwhile(optuna.storages.InMemoryStorage):
    """Does something just before a plan is written, as another process may."""

    before_a_plan: Callable[[], object] | None = None

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        meanwhile, self.before_a_plan = self.before_a_plan, None
        if meanwhile is not None:
            meanwhile()
        super().set_trial_system_attr(trial_id, key, value)


def loaded(storage: optuna.storages.BaseStorage, space: Space) -> optuna.Study:
    """The study of a storage as another process has it, with a sampler of its own."""
    sampler = AutotuneSampler(seed=0, strategy="random", space=space)
    return optuna.load_study(study_name="s", storage=storage, sampler=sampler)


class TestStudies:
    @pytest.mark.parametrize("strategy", ["auto", "random", "evolution", "optuna-tpe"])
    def test_a_resumed_study_goes_on_as_if_it_had_not_stopped(self, strategy: str, tmp_path: Path) -> None:
        resumes_the_same(kernel, tmp_path, strategy=strategy, constraints=[RULE])

    def test_a_resumed_study_of_a_given_space(self, tmp_path: Path) -> None:
        resumes_the_same(kernel, tmp_path, space=SPACE)

    def test_several_threads_never_try_the_same(self) -> None:
        """Two trials are always open together, since each waits for the other."""
        both = threading.Barrier(2, timeout=60)

        def together(trial: optuna.Trial) -> float:
            value = kernel(trial)
            both.wait()
            return value

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=SPACE))
        found.optimize(together, n_trials=16, n_jobs=2)
        assert different(found) == 16

    def test_several_samplers_of_one_storage_never_try_the_same(self) -> None:
        """As processes do, each with a sampler of its own; all of them plan at the same time."""
        at_once = threading.Barrier(4, timeout=60)
        storage = optuna.storages.InMemoryStorage()
        optuna.create_study(study_name="s", storage=storage)

        def work() -> None:
            own = loaded(storage, SPACE)
            for _ in range(8):
                trial = own.ask()
                at_once.wait()
                own.tell(trial, kernel(trial))

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        found = optuna.load_study(study_name="s", storage=storage)
        assert len(found.trials) == different(found) == 32

    def test_a_sampler_does_not_take_another_that_just_begins_for_gone(self) -> None:
        """Its trial runs already and has no plan yet. It got the same as the other one, now and then."""
        storage = Meanwhile()
        optuna.create_study(study_name="s", storage=storage)
        one, other = loaded(storage, SPACE), loaded(storage, SPACE)
        begun = storage.create_new_trial(one._study_id)
        storage.before_a_plan = lambda: kernel(optuna.Trial(one, begun))
        kernel(other.ask())
        assert storage.before_a_plan is None
        assert different(other) == len(other.trials) == 2

    def test_the_last_configuration_is_not_tried_again_where_another_process_is_done_with_it(self) -> None:
        """Who finds its plan taken looks again for a while, in which the other trial may end."""
        storage = Meanwhile()
        optuna.create_study(study_name="s", storage=storage)
        space = Space([IntegerRange("a", 1, 2)])
        one, other = loaded(storage, space), loaded(storage, space)

        def grid(trial: optuna.Trial) -> float:
            return float(trial.suggest_int("a", 1, 2))

        other.optimize(grid, n_trials=1)
        begun = storage.create_new_trial(other._study_id)
        storage.before_a_plan = lambda: other.tell(1, grid(optuna.Trial(other, begun)))
        one.optimize(grid, n_trials=1)
        assert storage.before_a_plan is None
        assert sorted(params["a"] for params in tried(one) if params) == [1, 2]
        assert [trial.state for trial in one.trials if not trial.params] == [TrialState.PRUNED]

    @pytest.mark.parametrize("seed", range(4))
    def test_threads_try_a_discrete_space_once_each(self, seed: int) -> None:
        """They begin before the space is known, and one asks for a trial when there is none left."""

        def grid(trial: optuna.Trial) -> float:
            return trial.suggest_int("a", 1, 6) + float(trial.suggest_int("b", 1, 6))

        found = optuna.create_study(sampler=AutotuneSampler(seed=seed, strategy="random"))
        found.optimize(grid, n_trials=200, n_jobs=8)
        ran = [tuple(trial.params.values()) for trial in found.trials if trial.params]
        assert len(ran) == len(set(ran)) == 36
        late = [trial for trial in found.trials if not trial.params]
        assert {trial.state for trial in late} <= {TrialState.PRUNED}
        assert all("every configuration" in trial.system_attrs["autotune.pruned"] for trial in late)

    def test_several_samplers_leave_nothing_out(self) -> None:
        """As processes do: those that planned the same may give up the last configuration at once."""
        storage = optuna.storages.InMemoryStorage()
        optuna.create_study(study_name="s", storage=storage)

        def work(seed: int) -> None:
            own = optuna.load_study(
                study_name="s", storage=storage, sampler=AutotuneSampler(seed=seed, strategy="random")
            )
            own.optimize(lambda trial: trial.suggest_int("a", 1, 4) + trial.suggest_int("b", 1, 5), 100)

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        found = optuna.load_study(study_name="s", storage=storage)
        assert different(found) - any(not params for params in tried(found)) == 20
        assert len(found.trials) < 100

    def test_a_study_of_which_nothing_is_left_runs_nothing(self) -> None:
        def small(trial: optuna.Trial) -> float:
            return float(trial.suggest_int("a", 1, 3))

        found = study(small, trials=10)
        found.optimize(small, n_trials=10)
        assert [trial.state for trial in found.trials[3:]] == [TrialState.PRUNED]
        found.enqueue_trial({"a": 2})
        found.optimize(small, n_trials=1)
        assert found.trials[4].params == {"a": 2}

    def test_the_last_trial_of_a_space_ends_the_others(self) -> None:
        """Two of four configurations are always open together: nobody runs a fifth."""
        both = threading.Barrier(2, timeout=60)

        def together(trial: optuna.Trial) -> float:
            value = float(trial.suggest_int("a", 1, 4))
            both.wait()
            return value

        sampler = AutotuneSampler(seed=0, space=Space([IntegerRange("a", 1, 4)]))
        found = optuna.create_study(sampler=sampler)
        found.optimize(together, n_trials=200, n_jobs=2)
        assert sorted(params["a"] for params in tried(found) if params) == [1, 2, 3, 4]

    @pytest.mark.parametrize("seed", range(3))
    def test_what_a_killed_process_tried_is_tried_again(self, seed: int, tmp_path: Path) -> None:
        """Its trial runs for ever in the storage. It had kept its configuration, and another was repeated."""
        program = (
            "import os, sys, optuna\n"
            "from autotune.interop.optuna import AutotuneSampler\n"
            "def objective(trial):\n"
            "    a = trial.suggest_int('a', 0, 4)\n"
            "    a != 1 or os.kill(os.getpid(), 9)\n"
            "    return (a - 1) ** 2\n"
            "sampler = AutotuneSampler(seed=int(sys.argv[2]))\n"
            "study = optuna.create_study(study_name='s', storage=sys.argv[1], sampler=sampler)\n"
            "study.optimize(objective, n_trials=20)\n"
        )
        address = f"sqlite:///{tmp_path / 'study.db'}"
        ended = subprocess.run([sys.executable, "-c", program, address, str(seed)], capture_output=True)
        assert ended.returncode == -9
        found = optuna.load_study(study_name="s", storage=address, sampler=AutotuneSampler(seed=seed))
        found.optimize(lambda trial: (trial.suggest_int("a", 0, 4) - 1) ** 2, n_trials=20)
        assert found.best_params == {"a": 1}
        assert sorted(params["a"] for params in tried(found)) == [0, 1, 1, 2, 3, 4]
        assert [trial.state for trial in found.trials].count(TrialState.RUNNING) == 1

    def test_takes_trials_from_elsewhere(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, constraints=[RULE]))
        distributions = {
            "tile_m": optuna.distributions.CategoricalDistribution(TILES),
            "tile_n": optuna.distributions.CategoricalDistribution(TILES),
            "depth": optuna.distributions.IntDistribution(1, 6),
            "layout": optuna.distributions.CategoricalDistribution(["row", "column"]),
        }
        for m in TILES:
            params = {"tile_m": m, "tile_n": 16, "depth": 4, "layout": "row"}
            found.add_trial(create_trial(params=params, distributions=distributions, value=cost(params)))
        found.add_trial(create_trial(state=TrialState.FAIL))
        found.optimize(kernel, n_trials=10)
        assert different(found) == 16  # the failed one has no parameters
        assert "autotune" in found.trials[6].system_attrs

    def test_enqueued_trials_run_as_they_are(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=SPACE))
        found.enqueue_trial({"tile_m": 64, "tile_n": 64, "depth": 2, "layout": "row"})
        found.enqueue_trial({"tile_m": 128})
        found.optimize(kernel, n_trials=8)
        assert found.trials[0].params == {"tile_m": 64, "tile_n": 64, "depth": 2, "layout": "row"}
        assert found.trials[1].params["tile_m"] == 128
        assert all(allowed(params) for params in tried(found))
        assert different(found) == 8

    def test_an_enqueued_trial_may_break_the_rules(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=SPACE))
        found.enqueue_trial({"tile_m": 128, "tile_n": 128})
        found.optimize(kernel, n_trials=3)
        assert found.trials[0].params["tile_m"] == found.trials[0].params["tile_n"] == 128

    @pytest.mark.filterwarnings("ignore:Fixed parameter")
    @pytest.mark.parametrize("first", [{"lr": 0.5}, {"lr": "0.01"}, {"lr": 0.01}])
    def test_an_enqueued_value_outside_the_range_is_run_and_teaches_nothing(
        self, first: dict[str, Any], tmp_path: Path
    ) -> None:
        def training(trial: optuna.Trial) -> float:
            return float(trial.suggest_float("lr", 1e-4, 0.1, log=True)) * trial.suggest_int("n", 1, 3)

        storage = stored(tmp_path)
        for _ in range(2):
            sampler = AutotuneSampler(seed=0, constraints=["lr * n < 0.2"])
            found = optuna.create_study(study_name="s", storage=storage, load_if_exists=True, sampler=sampler)
            for fixed in (first, {"n": 9}, {"lr": 0.5, "n": 2}):
                found.enqueue_trial(fixed)
            found.optimize(training, n_trials=6)
        outside = [t for t in found.trials if t.params["n"] == 9 or t.params["lr"] in ("0.01", 0.5)]
        memory = sampler._memory
        assert memory is not None
        assert memory.advisor is not None
        assert len(found.trials) == 12 and found.trials[11] not in outside
        assert len(memory.advisor.strategy.told) == 11 - len(outside)

    @pytest.mark.filterwarnings("ignore:Fixed parameter")
    def test_an_enqueued_value_outside_a_given_space_is_not_what_was_planned(self) -> None:
        space = Space([IntegerRange("n", 1, 3), Permutation("order", ("i", "j"))])

        def asks(trial: optuna.Trial) -> float:
            trial.suggest_int("n", 1, 3)
            return float(suggest(trial, space)["n"]) if trial.params["n"] <= 3 else 7.0

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space))
        found.enqueue_trial({"n": 9})
        found.optimize(asks, n_trials=20)
        assert len(found.trials) == different(found) == 7  # the six that there are, and that one

    def test_several_directions(self) -> None:
        def two(trial: optuna.Trial) -> tuple[float, float]:
            return kernel(trial), float(trial.params["depth"])

        found = optuna.create_study(directions=["minimize", "maximize"], sampler=AutotuneSampler(seed=0))
        found.optimize(two, n_trials=15)
        assert different(found) == 15

    def test_a_goal_to_maximise(self) -> None:
        found = optuna.create_study(
            direction="maximize", sampler=AutotuneSampler(seed=0, strategy="bayes", space=SPACE)
        )
        found.optimize(lambda trial: -kernel(trial), n_trials=40)
        assert found.best_value == -1.0

    def test_constraints_of_optuna_are_failures(self) -> None:
        def bounded(trial: optuna.Trial) -> float:
            value = kernel(trial)
            trial.storage.set_trial_system_attr(trial._trial_id, "constraints", [trial.params["depth"] - 3.5])
            return value

        found = study(bounded, trials=40, strategy="bayes")
        deep = [trial.params["depth"] > 3 for trial in found.trials]
        assert sum(deep[20:]) < sum(deep[:20])

    def test_constraints_are_learned_by_how_far_they_are_violated(self) -> None:
        """One configuration in 15,000 keeps them. They had been failures, of which nothing was measured."""

        def far(trial: FrozenTrial) -> tuple[float, float]:
            off = sum((trial.params[name] - 7.0) ** 2 for name in "abcd")
            return off - 30.0, 20.0 - sum(trial.params.values())

        def bounded(trial: optuna.Trial) -> float:
            return float(sum(trial.suggest_int(name, 0, 60) for name in "abcd"))

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, constraints_func=far))
        found.optimize(bounded, n_trials=40)
        assert found.best_value < 26.0
        assert found.trials[0].system_attrs["constraints"] == far(found.trials[0])

    def test_what_a_pruned_trial_past_a_constraint_reported_is_no_final_value(self) -> None:
        """The loss after two of nine steps had counted as that of the whole trial."""
        configuration = Space([IntegerRange("a", 1, 4)]).configuration({"a": 1})
        pruned = create_trial(
            state=TrialState.PRUNED,
            value=5.0,
            intermediate_values={1: 5.0},
            system_attrs={"constraints": [2.0]},
        )
        loss = MetricSpec("value", goal="minimize")
        assert observation(pruned, configuration, [loss], 9).bounded == {"constraint 0": 2.0}
        assert observation(pruned, configuration, [loss], 2).bounded == {"constraint 0": 2.0, "value": 5.0}

    def test_with_hyperband(self) -> None:
        def steps(trial: optuna.Trial) -> float:
            value = kernel(trial)
            for step in range(1, 10):
                trial.report(value + 1.0 / step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=SPACE), pruner=pruner)
        found.optimize(steps, n_trials=20)
        assert different(found) == 20

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    def test_inside_a_sampler_that_fixes_a_parameter(self) -> None:
        sampler = optuna.samplers.PartialFixedSampler(
            {"layout": "row"}, AutotuneSampler(seed=0, constraints=[RULE])
        )
        found = optuna.create_study(sampler=sampler)
        found.optimize(kernel, n_trials=12)
        assert {params["layout"] for params in tried(found)} == {"row"}
        assert all(allowed(params) for params in tried(found))
        assert different(found) == 12

    def test_one_sampler_for_two_studies(self) -> None:
        sampler = AutotuneSampler(seed=0)
        one, other = optuna.create_study(sampler=sampler), optuna.create_study(sampler=sampler)
        for _ in range(4):
            one.optimize(kernel, n_trials=2)
            other.optimize(kernel, n_trials=2)
        assert tried(one) == tried(other) == tried(study(trials=8))

    def test_a_pickled_sampler_goes_on(self) -> None:
        whole = study(trials=10)
        part = study(trials=5)
        part.sampler = pickle.loads(pickle.dumps(part.sampler))
        part.optimize(kernel, n_trials=5)
        assert tried(part) == tried(whole)

    def test_reseeding_and_no_seed(self) -> None:
        sampler = AutotuneSampler(seed=0)
        sampler.reseed_rng()
        found = optuna.create_study(sampler=sampler)
        found.optimize(kernel, n_trials=6)
        assert tried(found) == tried(study(trials=6))
        assert tried(study(trials=3, seed=None)) != tried(study(trials=3, seed=None))
