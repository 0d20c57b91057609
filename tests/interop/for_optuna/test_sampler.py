"""An Optuna study served by our strategies: what it asks for, when it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import InputError
from autotune.interop.optuna import STATUS_ATTR, AutotuneSampler
from autotune.search.contract import Observation
from autotune.status import Status
from tests.interop.for_optuna.cases import (
    RULE,
    SPACE,
    TILES,
    allowed,
    different,
    kernel,
    mean_best,
    resumes_the_same,
    study,
    tried,
)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


class TestDefineByRun:
    def test_keeps_the_constraints_and_repeats_nothing(self) -> None:
        found = study(constraints=[RULE], trials=30)
        assert all(allowed(params) for params in tried(found))
        assert different(found) == 30

    def test_is_a_function_of_its_seed(self) -> None:
        one, same, other = study(trials=10), study(trials=10), study(trials=10, seed=1)
        assert tried(one) == tried(same)
        assert tried(one) != tried(other)

    @pytest.mark.long
    @pytest.mark.parametrize("strategy", ["auto", "bayes"])
    def test_beats_random_sampling(self, strategy: str) -> None:
        """Ten seeds each, 30 tries in a space of 300, a third of them infeasible: the mean best."""
        ours = mean_best(lambda seed: AutotuneSampler(seed=seed, strategy=strategy, constraints=[RULE]))
        random = mean_best(lambda seed: RandomSampler(seed=seed))
        assert ours <= 1.1
        assert random >= 1.2

    def test_learns_from_failures(self) -> None:
        def fails_when_deep(trial: optuna.Trial) -> float:
            value = kernel(trial)
            if trial.params["depth"] > 3:
                raise RuntimeError("too deep")
            return value

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, strategy="bayes"))
        found.optimize(fails_when_deep, n_trials=40, catch=(RuntimeError,))
        failed = [trial.state is TrialState.FAIL for trial in found.trials]
        assert sum(failed[20:]) < sum(failed[:20])
        assert different(found) == 40

    def test_goes_on_where_everything_fails(self) -> None:
        def fails(trial: optuna.Trial) -> float:
            kernel(trial)
            raise RuntimeError

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, constraints=[RULE]))
        found.optimize(fails, n_trials=12, catch=(RuntimeError,))
        assert different(found) == 12
        assert all(allowed(params) for params in tried(found))

    def test_a_trial_that_broke_off_counts_as_planned(self) -> None:
        def breaks_off(trial: optuna.Trial) -> float:
            m = trial.suggest_categorical("tile_m", TILES)
            if m == 128:
                raise RuntimeError
            n = trial.suggest_categorical("tile_n", TILES)
            return float(m + n)

        found = optuna.create_study(sampler=AutotuneSampler(seed=1, strategy="random"))
        found.optimize(breaks_off, n_trials=25, catch=(RuntimeError,))
        plans = [t.system_attrs["autotune"]["configuration"] for t in found.trials[1:]]
        assert len({tuple(plan.items()) for plan in plans}) == len(plans)

    @pytest.mark.parametrize("beyond", [math.inf, -math.inf])
    def test_a_value_that_is_not_finite_has_diverged(self, beyond: float) -> None:
        def diverges(trial: optuna.Trial) -> float:
            rate = trial.suggest_float("rate", 0.0, 1.0)
            return rate if rate < 0.3 else beyond

        found = study(diverges, trials=25)
        values = [trial.values[0] for trial in found.trials]
        assert sum(map(math.isfinite, values)) > 15
        ends = [Status.OK if math.isfinite(value) else Status.DIVERGED for value in values]
        assert statuses(found) == ends[:-1]  # it learns when the next one is asked for

    def test_an_objective_can_say_how_it_failed(self) -> None:
        def out_of_memory(trial: optuna.Trial) -> float:
            kernel(trial)
            trial.set_user_attr(STATUS_ATTR, "out-of-memory")
            raise RuntimeError

        found = optuna.create_study(sampler=AutotuneSampler(seed=0))
        found.optimize(out_of_memory, n_trials=4, catch=(RuntimeError,))
        found.trials[0].user_attrs[STATUS_ATTR] = "out-of-memory"
        bad = found.ask()
        kernel(bad)
        bad.set_user_attr(STATUS_ATTR, "out of memory")
        found.tell(bad, state=TrialState.FAIL)
        with pytest.warns(UserWarning, match="did you mean 'out-of-memory'"):
            kernel(found.ask())
        assert statuses(found) == [Status.OUT_OF_MEMORY] * 4 + [Status.CRASHED]

    def test_a_lost_trial_may_be_tried_again(self) -> None:
        def lost(trial: optuna.Trial) -> float:
            trial.suggest_int("a", 1, 3)
            if trial.number == 1:
                trial.set_user_attr(STATUS_ATTR, "lost")
                raise RuntimeError
            return 1.0

        found = optuna.create_study(sampler=AutotuneSampler(seed=0, strategy="random"))
        found.optimize(lost, n_trials=10, catch=(RuntimeError,))
        good = [t.params["a"] for t in found.trials if t.state is TrialState.COMPLETE]
        assert sorted(good) == [1, 2, 3]

    def test_what_is_lost_each_time_is_tried_three_times_and_ends_no_search(self) -> None:
        """It had been tried again for the rest of the study, which came to nothing else."""

        def lost(trial: optuna.Trial) -> float:
            a = trial.suggest_int("a", 1, 5)
            if a in (3, 5):
                trial.set_user_attr(STATUS_ATTR, "lost")
                raise RuntimeError
            return float(a)

        found = optuna.create_study(sampler=AutotuneSampler(seed=0))
        found.optimize(lost, n_trials=30, catch=(RuntimeError,))
        tried = [trial.params["a"] for trial in found.trials]
        assert sorted(tried) == [1, 2, 3, 3, 3, 4, 5, 5, 5]
        assert tried[(first := tried.index(3)) : first + 3] == [3, 3, 3]

    def test_pruned_trials_teach_too(self) -> None:
        def pruned(trial: optuna.Trial) -> float:
            value = kernel(trial)
            trial.report(value, 1)
            if value > 1.8:
                raise optuna.TrialPruned
            return value

        found = study(pruned, trials=30, strategy="bayes")
        assert different(found) == 30
        # 17 of the 300 configurations are not pruned: random search would meet fewer than two of them.
        whole = [t for t in found.trials if t.state is TrialState.COMPLETE]
        assert len(whole) >= 9 and found.best_value == 1.0

    @pytest.mark.parametrize(("reported", "status"), [(None, Status.INFEASIBLE), (math.nan, Status.DIVERGED)])
    def test_one_that_was_pruned_without_a_value_teaches_that_it_failed(
        self, reported: float | None, status: Status
    ) -> None:
        """It had taught nothing, and so was tried again and again: 23 trials of 45."""

        def refuses(trial: optuna.Trial) -> float:
            depth, rate = trial.suggest_int("depth", 1, 16), trial.suggest_float("rate", 0.0, 1.0)
            if depth in (7, 8):
                if reported is not None:
                    trial.report(reported, 1)
                raise optuna.TrialPruned
            return abs(depth - 7) + rate

        found = optuna.create_study(sampler=AutotuneSampler(seed=1))
        found.optimize(refuses, n_trials=30)
        refused = [t for t in found.trials if t.state is TrialState.PRUNED]
        assert 1 <= len(refused) <= 8
        assert {o.status for o in told_in(found)} == {Status.OK, status}

    def test_how_far_a_pruned_trial_came_is_told(self, tmp_path: Path) -> None:
        """Also where a later trial goes on for longer than all before: then they came less far."""

        def training(trial: optuna.Trial) -> float:
            value, steps = kernel(trial), 4 if trial.number < 6 else 8
            for step in range(steps):
                trial.report(value + 1.0 / (step + 1), step)
                if trial.number % 3 == 1 and step == 1:
                    raise optuna.TrialPruned
            return value + 1.0 / steps

        found = study(training, trials=15)
        told = told_in(found)
        stopped = [o for o in told if o.status is Status.PRUNED]
        assert len(stopped) == 5
        assert all(o.fraction == 2 / 8 for o in stopped)
        assert {len(o.curve) for o in told} == {2, 4, 8}
        resumes_the_same(training, tmp_path, trials=15)

    def test_steps_may_be_far_apart(self) -> None:
        def training(trial: optuna.Trial) -> float:
            value = kernel(trial)
            for step in (1000, 2000, 3000):
                trial.report(value + 1000.0 / step, step)
                if trial.number % 3 == 1 and step == 2000:
                    raise optuna.TrialPruned
            return value

        found = study(training, trials=9)
        told = told_in(found)
        assert {(o.status, len(o.curve)) for o in told} == {(Status.OK, 3), (Status.PRUNED, 2)}

    @pytest.mark.long
    def test_a_moving_range_is_searched(self) -> None:
        """It had been drawn at random: the median of these had been 0.004."""

        def moving(trial: optuna.Trial) -> float:
            n = trial.suggest_int("n", 2, 40)
            k, x = trial.suggest_int("k", 1, n), trial.suggest_float("x", 0.0, 1.0)
            return ((n - 30) / 40) ** 2 + ((k - 20) / 40) ** 2 + (x - 0.7) ** 2

        found = [study(moving, trials=40, seed=seed) for seed in range(5)]
        assert all(params["k"] <= params["n"] for one in found for params in tried(one))
        assert median(one.best_value for one in found) < 0.001

    def test_what_is_brought_into_a_range_is_hardly_ever_repeated(self) -> None:
        """Above all n that were planned, k had come to n again and again: 13 of 40 were different."""

        def moving(trial: optuna.Trial) -> float:
            n = trial.suggest_int("n", 2, 60)
            return float((n - 20) ** 2 + (trial.suggest_int("k", 1, n, log=True) - n) ** 2)

        assert different(study(moving, trials=40)) > 30

    def test_what_is_rounded_to_one_of_a_million_steps_is_known_as_what_was_planned(self) -> None:
        """It was taken for another trial than the one that was planned, which was planned once more."""
        found = study(lambda trial: trial.suggest_float("x", -1e-3, 1e-3, step=1e-9) ** 2, trials=25, seed=1)
        assert different(found) == 25
        first, *planned = told_in(found)
        assert not first.reason and all(one.reason for one in planned), "its strategy is told why"

    @pytest.mark.long
    def test_a_range_that_changed_is_searched(self, tmp_path: Path) -> None:
        """It had been drawn at random from then on: the median of these had been 0.02."""

        def training(trial: optuna.Trial) -> float:
            rate = trial.suggest_float("rate", 1e-6, 1e-3 if trial.number < 8 else 1.0, log=True)
            return math.log10(rate / 0.01) ** 2 + (trial.suggest_float("momentum", 0.0, 1.0) - 0.3) ** 2

        assert median(study(training, trials=30, seed=seed).best_value for seed in range(5)) < 0.001
        resumes_the_same(training, tmp_path)

    @pytest.mark.long
    def test_a_parameter_that_was_added_is_searched(self, tmp_path: Path) -> None:
        """It had been drawn at random from then on: the median of these had been 0.05."""

        def training(trial: optuna.Trial) -> float:
            loss = (trial.suggest_float("momentum", 0.0, 1.0) - 0.3) ** 2
            if trial.number < 8:
                return loss
            return 0.1 + loss + math.log10(trial.suggest_float("rate", 1e-6, 1.0, log=True) / 0.01) ** 2

        def best_since(found: optuna.Study) -> float:
            return min(t.value for t in found.trials[8:] if t.value is not None) - 0.1

        assert median(best_since(study(training, trials=36, seed=seed)) for seed in range(5)) < 0.003
        resumes_the_same(training, tmp_path)

    def test_goes_on_where_all_parameters_have_other_names(self) -> None:
        """It had ended, since nothing was left of the space that it had known."""

        def objective(trial: optuna.Trial) -> float:
            if trial.number < 3:
                return float(trial.suggest_int("old", 1, 4))
            return trial.suggest_float("new", 0.0, 1.0)

        assert len(study(objective, trials=16).trials) == 16

    def test_goes_on_where_a_trial_asks_for_something_new(self) -> None:
        def objective(trial: optuna.Trial) -> float:
            if not trial.suggest_categorical("dropout", [False, True]):
                return 0.5
            return trial.suggest_float("rate", 0.0, 1.0)

        assert {len(study(objective, trials=12, seed=seed).trials) for seed in range(4)} == {12}

    def test_ends_though_the_last_trials_break_off(self) -> None:
        def objective(trial: optuna.Trial) -> float:
            if trial.suggest_int("a", 1, 3) == 2:
                raise RuntimeError
            return float(trial.suggest_int("b", 1, 2))

        for seed in range(4):
            found = optuna.create_study(sampler=AutotuneSampler(seed=seed))
            found.optimize(objective, n_trials=20, catch=(RuntimeError,))
            assert different(found) == 5 and len(found.trials) < 9

    def test_more_trials_than_a_loose_space_has_configurations(self) -> None:
        def moving(trial: optuna.Trial) -> float:
            n = trial.suggest_int("n", 2, 4)
            return float(trial.suggest_float("x", 0.0, n))

        assert len(study(moving, trials=12).trials) == 12

    def test_odd_distributions(self) -> None:
        def odd(trial: optuna.Trial) -> float:
            trial.suggest_categorical("scheduler", [None, "cosine", "None"])
            trial.suggest_categorical("nothing", [None])
            trial.suggest_categorical("flag", [True, False])
            trial.suggest_categorical("falling", [4.0, 2, 1])
            trial.suggest_float("fine-step", 0.0, 1.0, step=1e-7)
            trial.suggest_float("step", 0.1, 0.9, step=0.1)
            trial.suggest_float("model/lr", 1e-5, 1.0, log=True)
            trial.suggest_int("log", 1, 1000, log=True)
            trial.suggest_int("huge", 0, 2**60)
            trial.suggest_int("max", 3, 3)
            return 1.0

        found = study(odd, trials=15, constraints=["model_lr < 0.5", "scheduler == 'None' or flag"])
        assert all(params["model/lr"] < 0.5 for params in tried(found))
        assert all(params["flag"] or params["scheduler"] is None for params in tried(found)[1:])

    def test_choices_that_optuna_takes_for_the_same_are_one(self) -> None:
        def alike(trial: optuna.Trial) -> float:
            return trial.suggest_int("a", 0, 4) + float(trial.suggest_categorical("k", [True, 1, 1.0, 3]))

        found = study(alike, trials=20)
        assert len(found.trials) == different(found) == 10

    def test_warns_of_a_constraint_over_nothing(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(constraints=["tile_n * tile_mm <= 64"]))
        with pytest.warns(UserWarning, match="did you mean 'tile_m'") as warned:
            found.optimize(lambda trial: trial.suggest_categorical("tile_m", TILES), n_trials=2)
        assert {one.filename for one in warned} == {__file__}

    @pytest.mark.parametrize("seed", [10, 17, 18])
    def test_a_first_trial_that_can_keep_no_constraint_is_pruned(self, seed: int, tmp_path: Path) -> None:
        """Its x leaves no y a way out, which nobody knew of. It had been run, and had been the best."""

        def adding(trial: optuna.Trial) -> float:
            return trial.suggest_int("x", 0, 10) + trial.suggest_int("y", 0, 10) + 1.0

        rule = "x + y <= 8"
        found = optuna.create_study(
            direction="maximize", sampler=AutotuneSampler(seed=seed, constraints=[rule])
        )
        found.optimize(adding, n_trials=20)
        first, *others = found.trials
        assert first.state is TrialState.PRUNED
        assert first.system_attrs["autotune.pruned"].startswith(
            f"no value drawn for 'y' keeps '{rule}' beside x"
        )
        assert all(sum(trial.params.values()) <= 8 for trial in others)
        assert all(trial.state is TrialState.COMPLETE for trial in others)
        assert sum(found.best_params.values()) == 8
        resumes_the_same(adding, tmp_path, seed=seed, constraints=[rule])

    def test_a_constraint_that_chance_hardly_keeps_costs_one_trial(self) -> None:
        """The pruned trial shows what the constraint speaks of, and so how to keep it."""

        def asking(trial: optuna.Trial) -> float:
            return float(sum(trial.suggest_int(name, 0, 9) for name in "abcdef"))

        found = study(
            asking, trials=12, constraints=["a + b + c + d + e + f <= 3"], constraints_func=first_of
        )
        assert [trial.state for trial in found.trials] == [TrialState.PRUNED, *[TrialState.COMPLETE] * 11]

    @pytest.mark.filterwarnings("ignore:the constraint .* speaks of .late.")
    def test_a_plan_that_a_new_parameter_makes_impossible_is_not_made_again(self) -> None:
        def asking(trial: optuna.Trial) -> float:
            a = trial.suggest_int("a", 0, 9)
            return float(a + (trial.suggest_int("late", 4, 9) if trial.number > 0 else 0))

        found = study(asking, trials=10, seed=1, constraints=["a + late <= 5"])
        plans = [t.system_attrs["autotune"]["configuration"]["a"] for t in found.trials[1:]]
        pruned = [t for t in found.trials if t.state is TrialState.PRUNED]
        assert pruned and all("late" in trial.params for trial in pruned)
        assert len({plans[trial.number - 1] for trial in pruned}) == len(pruned)
        assert all(t.params["a"] + t.params["late"] <= 5 for t in found.trials[1:] if t not in pruned)

    def test_a_caller_who_asks_is_warned_of_what_breaks_a_constraint(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(seed=10, constraints=["x + y <= 8"]))
        trial = found.ask()
        x = trial.suggest_int("x", 0, 10)
        with pytest.warns(UserWarning, match="no value drawn for 'y' keeps 'x \\+ y <= 8'") as warned:
            y = trial.suggest_int("y", 0, 10)
        assert warned[0].filename == __file__
        found.tell(trial, x + y)

    def test_names_that_come_to_the_same_are_told_apart(self, tmp_path: Path) -> None:
        def asking(trial: optuna.Trial) -> float:
            a, b = trial.suggest_int("lr/a", 0, 3), trial.suggest_int("lr.a", 0, 3)
            return a + b + trial.suggest_int("lr_a", 5, 8)

        rules = ["lr_a_2 + lr_a_3 >= 3", "lr_a < 7"]
        found = tried(study(asking, trials=40, constraints=rules))
        assert all(params["lr/a"] + params["lr.a"] >= 3 and params["lr_a"] < 7 for params in found[1:])
        assert len({tuple(params.values()) for params in found}) == len(found) == 20
        with pytest.warns(UserWarning, match=r"'lr_a' in the constraints is .* 'lr_a'; 'lr/a' is 'lr_a_2'"):
            study(asking, trials=4, constraints=["lr_a < 7"])
        resumes_the_same(asking, tmp_path, constraints=rules)

    def test_a_name_of_its_own_that_comes_later_takes_it(self) -> None:
        def asking(trial: optuna.Trial) -> float:
            a = trial.suggest_int("lr/a", 0, 9)
            return a - (0 if a < 5 or trial.number < 5 else trial.suggest_int("lr_a", 0, 9))

        found = tried(study(asking, trials=30, constraints=["lr_a < 7"]))
        assert all(params["lr/a"] < 7 for params in found if "lr_a" not in params)
        assert all(params["lr_a"] < 7 for params in found if "lr_a" in params)
        assert max(params["lr/a"] for params in found) == 9

    def test_says_that_nothing_is_feasible(self) -> None:
        with pytest.raises(InputError, match="no configuration satisfies"):
            study(constraints=["tile_m > 1000"], trials=2)

    def test_ends_when_all_was_tried(self) -> None:
        def small(trial: optuna.Trial) -> float:
            return trial.suggest_int("a", 1, 3) + trial.suggest_categorical("b", [0.1, 0.2])

        found = study(small, trials=50)
        assert len(found.trials) == different(found) == 6

    def test_goes_on_with_the_best_where_the_caller_asks_and_tells(self) -> None:
        found = optuna.create_study(sampler=AutotuneSampler(seed=0))
        for _ in range(5):
            trial = found.ask()
            found.tell(trial, trial.suggest_int("a", 1, 3))
        assert [t.params["a"] for t in found.trials[3:]] == [1, 2]


def first_of(trial: FrozenTrial) -> Sequence[float]:
    """A constraint of Optuna's that takes a trial which was run."""
    return (-float(trial.params["f"]),)


