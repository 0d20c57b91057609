"""An Optuna study served by our strategies."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from autotune.errors import InputError
from autotune.interop.optuna import STATUS_ATTR, AutotuneSampler, suggest
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.space import Space
from autotune.status import Status

TILES = [8, 16, 32, 64, 128]
RULE = "tile_m * tile_n <= 4096"
SPACE = Space(
    [
        OrderedValues("tile_m", tuple(TILES), default=16),
        OrderedValues("tile_n", tuple(TILES), default=16),
        IntegerRange("depth", 1, 6),
        Choice("layout", ("row", "column")),
    ],
    constraints=[RULE],
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def kernel(trial: optuna.Trial) -> float:
    m, n = trial.suggest_categorical("tile_m", TILES), trial.suggest_categorical("tile_n", TILES)
    depth, layout = trial.suggest_int("depth", 1, 6), trial.suggest_categorical("layout", ["row", "column"])
    return cost({"tile_m": m, "tile_n": n, "depth": depth, "layout": layout})


def cost(c: Mapping[str, Any]) -> float:
    """Best at 32 x 128, depth 4, column."""
    off = abs(c["tile_m"] - 32) / 32 + abs(c["tile_n"] - 128) / 128 + abs(c["depth"] - 4) / 4
    return float(1.0 + off + 0.5 * (c["layout"] == "row"))


def allowed(params: Mapping[str, Any]) -> bool:
    return bool(params["tile_m"] * params["tile_n"] <= 4096)


def study(
    objective: Callable[[optuna.Trial], Any] = kernel, trials: int = 20, **sampler: Any
) -> optuna.Study:
    found = optuna.create_study(sampler=AutotuneSampler(**{"seed": 0, **sampler}))
    found.optimize(objective, n_trials=trials)
    return found


def tried(found: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in found.trials]


def different(found: optuna.Study) -> int:
    return len({tuple(sorted(params.items())) for params in tried(found)})


def mean_best(make: Callable[[int], optuna.samplers.BaseSampler]) -> float:
    def infeasible_ones_fail(trial: optuna.Trial) -> float:
        value = kernel(trial)
        if not allowed(trial.params):
            raise RuntimeError
        return value

    best = []
    for seed in range(10):
        found = optuna.create_study(sampler=make(seed))
        found.optimize(infeasible_ones_fail, n_trials=30, catch=(RuntimeError,))
        best.append(found.best_value)
    return sum(best) / len(best)


class TestDefineByRun:
    def test_keeps_the_constraints_and_repeats_nothing(self) -> None:
        found = study(constraints=[RULE], trials=30)
        assert all(allowed(params) for params in tried(found))
        assert different(found) == 30

    def test_is_a_function_of_its_seed(self) -> None:
        one, same, other = study(trials=10), study(trials=10), study(trials=10, seed=1)
        assert tried(one) == tried(same)
        assert tried(one) != tried(other)

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
        with pytest.raises(InputError, match="did you mean 'out-of-memory'"):
            kernel(found.ask())

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
        assert isinstance(found.sampler, AutotuneSampler)
        memory = found.sampler._memory
        assert memory is not None
        assert memory.advisor is not None
        told = memory.advisor.strategy.told
        stopped = [o for o in told if o.status is Status.PRUNED]
        assert len(stopped) == 5
        assert all(o.fraction == 2 / 8 for o in stopped)
        assert {len(o.curve) for o in told} == {2, 4, 8}
        resumes_the_same(training, tmp_path, trials=15)

    def test_a_moving_range_is_drawn_by_itself(self) -> None:
        def moving(trial: optuna.Trial) -> float:
            n = trial.suggest_int("n", 2, 20)
            return n + float(trial.suggest_int("k", 1, n))

        found = study(moving, trials=20, strategy="random")
        assert all(params["k"] <= params["n"] for params in tried(found))
        planned = [t.system_attrs["autotune"]["configuration"] for t in found.trials[3:15]]
        assert all(set(plan) == {"n"} for plan in planned)

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

    def test_warns_of_a_constraint_over_nothing(self) -> None:
        with pytest.warns(UserWarning, match="did you mean 'tile_m'"):
            study(constraints=["tile_n * tile_mm <= 64"], trials=2)

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


def stored(folder: Path, strategy: str = "") -> optuna.storages.BaseStorage | str:
    """A storage that outlives its object: a database once, where it matters that it is one; it is slow."""
    if strategy == "random":
        return f"sqlite:///{folder / 'study.db'}"
    return JournalStorage(JournalFileBackend(str(folder / "study.log")))


def resumes_the_same(
    objective: Callable[[optuna.Trial], Any], folder: Path, trials: int = 14, **sampler: Any
) -> None:
    whole = study(objective, trials=trials, **sampler)
    for begin, end in ((0, 5), (5, 9), (9, trials)):
        part = optuna.create_study(
            study_name="s",
            storage=stored(folder, sampler.get("strategy", "")),
            load_if_exists=True,
            sampler=AutotuneSampler(**{"seed": 0, **sampler}),
        )
        part.optimize(objective, n_trials=end - begin)
    assert tried(part) == tried(whole)


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
            own = optuna.load_study(
                study_name="s",
                storage=storage,
                sampler=AutotuneSampler(seed=0, strategy="random", space=SPACE),
            )
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


class TestGivenSpace:
    def test_the_default_comes_first_and_rules_hold_at_once(self) -> None:
        found = study(space=SPACE, trials=20)
        assert tried(found)[0] == {"tile_m": 16, "tile_n": 16, "depth": 1, "layout": "row"}
        assert all(allowed(params) for params in tried(found))

    def test_from_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "space.yaml"
        file.write_text(
            'autotune: 1\nname: tiles\ncommand: ["true"]\nmetrics: {time: {goal: minimize}}\n'
            "knobs:\n  a: {values: [1, 2, 4, 8], default: 4}\n  b: {values: [1, 2, 4, 8]}\n"
            'constraints: ["a * b == 8"]\n'
        )

        def asks_as_it_likes(trial: optuna.Trial) -> float:
            return trial.suggest_int("a", 1, 8) + 0.1 * trial.suggest_float("b", 0.0, 10.0)

        found = study(asks_as_it_likes, space=str(file), trials=20)
        assert sorted(t.params["a"] for t in found.trials) == [1, 2, 4, 8]
        assert all(t.params["a"] * t.params["b"] == 8 for t in found.trials)

    def test_what_it_does_not_know_is_drawn_at_random(self) -> None:
        found = study(
            lambda trial: kernel(trial) + trial.suggest_float("noise", 0.0, 1.0), space=SPACE, trials=5
        )
        assert len({params["noise"] for params in tried(found)}) == 5

    def test_every_kind_of_knob_by_suggest(self, tmp_path: Path) -> None:
        space = Space(
            [
                Permutation("order", ("i", "j", "k")),
                Assignment("place", ("embed", "head"), ("cpu", "gpu")),
                Choice("shape", ((1, 2), (2, 1))),
                Flag("fused"),
                FloatRange("lr", 1e-4, 1.0, scale="log", when="fused"),
                FloatRange("drop", 0.0, 0.5, step=0.25),
                IntegerRange("unroll", 1, 8, scale="log2"),
                IntegerRange("batch", 1, 100, scale="log"),
                IntegerRange("pad", 0, 10, step=4),
            ],
            constraints=["order[0] != 'k'", "count(place, 'gpu') <= 1"],
        )
        seen: list[dict[str, Any]] = []

        def objective(trial: optuna.Trial) -> float:
            seen.append(suggest(trial, space))
            return float(seen[-1]["batch"])

        found = optuna.create_study(storage=stored(tmp_path), sampler=AutotuneSampler(seed=0, space=space))
        found.optimize(objective, n_trials=12)
        configurations = [space.configuration(values) for values in seen]
        assert all(configuration in space for configuration in configurations)
        assert len(set(configurations)) == 12
        assert {tuple(c["order"]) for c in seen} <= {
            p for p in {tuple(c["order"]) for c in seen} if p[0] != "k"
        }

    def test_says_where_the_code_does_not_fit_the_space(self) -> None:
        with pytest.raises(InputError, match="the space proposes tile_m = 16"):
            study(lambda trial: trial.suggest_categorical("tile_m", [1, 2]), space=SPACE, trials=1)

    def test_refuses_constraints_beside_it(self) -> None:
        with pytest.raises(InputError, match="into the space"):
            AutotuneSampler(space=SPACE, constraints=["depth > 2"])

    def test_refuses_a_strategy_that_there_is_not(self) -> None:
        with pytest.raises(InputError, match="did you mean 'bayes'"):
            AutotuneSampler(strategy="bayse")

    def test_refuses_a_text_for_a_list(self) -> None:
        with pytest.raises(InputError, match="must be a list"):
            AutotuneSampler(constraints=RULE)


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
