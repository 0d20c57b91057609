"""The bandit finds the arm that pays, knows after a restart what it knew, and shares one book."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from autotune.errors import InputError
from autotune.search.contract import Observation, Problem, Proposal
from autotune.search.models.gaussian_process import GaussianProcess
from autotune.search.strategies.bandit import Bandit, Window, credit
from autotune.search.strategies.regions import regions
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
from tests.search.spaces import CASES, TIME, Case, observe, problem

LIGHT = "evolution,policy,random"


def play(bandit: Bandit, case: Case, tries: int) -> list[Proposal]:
    made: list[Proposal] = []
    while len(made) < tries and (proposals := bandit.ask(1)):
        made += proposals
        bandit.tell([observe(case, proposals[0])])
    return made


def valley(name: str = "k") -> Case:
    """A slope that small steps descend and random draws do not."""
    space = Space([IntegerRange(f"{name}{n}", 0, 31) for n in range(6)])
    return Case(space, lambda c: 1.0 + sum((value - 20) ** 2 for value in c.values()), 32**6)


def branches() -> Case:
    """One of four branches is far better than the others, and is no better at its default."""
    knobs = [OrderedValues(f"t{n}", (1, 2, 4, 8, 16)) for n in range(3)]
    space = Space([Choice("branch", ("a", "b", "c", "d")), *knobs])

    def cost(c):  # type: ignore[no-untyped-def]
        off = sum(abs(c[f"t{n}"] - 8) for n in range(3))
        return 60.0 + (off - 21 if c["branch"] == "c" else 0.1 * off)

    return Case(space, cost, 500)


class TestCredit:
    def test_is_even_where_nothing_is_known(self) -> None:
        assert credit([]) == 0.5

    def test_later_rewards_weigh_more(self) -> None:
        assert credit([0.0, 0.0, 1.0]) > credit([1.0, 0.0, 0.0])

    def test_lies_between_nothing_and_everything(self) -> None:
        assert 0.0 < credit([0.0] * 50) < 0.01
        assert 0.99 < credit([1.0] * 50) < 1.0

    def test_what_leaves_the_window_is_forgotten(self) -> None:
        window = Window(3)
        for arm, reward in ((0, 1.0), (1, 0.5), (0, 0.0), (0, 0.25)):
            window.add(arm, reward)
        assert window.of(0) == [0.0, 0.25]
        assert window.of(1) == [0.5]


class TestStrategiesAsArms:
    @pytest.mark.parametrize("options", [{"arms": "bayes,random"}, {"arms": "regions", "inside": "bayes"}])
    def test_a_model_in_an_arm_keeps_to_one_thread(
        self, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Other cores may be measured on while it thinks."""
        threads: set[int] = set()
        fit = GaussianProcess.fit

        def watched(self: GaussianProcess, *args: Any, **named: Any) -> None:
            threads.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
            fit(self, *args, **named)

        monkeypatch.setattr(GaussianProcess, "fit", watched)
        case = CASES["kernel"]()
        with threadpool_limits(2, user_api="blas"):
            play(Bandit(problem(case, **options)), case, 12)
        assert threads == {1}

    def test_gives_more_tries_to_the_arm_that_pays(self) -> None:
        arms: Counter[object] = Counter()
        for seed in range(3):
            made = play(Bandit(problem(valley(), arms="evolution,random"), seed), valley(), 90)
            arms.update(p.reason["arm"] for p in made[30:])
        assert arms["evolution"] > 2 * arms["random"]
        assert arms["random"] > 0

    def test_credits_the_arm_that_had_the_try(self) -> None:
        case = valley()
        bandit = Bandit(problem(case, arms=LIGHT), 0)
        for _ in range(60):
            (proposal,) = bandit.ask(1)
            before = len(bandit._window.tries)
            bandit.tell([observe(case, proposal)])
            if "arm" in proposal.reason:
                arm, _ = bandit._window.tries[-1]
                assert bandit.arms[arm].name == proposal.reason["arm"]
            else:
                assert len(bandit._window.tries) == before  # the default is nobody's

    def test_credits_the_arm_that_had_the_try_with_several_in_flight(self) -> None:
        case = valley()
        bandit = Bandit(problem(case, arms=LIGHT), 0)
        flying = bandit.ask(4)
        rng = np.random.default_rng(0)
        for _ in range(60):
            done = flying.pop(int(rng.integers(len(flying))))
            bandit.tell([observe(case, done)])
            if "arm" in done.reason:
                assert bandit.arms[bandit._window.tries[-1][0]].name == done.reason["arm"]
            flying += bandit.ask(1)

    def test_credits_nobody_for_what_others_proposed(self) -> None:
        case = valley()
        bandit = Bandit(problem(case, arms=LIGHT), 0)
        strange = case.space.sample(np.random.default_rng(0), 3)
        bandit.tell([observe(case, configuration) for configuration in strange])
        assert not bandit._window.tries and len(bandit.usable) == 3

    @pytest.mark.parametrize("arms", ["bayes,random", "evolution,random"])
    def test_each_try_has_a_draw_of_its_own_while_a_bracket_is_paused(self, arms: str) -> None:
        """Whether the arms hear of paused trials or not."""
        case = CASES["kernel"]()
        bandit = Bandit(problem(case, arms=arms))
        scores = []
        for _ in range(9):
            (proposal,) = bandit.ask(1)
            scores.append(proposal.reason.get("score"))
            heard = Observation(
                proposal.configuration, Status.PRUNED, {"time": 2.0}, fraction=0.5, paused=True
            )
            bandit.tell([heard])
        assert len(set(scores)) == 9

    def test_all_arms_learn_from_everything_and_share_what_is_taken(self) -> None:
        case = valley()
        bandit = Bandit(problem(case, arms=LIGHT), 0)
        play(bandit, case, 20)
        bandit.ask(2)
        for arm in bandit.arms:
            assert arm.strategy.told == bandit.told
            assert arm.strategy.taken == bandit.taken
            assert arm.strategy.pending == bandit.pending

    def test_a_replicate_earns_nobody_a_second_reward(self) -> None:
        case = valley()
        bandit = Bandit(problem(case, arms=LIGHT), 0)
        made = play(bandit, case, 12)
        earned = list(bandit._window.tries)
        bandit.tell([observe(case, made[-1])])
        assert list(bandit._window.tries) == earned

    @pytest.mark.parametrize("arms", ["", "bandit,random", "random,random", "evolution,,random"])
    def test_refuses_arms_that_make_no_sense(self, arms: str) -> None:
        with pytest.raises(InputError, match="expected: names of other strategies"):
            Bandit(problem(valley(), arms=arms))

    def test_names_the_strategies_where_one_is_misspelt(self) -> None:
        with pytest.raises(InputError, match="did you mean 'evolution'"):
            Bandit(problem(valley(), arms="evolutoin,random"))

    @pytest.mark.parametrize("option", [{"inside": "random"}, {"knob": "k0"}])
    def test_refuses_what_says_something_of_regions(self, option: dict[str, str]) -> None:
        with pytest.raises(InputError, match="has no effect on these arms\n  expected: arms: regions"):
            Bandit(problem(valley(), arms=LIGHT, **option))
        Bandit(problem(valley(), arms="regions", **option))


