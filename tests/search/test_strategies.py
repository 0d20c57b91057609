"""The contract that every strategy keeps, run against each of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.search.contract import Observation, Problem, Proposal, Strategy
from autotune.search.registry import make_strategy, missing_packages, strategy_class, strategy_names
from autotune.space.configuration import Configuration
from autotune.space.knobs import Flag, OrderedValues
from autotune.space.reading.settings import STRATEGIES
from autotune.space.space import Space
from autotune.status import Status
from tests.search.spaces import CASES, TIME, Case, observe, problem, search

SLOW = {"optuna-gp", "skopt-gp", "skopt-forest"}
"""Strategies that take long for a proposal: they begin to model sooner here, and get fewer tries."""
NEEDS_TORCH = {"optuna-gp"}
OFTEN = {"tiny", "mixed", "single"}
"""The spaces on which those run by default; on the others with ``-m slow``."""


def _cases() -> list[pytest.param]:  # type: ignore[valid-type]
    found = []
    for name in strategy_names():
        for case in CASES:
            slow = [pytest.mark.slow] if name in SLOW and case not in OFTEN else []
            found.append(pytest.param(name, case, marks=[*slow, *_marks(name)]))
    return found


def test_a_space_file_may_name_each_of_them_and_no_other() -> None:
    assert strategy_names() == STRATEGIES


def _names() -> list[pytest.param]:  # type: ignore[valid-type]
    return [pytest.param(name, marks=_marks(name)) for name in strategy_names()]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    missing = missing_packages(name)
    skipped = pytest.mark.skipif(bool(missing), reason=f"{name} needs {', '.join(missing)}")
    return [skipped, pytest.mark.torch] if name in NEEDS_TORCH else [skipped]


def make(name: str, case: str, seed: int = 0) -> Strategy:
    options = {"initial": 4} if name in SLOW else {}
    return make_strategy(name, problem(CASES[case](), **options), seed)


def tries(name: str, usual: int = 24) -> int:
    return 6 if name in SLOW else usual


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("bayes", {"candidates": -3}, "cannot be -3\n  expected: a whole number, from 1 to 1e[+]06"),
        ("bayes", {"initial": 2.5}, "cannot be 2.5\n  expected: a whole number, 0 or more, such as 3"),
        ("bayes", {"cost": 1}, "cannot be 1\n  expected: true or false"),
        ("evolution", {"population": 0}, "cannot be 0\n  expected: a whole number, 1 or more"),
        ("evolution", {"crossover": 2}, "cannot be 2\n  expected: a number, from 0 to 1"),
        ("evolution", {"smaple": 4}, "has no option 'smaple'\n.*\n  did you mean 'sample'"),
        ("policy", {"rate": float("nan")}, "cannot be nan"),
        ("policy", {"elite": float("inf")}, "cannot be inf"),
        ("policy", {"rate": None}, "cannot be None\n  expected: a number, 0 or more"),
        ("policy", {"rate": [1.0]}, "cannot be \\[1.0\\]"),
        ("policy", {"rate": 10**400}, "cannot be 10{56}"),
        ("policy", {"initial": 10**400}, "cannot be 10{56}"),
        ("policy", {"initial": {"a": 1}}, "cannot be {'a': 1}\n  expected: a whole number"),
        ("bandit", {"arms": 3}, "cannot be 3\n  expected: a text"),
        ("bandit", {"window": 0}, "cannot be 0"),
        ("optuna-nsga2", {"population": 1}, "cannot be 1\n  expected: a whole number, 2 or more"),
        ("optuna-cmaes", {"attempts": 0}, "cannot be 0"),
        ("optuna-cmaes", {"sigma": 0}, "cannot be 0"),
        ("skopt-forest", {"trees": "oak"}, "cannot be 'oak'\n  expected: ET or RF"),
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused(name, options, said) -> None:  # type: ignore[no-untyped-def]
    if missing := missing_packages(name):
        pytest.skip(f"{name} needs {', '.join(missing)}")
    with pytest.raises(InputError, match=said):
        make_strategy(name, Problem(CASES["kernel"]().space, (TIME,), options=options))


@pytest.mark.parametrize(("name", "case"), _cases())
class TestEveryStrategyOnEverySpace:
    def test_proposes_feasible_configurations_once_the_default_first_and_says_why(
        self, name: str, case: str
    ) -> None:
        given, strategy = CASES[case](), make(name, case)
        tried: list[Configuration] = []
        while len(tried) < tries(name) and (proposals := strategy.ask(1)):
            (proposal,) = proposals
            assert json.loads(json.dumps(dict(proposal.reason))) == proposal.reason
            assert proposal.reason["strategy"] == name
            assert isinstance(proposal.reason["kind"], str)
            tried.append(proposal.configuration)
            strategy.tell([observe(given, proposal)])
        assert tried[0] == given.space.configuration({})
        assert len({c.hash for c in tried}) == len(tried)
        assert all(c in given.space for c in tried)
        assert len(tried) == min(given.size or 10**9, tries(name))

    def test_tries_what_it_was_given_right_after_the_default(self, name: str, case: str) -> None:
        given = CASES[case]()
        strategy = make(name, case)
        default = given.space.configuration({})
        drawn = [one for one in given.space.sample(np.random.default_rng(1), 3) if one != default]
        wanted = list(dict.fromkeys(drawn))
        strategy.problem = replace(strategy.problem, first=(*wanted, default, *wanted))
        asked = [*strategy.ask(2), *strategy.ask(2 + len(wanted))][: 1 + len(wanted)]
        assert [one.configuration for one in asked] == [default, *wanted]
        assert [one.reason["kind"] for one in asked] == ["default"] + ["given"] * len(wanted)
        strategy.tell([observe(given, one) for one in asked])
        assert not {one.reason["kind"] for one in strategy.ask(2)} & {"default", "given"}

    def test_goes_on_after_a_restart_as_if_it_had_not_stopped(self, name: str, case: str) -> None:
        given = CASES[case]()
        whole = make(name, case, seed=3)
        for n in (5, 2) if name in SLOW else (5, 4, 3):  # some told out of order, some in flight
            for proposal in reversed(whole.ask(n)[1:]):
                whole.tell([observe(given, proposal)])
        resumed = make(name, case, seed=3)
        proposed = [*(o.configuration for o in whole.told), *whole.pending.values()]
        resumed.restore(whole.asks, proposed, whole.told)
        assert list(resumed.pending) == list(whole.pending)
        for _ in range(1 if name in SLOW else 2):
            one, other = whole.ask(2), resumed.ask(2)
            assert [p.configuration.hash for p in one] == [p.configuration.hash for p in other]
            assert [p.reason for p in one] == [p.reason for p in other]
            for proposal in one:
                whole.tell([observe(given, proposal)])
                resumed.tell([observe(given, proposal)])

    def test_expects_something_of_what_it_was_told_and_proposes_the_same(self, name: str, case: str) -> None:
        given = CASES[case]()
        asked, left_alone = make(name, case, seed=3), make(name, case, seed=3)
        for _ in range(tries(name, 10)):
            succeeded = {o.configuration.hash for o in asked.usable if o.status is Status.OK}
            expected = asked.expected()
            assert expected.keys() <= succeeded and all(map(math.isfinite, expected.values()))
            one, other = asked.ask(1), left_alone.ask(1)
            assert one == other
            for proposal in one:
                for strategy in (asked, left_alone):
                    strategy.tell([observe(given, proposal)])


@pytest.mark.parametrize("name", _names())
class TestEveryStrategy:
    def test_tries_every_configuration_of_a_small_space(self, name: str) -> None:
        given = CASES["tiny"]()
        strategy = make(name, "tiny")
        tried = search(strategy, given, 100)
        assert len(tried) == given.size == given.space.feasible.size
        assert strategy.ask(5) == []

    def test_hands_out_a_small_space_in_one_ask(self, name: str) -> None:
        strategy = make(name, "tiny")
        first = strategy.ask(3)
        rest = strategy.ask(100)
        assert len(first) == 3
        assert len(rest) == 12
        assert strategy.ask(1) == []

    def test_is_a_function_of_its_seed(self, name: str) -> None:
        given = CASES["kernel"]()
        runs = [search(make(name, "kernel", seed), given, tries(name)) for seed in (1, 1, 2)]
        assert runs[0] == runs[1]
        if name != "grid":  # which has an order of its own
            assert runs[0] != runs[2]

    def test_keeps_apart_what_is_in_flight(self, name: str) -> None:
        given = CASES["kernel"]()
        strategy = make(name, "kernel")
        seen: set[str] = set()
        flying = [p.configuration for p in strategy.ask(4)]
        for _ in range(tries(name, 30)):
            assert not seen & {c.hash for c in flying[-1:]}
            seen.add(flying[-1].hash)
            strategy.tell([observe(given, flying.pop(0))])
            flying += [p.configuration for p in strategy.ask(1)]
            assert len(strategy.pending) == len(flying) == 4

    def test_survives_a_space_where_everything_fails(self, name: str) -> None:
        strategy = make(name, "kernel")
        for _ in range(tries(name, 30)):
            (proposal,) = strategy.ask(1)
            strategy.tell([Observation(proposal.configuration, Status.CRASHED)])

    def test_survives_one_value_for_all_and_odd_numbers(self, name: str) -> None:
        strategy = make(name, "kernel")
        values = [1.0, 1.0, 1.0, 1.0, 1e-300, 1e300, float("nan"), float("inf"), 0.0, -2.0]
        for n in range(tries(name, 30)):
            (proposal,) = strategy.ask(1)
            strategy.tell([Observation(proposal.configuration, Status.OK, {"time": values[n % len(values)]})])

    def test_goes_on_after_a_restart_where_trials_were_stopped_early(self, name: str) -> None:
        given = CASES["continuous"]()
        whole, resumed = make(name, "continuous", seed=3), make(name, "continuous", seed=3)
        for number in range(tries(name)):
            for proposal in whole.ask(1):
                whole.tell([_trained(given, proposal, number)])
        resumed.restore(whole.asks, [o.configuration for o in whole.told], whole.told)
        assert whole.ask(2) == resumed.ask(2)

    def test_learns_from_configurations_that_it_never_proposed(self, name: str) -> None:
        given = CASES["kernel"]()
        strategy = make(name, "kernel")
        strange = [given.space.configuration(c) for c in _every_other(given.space, 14)]
        strategy.tell([observe(given, c) for c in strange])
        told_twice = Observation(strange[0], Status.OK, {"time": 9.0})
        no_longer_there = Observation(type(strange[0])({"m": 3, "gone": True}), Status.OK, {"time": 0.1})
        strategy.tell([told_twice, no_longer_there])
        for _ in range(3):
            (proposal,) = strategy.ask(1)
            assert proposal.configuration.hash not in {c.hash for c in strange}
            strategy.tell([observe(given, proposal)])

    def test_waits_for_a_lost_trial_and_learns_nothing_from_it(self, name: str) -> None:
        strategy = make(name, "kernel")
        (proposal,) = strategy.ask(1)
        strategy.tell([Observation(proposal.configuration, Status.LOST)])
        assert strategy.told == []
        assert list(strategy.pending) == [proposal.configuration.hash]

    def test_begins_elsewhere_where_the_default_is_infeasible(self, name: str) -> None:
        space = Space([OrderedValues("a", (1, 2, 3))], constraints=["a > 1"])
        strategy = make_strategy(name, Problem(space, (TIME,)), 0)
        assert {p.configuration["a"] for p in strategy.ask(3)} == {2, 3}

    def test_has_nothing_to_propose_where_nothing_is_feasible(self, name: str) -> None:
        space = Space([OrderedValues("a", (1, 2, 3))], constraints=["a > 5"])
        assert make_strategy(name, Problem(space, (TIME,)), 0).ask(3) == []

    def test_a_space_in_which_no_knob_exists_here_is_one_configuration(self, name: str) -> None:
        space = Space([Flag("a", when="m > 5"), Flag("b", when="m > 7")], workload={"m": 3})
        initial = {"initial": 1} if "initial" in strategy_class(name).defaults else {}
        regions = {"arms": "regions"} if name == "bandit" else {}
        strategy = make_strategy(name, Problem(space, (TIME,), options={**initial, **regions}), 0)
        assert [proposal.configuration for proposal in strategy.ask(2)] == [Configuration({})]
        strategy.tell([Observation(Configuration({}), Status.OK, {"time": 1.0})] * 2)
        assert strategy.ask(2) == []

    def test_keeps_to_the_rows_of_a_recorded_space(self, name: str) -> None:
        given = CASES["kernel"]()
        rows = _every_other(given.space, 30)
        space = given.space.limited_to(rows)
        strategy = make_strategy(name, Problem(space, (TIME,)), 0)
        for _ in range(tries(name, 30)):
            (proposal,) = strategy.ask(1)
            assert dict(proposal.configuration) in rows
            strategy.tell([observe(given, proposal)])


def _trained(given: Case, proposal: Proposal, number: int) -> Observation:
    """What comes of a training whose curve bends as it likes: two of three are stopped, at either rung."""
    final = observe(given, proposal).metrics["time"]
    curve = tuple((rung / 9, final + (number * 7 + rung) % 4 / rung) for rung in (1, 3))[: 1 + number % 2]
    if number % 3 == 0:
        return Observation(proposal.configuration, Status.OK, {"time": final}, curve=curve)
    fraction, value = curve[-1]
    return Observation(
        proposal.configuration,
        Status.PRUNED,
        {"time": value},
        fraction=fraction,
        curve=curve,
        reason=proposal.reason,
    )


def _every_other(space: Space, count: int) -> list[dict[str, object]]:
    indices = np.linspace(0, len(space.feasible) - 1, count).astype(int)
    return [space.feasible[int(i)] for i in indices]
