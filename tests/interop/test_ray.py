"""A Ray Tune experiment served by our strategies."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.tune", reason="needs Ray Tune: pip install 'ray[tune]'")

from ray import tune

from autotune.errors import InputError
from autotune.interop.for_ray.space import ray_space
from autotune.interop.ray import AutotuneSearch
from autotune.search.contract import Observation
from autotune.space.knobs import FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.language.rule import Rule
from autotune.space.space import Space
from autotune.status import Status

TILES = [8, 16, 32, 64, 128]
RULE = "tile_m * tile_n <= 4096"


def tiles() -> dict[str, Any]:
    return {
        "tile_m": tune.choice(TILES),
        "tile_n": tune.choice(TILES),
        "depth": tune.randint(1, 7),
        "layout": tune.choice(["row", "column"]),
    }


def cost(c: Mapping[str, Any]) -> float:
    off = abs(c["tile_m"] - 32) / 32 + abs(c["tile_n"] - 128) / 128 + abs(c["depth"] - 4) / 4
    return float(1.0 + off + 0.5 * (c["layout"] == "row"))


def search(space: Any = None, **arguments: Any) -> AutotuneSearch:
    given = {"metric": "time", "mode": "min", "seed": 0, **arguments}
    return AutotuneSearch(tiles() if space is None else space, **given)


def run(
    searcher: AutotuneSearch,
    tries: int,
    measured: Callable[[Mapping[str, Any]], float | None] = cost,
    first: int = 0,
) -> list[Any]:
    """As Tune does, one at a time; what was tried."""
    seen: list[Any] = []
    for number in range(first, first + tries):
        config = searcher.suggest(f"t{number}")
        if config == AutotuneSearch.FINISHED:
            break
        seen.append(config)
        value = measured(config)
        if value is None:
            searcher.on_trial_complete(f"t{number}", error=True)
        else:
            searcher.on_trial_complete(f"t{number}", {"time": value, "done": True})
    return seen


def told(searcher: AutotuneSearch) -> list[Observation]:
    strategy, _ = searcher._ready()
    return strategy.told


def statuses(searcher: AutotuneSearch) -> list[str]:
    return [str(observation.status) for observation in told(searcher)]


class TestSpaces:
    def test_every_kind_of_domain(self) -> None:
        given = ray_space(
            {
                "constant": 3,
                "uniform": tune.uniform(-1.0, 1.0),
                "quantized": tune.quniform(0.1, 0.5, 0.1),
                "log": tune.loguniform(1e-4, 1.0),
                "int": tune.randint(1, 9),
                "log_int": tune.lograndint(1, 1000),
                "step": tune.qrandint(4, 16, 4),
                "model": {"lr": tune.loguniform(1e-5, 1e-1), "norm": tune.choice([None, "batch"])},
                "tile": tune.choice([16, 32, 64]),
                "fused": tune.choice([True, False]),
            }
        )
        assert given is not None
        domains = {knob.name: knob.domain for knob in given.space.knobs}
        assert domains["uniform"] == {"range": [-1.0, 1.0], "scale": "linear"}
        assert domains["quantized"] == {"range": [0.1, 0.5], "scale": "linear", "step": 0.1}
        assert domains["log"] == {"range": [1e-4, 1.0], "scale": "log"}
        assert domains["int"] == {"range": [1, 8], "scale": "linear"}  # Tune leaves the 9 out
        assert domains["log_int"] == {"range": [1, 999], "scale": "log"}
        assert domains["step"] == {"range": [4, 16], "scale": "linear", "step": 4}  # but not the 16
        assert domains["model_lr"]["scale"] == "log"
        assert domains["model_norm"] == {"choices": ["None", "batch"]}
        assert domains["tile"] == {"values": [16, 32, 64]}
        assert "flag" in domains["fused"]
        config = given.config(given.space.configuration({}))
        assert config["model"]["norm"] is None
        assert config["tile"] == 32
        assert "constant" not in config
        assert given.configuration({**config, "constant": 3}) == given.space.configuration({})

    @pytest.mark.parametrize("low, high", [(1e-300, 1e-100), (1e-320, 1e-10), (1e100, 1e300), (1e-4, 1e4)])
    def test_the_middle_of_what_spans_many_powers(self, low: float, high: float) -> None:
        """The product of its ends is nothing, or more than a float holds."""
        given = ray_space({"a": tune.loguniform(low, high)})
        assert given is not None
        middle = given.space.default()["a"]
        assert isinstance(middle, float)
        assert math.log(middle) == pytest.approx((math.log(low) + math.log(high)) / 2)

    def test_what_tune_draws_is_inside(self) -> None:
        config = {
            "a": tune.qloguniform(1e-3, 1.0, 1e-3),
            "b": tune.qlograndint(2, 64, 2),
            "c": tune.quniform(0.05, 0.95, 0.05),
            "d": tune.qrandint(1, 10, 1),
        }
        given = ray_space(config)
        assert given is not None
        for _ in range(50):
            drawn = {name: domain.sample() for name, domain in config.items()}
            assert given.configuration(drawn) in given.space
        ends = {"a": 1000 * 1e-3, "b": 64, "c": 19 * 0.05, "d": 9}
        assert given.configuration(ends) in given.space and given.space.feasible.size == 1000 * 32 * 19 * 9
        with pytest.raises(InputError, match="'d'"):
            given.configuration({**ends, "d": 10})

    @pytest.mark.parametrize(("low", "high", "values"), [(0.3, 0.9, 7), (21.2, 44.0, 229), (0.1 * 3, 1.1, 9)])
    def test_the_steps_of_a_range_reach_its_end(self, low: float, high: float, values: int) -> None:
        """From 3 * 0.1, which is more than 0.3, there were five steps of 0.1: 0.9 was never tried."""
        given = ray_space({"a": tune.quniform(low, high, 0.1)})
        assert given is not None and given.space.feasible.size == values
        for drawn in (round(low / 0.1) * 0.1, round(high / 0.1) * 0.1):
            assert given.configuration({"a": drawn})["a"] == pytest.approx(drawn)

    def test_says_all_that_it_cannot_search(self) -> None:
        with pytest.raises(InputError) as caught:
            ray_space(
                {
                    "a": tune.grid_search([1, 2]),
                    "b": tune.randn(0.0, 1.0),
                    "c": tune.sample_from(lambda spec: 3),
                    "d": [tune.uniform(0, 1)],
                    "e": tune.choice(["none", {"rate": tune.uniform(0, 1)}]),
                    6: tune.uniform(0, 1),
                }
            )
        text = str(caught.value)
        assert "a is a grid_search" in text
        assert "tune.choice" in text
        assert "b: a normal distribution" in text
        assert "c: sample_from" in text
        assert "d/0 stands in a list" in text
        assert "6 stands in a list, or under a key that is no text" in text
        assert "e: a choice has something to search inside" in text

    def test_nothing_but_constants_is_no_space(self) -> None:
        assert ray_space({"a": 1}) is None
        with pytest.raises(InputError, match="nothing to search"):
            search({"a": 1}).suggest("t0")

    def test_names_that_clash(self) -> None:
        config = {"a": {"b": tune.uniform(0, 1)}, "a_b": tune.uniform(2, 3)}
        with pytest.warns(
            UserWarning, match="'a_b' in the constraints is the parameter 'a_b'; 'a/b' is 'a_b_2'"
        ):
            given = ray_space(config, [Rule.parse("a_b > 2")])
        assert given is not None
        found = given.config(given.space.configuration({"a_b": 2.5, "a_b_2": 0.25}))
        assert found == {"a": {"b": 0.25}, "a_b": 2.5}


class TestSearching:
    def test_keeps_constraints_repeats_nothing_and_finds_the_best(self) -> None:
        tried = run(search(constraints=[RULE], strategy="bayes"), 40)
        assert all(c["tile_m"] * c["tile_n"] <= 4096 for c in tried)
        assert len({tuple(c.items()) for c in tried}) == 40
        assert min(map(cost, tried)) == 1.0

    def test_is_a_function_of_its_seed(self) -> None:
        assert run(search(), 10) == run(search(), 10)
        assert run(search(), 10) != run(search(seed=1), 10)

    def test_failures_teach(self) -> None:
        def deep_ones_fail(config: Mapping[str, Any]) -> float | None:
            return None if config["depth"] > 3 else cost(config)

        tried = run(search(strategy="bayes"), 40, deep_ones_fail)
        failed = [c["depth"] > 3 for c in tried]
        assert sum(failed[20:]) < sum(failed[:20])

    def test_ends_when_all_was_tried(self) -> None:
        tried = run(search({"a": tune.choice(["x", "y", "z"])}), 10, lambda config: 1.0)
        assert sorted(c["a"] for c in tried) == ["x", "y", "z"]

    def test_what_is_listed_twice_is_tried_once(self) -> None:
        """As some do, to have Tune draw it more often."""
        tried = run(
            search({"a": tune.choice([1, 2, 1, 1.0, True, math.sin, math.sin])}), 10, lambda config: 1.0
        )
        assert len(tried) == 5 and {repr(c["a"]) for c in tried} == {"1", "2", "1.0", "True", repr(math.sin)}

    def test_says_that_nothing_is_feasible(self) -> None:
        with pytest.raises(InputError, match="no configuration satisfies"):
            search({"a": tune.choice([1, 2])}, constraints=["a > 3"]).suggest("t0")

    def test_trials_in_flight_are_not_proposed_again(self) -> None:
        searcher = search(constraints=[RULE])
        open_ones = [searcher.suggest(f"t{i}") for i in range(8)]
        assert len({tuple(c.items()) for c in open_ones}) == 8
        for number in reversed(range(8)):
            searcher.on_trial_complete(f"t{number}", {"time": cost(open_ones[number])})
        searcher.on_trial_complete("t3", {"time": 0.0})  # twice: no more to learn
        searcher.on_trial_complete("stranger", {"time": 0.0})
        assert len(searcher._told) == 8

    def test_points_to_evaluate_come_first(self) -> None:
        points = [{"tile_m": 64, "tile_n": 64, "depth": 2, "layout": "row"}] * 2
        searcher = search(points_to_evaluate=points)
        assert searcher.suggest("t0") == points[0]
        assert searcher.suggest("t1") != points[0]

    def test_a_point_can_have_an_array(self) -> None:
        """Arrays of several elements do not say whether they are equal."""
        weights = [np.ones(2), np.ones(3), np.zeros(3)]
        searcher = search({"w": tune.choice(weights)}, points_to_evaluate=[{"w": weights[2]}])
        config = searcher.suggest("t0")
        assert isinstance(config, dict) and config["w"] is weights[2]
        with pytest.raises(InputError, match="array"):
            search({"w": tune.choice(weights)}, points_to_evaluate=[{"w": np.ones(2)}]).suggest("t0")

    def test_learns_from_elsewhere(self) -> None:
        searcher = search()
        for m in TILES:
            config = {"tile_m": m, "tile_n": 16, "depth": 2, "layout": "row"}
            searcher.add_evaluated_point(config, cost(config))
        searcher.add_evaluated_point({**config, "depth": 3}, 0.0, error=True)
        assert statuses(searcher) == [*["ok"] * 5, "crashed"]
        assert len({tuple(c.items()) for c in [*run(searcher, 5), config]}) == 6

    def test_of_several_metrics_one_value_teaches_nothing(self) -> None:
        searcher = search(metric=["time", "rate"], mode=["min", "max"])
        config = {"tile_m": 16, "tile_n": 16, "depth": 2, "layout": "row"}
        with pytest.raises(InputError, match="one value, and the metrics are time, rate"):
            searcher.add_evaluated_point(config, 1.0)
        assert statuses(searcher) == []

    def test_how_trials_end(self) -> None:
        searcher = search(metric=["time", "rate"], mode=["min", "max"])
        results: list[tuple[dict[str, Any] | None, Status]] = [
            ({"time": 1.0, "rate": 2.0, "done": True}, Status.OK),
            ({"time": 1.0}, Status.PRUNED),
            (None, Status.PRUNED),
            ({"time": float("nan"), "rate": 2.0}, Status.DIVERGED),
        ]
        for number, (result, _) in enumerate(results):
            searcher.suggest(f"t{number}")
            searcher.on_trial_complete(f"t{number}", result)
        assert statuses(searcher) == [str(status) for _, status in results]
        assert told(searcher)[0].metrics == {"time": 1.0, "rate": 2.0}

    def test_what_a_scheduler_stopped_is_pruned(self) -> None:
        """As Tune calls it: a result that leads to a stop is not announced, one that is natural is."""
        searcher = search()
        for name, iterations, by_itself in (("a", 9, True), ("b", 3, False), ("c", 9, False), ("d", 2, True)):
            searcher.suggest(name)
            for i in range(1, iterations + by_itself):
                searcher.on_trial_result(name, {"time": 1.0, "training_iteration": i, "done": False})
            last = {"time": 1.0, "training_iteration": iterations, "done": True}
            if by_itself:
                searcher.on_trial_result(name, last)
            searcher.on_trial_complete(name, last)
        assert statuses(searcher) == ["ok", "pruned", "ok", "ok"]
        assert [o.fraction for o in told(searcher)] == [1.0, 3 / 9, 1.0, 1.0]
        assert told(searcher)[1].curve == ((1 / 9, 1.0), (2 / 9, 1.0), (3 / 9, 1.0))

    def test_a_space_file_says_it_all(self, tmp_path: Path) -> None:
        file = tmp_path / "space.yaml"
        file.write_text(
            'autotune: 1\nname: tiles\ncommand: ["true"]\n'
            "metrics: {rate: {goal: maximize}, error: {at_most: 0.1}}\n"
            "knobs:\n  a: {values: [1, 2, 4, 8], default: 4}\n  order: {permutation: [i, j]}\n"
            'constraints: ["a > 1"]\n'
        )
        searcher = AutotuneSearch(file, seed=0)
        assert searcher.suggest("t0") == {"a": 4, "order": ["i", "j"]}
        searcher.on_trial_complete("t0", {"rate": 3.0, "error": 0.2})
        assert searcher.suggest("t1")["a"] > 1
        searcher.on_trial_complete("t1", {"rate": 3.0, "error": 0.0})
        assert statuses(searcher) == ["wrong", "ok"]

    def test_conditions_hold(self) -> None:
        space = Space(
            [
                OrderedValues("a", (1, 2, 3)),
                FloatRange("x", 0.0, 1.0, when="a == 2"),
                Permutation("order", ("i", "j")),
            ]
        )
        tried = run(search(space), 10, lambda config: 1.0)
        assert all(("x" in c) == (c["a"] == 2) for c in tried)

    def test_bad_arguments(self) -> None:
        space = Space([IntegerRange("a", 1, 3)])
        with pytest.raises(InputError, match="put the constraints into the space"):
            search(space, constraints=["a > 1"])
        with pytest.raises(InputError, match="must be a list"):
            search(constraints=RULE)
        with pytest.raises(InputError, match="not known what to search for"):
            AutotuneSearch(space).suggest("t0")
        for mode in ("minimise", ["min", "lowest"]):
            with pytest.raises(InputError, match=r"mode is '(minimise|lowest)'"):
                AutotuneSearch(metric=["a", "b"] if isinstance(mode, list) else "a", mode=mode)
        with pytest.raises(InputError, match="did you mean 'bayes'"):
            search(strategy="bayse")
        with pytest.raises(InputError, match="seed is -1"):
            search(seed=-1)
        with pytest.raises(InputError, match="has no option 'x'"):
            search(options={"x": 1})
        with pytest.raises(InputError, match="the space cannot be of type list"):
            search([tune.choice(TILES)])


class TestState:
    def test_saved_and_restored_it_goes_on(self, tmp_path: Path) -> None:
        whole = run(search(constraints=[RULE]), 16)
        first = search(constraints=[RULE])
        begun = run(first, 7)
        first.save(str(tmp_path / "state.pkl"))
        second = AutotuneSearch(tiles())
        second.restore(str(tmp_path / "state.pkl"))
        assert begun + run(second, 9, first=7) == whole

    def test_a_trial_that_was_open_can_still_end(self, tmp_path: Path) -> None:
        first = search()
        config = first.suggest("open")
        first.save(str(tmp_path / "state.pkl"))
        second = AutotuneSearch()
        second.restore(str(tmp_path / "state.pkl"))
        assert second.suggest("next") != config
        second.on_trial_complete("open", {"time": 2.0})
        assert len(second._told) == 1

    def test_can_be_pickled(self) -> None:
        searcher = search()
        run(searcher, 5)
        copied = pickle.loads(pickle.dumps(searcher))
        assert run(copied, 3, first=5) == run(searcher, 3, first=5)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        yield
        ray.shutdown()


@pytest.mark.usefixtures("cluster")
class TestExperiments:
    def fit(self, searcher: AutotuneSearch, folder: Path, space: Any, trials: int = 6) -> Any:
        def trainable(config: dict[str, Any]) -> None:
            if config["tile_m"] == 8:
                raise RuntimeError("too small")
            tune.report({"time": config["tile_m"] / 32 + config["offset"]})

        tuner = tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(search_alg=searcher, num_samples=trials, max_concurrent_trials=2),
            run_config=tune.RunConfig(name="tiles", storage_path=str(folder), verbose=0),
        )
        return tuner.fit()

    def test_tune_runs_it_two_at_a_time(self, tmp_path: Path) -> None:
        searcher = AutotuneSearch(metric="time", mode="min", seed=0, constraints=["tile_m <= 64"])
        results = self.fit(searcher, tmp_path, {"tile_m": tune.choice(TILES), "offset": 1.0}, trials=8)
        tried = [result.config["tile_m"] for result in results]
        assert sorted(tried) == [8, 16, 32, 64]  # and then it ended
        assert results.get_best_result("time", "min").config["tile_m"] == 16
        assert results.num_errors == 1
        assert sorted(statuses(searcher)) == ["crashed", "ok", "ok", "ok"]
        saved = list((tmp_path / "tiles").glob("searcher-state-*.pkl"))
        assert saved
        restored = AutotuneSearch()
        restored.restore(str(saved[0]))
        assert restored._translation is not None