class TestRegionsAsArms:
    def test_spends_most_tries_in_the_region_that_pays(self) -> None:
        case = branches()
        late: Counter[object] = Counter()
        for seed in range(4):
            made = play(Bandit(problem(case, arms="regions"), seed), case, 80)
            late.update(p.configuration["branch"] for p in made[30:])
            assert len({p.configuration["branch"] for p in made[:30]}) == 4
        assert late["c"] > 80  # of 200; 50 by chance

    def test_says_which_region_and_its_score(self) -> None:
        case = branches()
        for proposal in play(Bandit(problem(case, arms="regions"), 0), case, 20)[1:]:
            assert proposal.reason["arm"] == f"branch == '{proposal.configuration['branch']}'"
            assert isinstance(proposal.reason["score"], float)

    def test_goes_on_after_a_restart_as_if_it_had_not_stopped(self) -> None:
        case = CASES["conditional"]()
        whole = Bandit(problem(case, arms="regions", knob="solver"), 2)
        for _ in range(5):
            whole.tell([observe(case, p) for p in whole.ask(1)])
        flying = whole.ask(2)
        resumed = Bandit(problem(case, arms="regions", knob="solver"), 2)
        known = [o.configuration for o in whole.told] + [p.configuration for p in flying]
        resumed.restore(whole.asks, known, whole.told)
        assert whole.ask(12) == resumed.ask(12)
        assert whole.ask(1) == []

    def test_cuts_by_the_knob_that_is_named(self) -> None:
        bandit = Bandit(problem(branches(), arms="regions", knob="t0"))
        assert [arm.name for arm in bandit.arms] == [f"t0 == {t}" for t in (1, 2, 4, 8, 16)]

    def test_refuses_a_knob_that_is_not_there(self) -> None:
        with pytest.raises(InputError, match="there is no knob 'brunch'"):
            Bandit(problem(branches(), arms="regions", knob="brunch"))

    def test_refuses_a_knob_that_does_not_always_exist(self) -> None:
        with pytest.raises(InputError, match=r"'sweeps', which does not always exist\n.*solver"):
            Bandit(problem(CASES["conditional"](), arms="regions", knob="sweeps"))


