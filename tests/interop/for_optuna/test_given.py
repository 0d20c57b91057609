"""An Optuna study whose space is given beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.errors import InputError
from autotune.interop.for_optuna.given import GivenSpace
from autotune.interop.optuna import AutotuneSampler, suggest
from autotune.space.configuration import FrozenMap, freeze, plain
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
from tests.interop.for_optuna.cases import RULE, SPACE, allowed, kernel, stored, study, tried

pytestmark = pytest.mark.usefixtures("quiet_optuna")


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

    @pytest.mark.filterwarnings("ignore:the space has no knob")
    def test_what_it_does_not_know_is_drawn_at_random(self) -> None:
        found = study(
            lambda trial: kernel(trial) + trial.suggest_float("noise", 0.0, 1.0), space=SPACE, trials=5
        )
        assert len({params["noise"] for params in tried(found)}) == 5

    def test_warns_once_of_a_parameter_that_the_space_has_not(self) -> None:
        """A slip in a knob's name left the knob alone for the whole study, and nothing was said."""
        said = r"^the space has no knob 'tile_mm', which is drawn at random\. did you mean 'tile_m'\?$"
        with pytest.warns(UserWarning, match=said) as seen:
            study(lambda trial: trial.suggest_int("tile_mm", 1, 64), space=SPACE, trials=5)
        assert [warning.filename for warning in seen] == [__file__]

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

    @pytest.mark.parametrize(
        "fixed",
        [
            {"opt": "adam"},
            {"opt": "sgd", "m": 0.5},
            {"order": ("k", "j", "i")},
            {"order": ("k", "j", "i"), "opt": "adam", "place": {"embed": "cpu", "head": "gpu"}},
            {"shape": "[2, 1]", "tile": 2},
            {"settings": "{'a': 2}"},
            {"x": 0.25},
        ],
    )
    def test_part_of_a_configuration_can_be_enqueued(self, fixed: dict[str, Any]) -> None:
        space = Space(
            [
                Choice("opt", ("adam", "sgd")),
                FloatRange("m", 0.0, 1.0, when="opt == 'sgd'"),
                Flag("nesterov", when="opt == 'sgd' and m > 0.1"),
                Permutation("order", ("i", "j", "k")),
                Assignment("place", ("embed", "head"), ("cpu", "gpu")),
                Choice("shape", ((1, 2), (2, 1))),
                Choice("settings", (FrozenMap({"a": 1}), FrozenMap({"a": 2}))),
                OrderedValues("tile", (1, 2, 4)),
                FloatRange("x", 0.0, 1.0),
            ],
            constraints=["place['embed'] == 'cpu' or order[0] == 'i'", "opt == 'adam' or x > 0.1"],
        )
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space))
        found.enqueue_trial(fixed)
        given = suggest(found.ask(), space)
        assert space.configuration(given) in space
        assert all(str(given[name]) == str(plain(freeze(value))) for name, value in fixed.items())

    @pytest.mark.parametrize(
        ("fixed", "order", "place"),
        [
            ({"place['embed']": "gpu", "place['head']": "cpu"}, ["j", "i"], {"embed": "gpu", "head": "cpu"}),
            ({"place['embed']": "gpu"}, ["j", "i"], {"embed": "gpu", "head": "cpu"}),
            ({"order[1]": "i"}, ["j", "i"], {"embed": "cpu", "head": "cpu"}),
            ({"order[0]": "j", "place['head']": "gpu"}, ["j", "i"], {"embed": "cpu", "head": "gpu"}),
        ],
    )
    def test_parts_of_a_knob_can_be_enqueued(
        self, fixed: dict[str, Any], order: list[str], place: dict[str, str]
    ) -> None:
        """A single part was put into what was planned without it: into no order, or one against the rules."""
        knobs = [Permutation("order", ("i", "j")), Assignment("place", ("embed", "head"), ("cpu", "gpu"))]
        space = Space(knobs, ["place['embed'] == 'cpu' or order[0] == 'j'"])
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space))
        found.enqueue_trial(fixed)
        assert suggest(found.ask(), space) == {"order": order, "place": place}

    def test_a_range_is_asked_for_as_one_where_optuna_has_such(self) -> None:
        space = Space(
            [
                FloatRange("drop", 0.0, 0.5),
                FloatRange("rate", 1e-4, 1.0, scale="log"),
                FloatRange("part", 0.0, 1.0, step=0.5),
                IntegerRange("depth", 1, 6),
                IntegerRange("pad", 0, 10, step=4),
                IntegerRange("batch", 1, 100, scale="log"),
                IntegerRange("tile", 8, 32, scale="log2"),
            ]
        )
        [trial] = study(lambda trial: suggest(trial, space)["drop"], trials=1, space=space).trials
        assert trial.distributions == {
            "drop": FloatDistribution(0.0, 0.5),
            "rate": FloatDistribution(1e-4, 1.0, log=True),
            "part": CategoricalDistribution((0.0, 0.5, 1.0)),
            "depth": IntDistribution(1, 6),
            "pad": IntDistribution(0, 8, step=4),
            "batch": IntDistribution(1, 100, log=True),
            "tile": CategoricalDistribution((8, 16, 32)),
        }

    def test_of_a_single_item(self) -> None:
        space = Space([Assignment("place", ("body",), ("cpu", "gpu")), Permutation("order", ("only",))])
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space))
        found.optimize(lambda trial: float(suggest(trial, space)["place"]["body"] == "cpu"), n_trials=5)
        assert [trial.value for trial in found.trials] == [1.0, 0.0], "and the study ends"

    def test_a_space_of_one_configuration_is_tried_once(self) -> None:
        """Optuna asks its sampler for nothing where each range has a single value: nothing had ended it."""
        space = Space([Choice("layout", ("row",)), IntegerRange("depth", 3, 3)])
        assert tried(study(lambda trial: suggest(trial, space)["depth"], space=space)) == [
            {"layout": "row", "depth": 3}
        ]
        found = study(lambda trial: trial.suggest_int("depth", 3, 3))
        assert len(found.trials) == 2, "the first one shows what the study asks for"

    def test_a_flag_beside_the_number_that_it_equals(self) -> None:
        space = Space([Permutation("order", (True, 1, "k")), Choice("c", (0, False))])
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space, strategy="grid"))
        given: list[dict[str, Any]] = []

        def objective(trial: optuna.Trial) -> float:
            given.append(suggest(trial, space))
            return 1.0

        found.optimize(objective, n_trials=30)
        assert len({str(each) for each in given}) == len(given) == 12

    def test_a_study_may_hold_none_and_a_number_beside_its_text(self) -> None:
        space = Space([Choice("schedule", ("None", "cosine")), Choice("level", (1, "1"))])

        def objective(trial: optuna.Trial) -> float:
            trial.suggest_categorical("schedule", [None, "cosine"])
            trial.suggest_categorical("level", ["1", 1])
            return 1.0

        found = study(objective, space=space)
        seen = {(params["schedule"], repr(params["level"])) for params in tried(found)}
        assert len(found.trials) == 4
        assert seen == {(schedule, level) for schedule in (None, "cosine") for level in ("1", "'1'")}

    @pytest.mark.parametrize("fixed", [{"x": 7.0}, {"tile": 3}, {"order": ["i"]}, {"order": "i"}])
    def test_what_no_knob_can_be_teaches_nothing(self, fixed: dict[str, Any]) -> None:
        knobs = [
            OrderedValues("tile", (1, 2, 4)),
            FloatRange("x", 0.0, 1.0),
            Permutation("order", ("i", "j")),
        ]
        given = GivenSpace(Space(knobs))
        assert given.asked(fixed) == dict.fromkeys(fixed)
        assert given.configuration({"tile": 1, "x": 0.5, "order": ["i", "j"], **fixed}) is None

    def test_what_is_enqueued_may_be_impossible(self) -> None:
        space = Space(
            [OrderedValues("tile", (1, 2, 4)), FloatRange("x", 0.0, 1.0)],
            constraints=["tile * x <= 3 * x - 1"],
        )
        found = optuna.create_study(sampler=AutotuneSampler(seed=0, space=space))
        found.enqueue_trial({"tile": 4})
        found.optimize(lambda trial: suggest(trial, space)["x"], n_trials=3)
        assert found.trials[0].params["tile"] == 4
        assert all(space.configuration(params) in space for params in tried(found)[1:])

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