def told_in(found: optuna.Study) -> Sequence[Observation]:
    """What the sampler of a study has learned."""
    assert isinstance(found.sampler, AutotuneSampler)
    memory = found.sampler._memory
    assert memory is not None
    assert memory.advisor is not None
    return memory.advisor.strategy.told


def statuses(found: optuna.Study) -> list[Status]:
    """Of what the sampler has learned."""
    return [observation.status for observation in told_in(found)]


def conditional(trial: optuna.Trial) -> float:
    solver = trial.suggest_categorical("solver", ["direct", "iterative"])
    if solver == "direct":
        return float(trial.suggest_int("block", 2, 6))
    sweeps = trial.suggest_int("sweeps", 1, 5)
    damped = trial.suggest_categorical("damped", [True, False]) if sweeps > 2 else False
    return float(sweeps - 2.5 * damped)


class TestConditions:
    def test_learns_when_a_parameter_exists(self) -> None:
        found = study(conditional, trials=13, strategy="random")
        assert len(found.trials) == different(found) == 13  # all there are

    def test_puts_them_to_use(self) -> None:
        found = study(conditional, trials=13, strategy="bayes")
        assert found.best_value == 0.5
        planned = [t.system_attrs["autotune"]["configuration"] for t in found.trials[6:]]
        assert any("damped" in plan for plan in planned)
        assert all(("block" in plan) == (plan["solver"] == "direct") for plan in planned)

    def test_the_same_after_a_resume(self, tmp_path: Path) -> None:
        resumes_the_same(conditional, tmp_path, trials=12)


def test_long_studies_stay_quick_to_follow() -> None:
    """Each trial is told once: what was told before is not told again."""
    sampler = AutotuneSampler(seed=0, strategy="random", space=SPACE)
    found = optuna.create_study(sampler=sampler)
    found.optimize(kernel, n_trials=60)
    memory = sampler._memory
    assert memory is not None
    assert memory.advisor is not None
    assert len(memory.advisor.strategy.told) == 59
    assert memory.plans == {}