SPACES = [
    (Choice("k", ("it's", 'a "b"', "c\\d")), 3),
    (Choice("k", (1, (1, 2), {"a": 1}, {"a": (1, {})})), 4),
    (Flag("k"), 2),
    (OrderedValues("k", (1, 2, 4, 8)), 4),
    (OrderedValues("k", tuple(range(10))), 4),
    (OrderedValues("k", tuple("abcdefghij")), 4),
    (OrderedValues("k", tuple(value for i in range(20) for value in (i, 100 - i))), 4),
    (OrderedValues("k", (*range(20), "auto", *range(20, 40))), 4),
    (OrderedValues("k", tuple(range(40, 0, -1))), 4),
    (IntegerRange("k", 1, 100_000, scale="log"), 4),
    (FloatRange("k", 0.0, 1.0, step=0.1), 4),
    (FloatRange("k", 1e-4, 1.0, scale="log"), 4),
    (Permutation("k", tuple("abcd")), 4),
    (Assignment("k", ("x", "y"), ("cpu", "gpu")), 2),
]


@pytest.mark.parametrize(("knob", "count"), SPACES)
def test_regions_are_a_partition(knob, count):  # type: ignore[no-untyped-def]
    space = Space([knob, Flag("other")])
    parts = regions(space, "k")
    assert len(parts) == count
    for configuration in space.sample(np.random.default_rng(0), 200):
        assert sum(configuration in part.space for part in parts) == 1
    if not space.continuous:
        assert sum(len(part.space.feasible) for part in parts) == len(space.feasible)


def test_regions_without_anything_feasible_are_left_out() -> None:
    space = Space(
        [Choice("k", ("a", "b", "c")), OrderedValues("n", (1, 2))], constraints=["k != 'b' or n > 2"]
    )
    assert [part.label for part in regions(space)] == ["k == 'a'", "k == 'c'"]


def test_has_no_region_to_propose_from_where_nothing_is_feasible() -> None:
    space = Space([Choice("k", ("a", "b")), OrderedValues("n", (1, 2))], constraints=["n > 2"])
    assert Bandit(Problem(space, (TIME,), options={"arms": "regions"})).ask(3) == []


@pytest.mark.parametrize(
    ("knob", "rule", "labels"),
    [
        (FloatRange("rate", 0.0, 1.0), "rate <= 0.2", ["0.0 <= rate < 0.25"]),
        (FloatRange("rate", 1.0, 1.0), "rate <= 1", ["1.0 <= rate <= 1.0"]),
    ],
    ids=["three empty", "pinned"],
)
def test_regions_of_a_range_without_anything_feasible_are_left_out(
    knob: FloatRange, rule: str, labels: list[str]
) -> None:
    space = Space([knob, Flag("fused")], constraints=[rule])
    assert [part.label for part in regions(space, "rate")] == labels
    case = Case(space, lambda c: 1.0 + c["rate"], None)
    bandit = Bandit(problem(case, arms="regions", knob="rate", inside="random"))
    assert all(proposal.configuration in space for proposal in play(bandit, case, 6))


def test_says_where_no_region_of_a_range_has_anything_feasible() -> None:
    with pytest.raises(InputError, match="no configuration satisfies 'rate > 2'"):
        regions(Space([FloatRange("rate", 0.0, 1.0)], constraints=["rate > 2"]))


def test_regions_of_a_recorded_space_hold_its_rows() -> None:
    rows = [{"k": k, "n": n} for k, n in (("a", 1), ("a", 2), ("c", 1))]
    space = Space([Choice("k", ("a", "b", "c")), OrderedValues("n", (1, 2))]).limited_to(rows)
    assert [len(part.space.feasible) for part in regions(space, "k")] == [2, 1]


def test_regions_follow_what_other_knobs_hang_on() -> None:
    assert [part.label for part in regions(CASES["conditional"]().space)] == [
        "solver == 'direct'",
        "solver == 'iterative'",
    ]


def test_says_nothing_of_a_lost_trial() -> None:
    bandit = Bandit(problem(valley(), arms=LIGHT), 0)
    (proposal,) = bandit.ask(1)
    bandit.tell([Observation(proposal.configuration, Status.LOST)])
    assert list(bandit.pending) == [proposal.configuration.hash]
    assert not bandit._window.tries
