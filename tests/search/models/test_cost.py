"""What trials cost, learned from their seconds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.search.contract import Observation, Problem
from autotune.search.models.cost import Cost, emphasis
from autotune.search.models.features import Features
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TIME = MetricSpec("time", "minimize", "s")
LOSS = MetricSpec("loss", "minimize")
SPACE = Space(
    [
        OrderedValues("unroll", (1, 2, 4, 8, 16)),
        Choice("layout", ("row", "column", "tiled")),
        OrderedValues("threads", (1, 2, 4, 8)),
    ]
)


def seconds_of(configuration: Configuration) -> float:
    """Effects that multiply."""
    unroll = configuration["unroll"]
    assert isinstance(unroll, int)
    return 0.5 * math.sqrt(unroll) * (3.0 if configuration["layout"] == "tiled" else 1.0)


def told(configuration: Configuration, seconds: float, status: Status = Status.OK) -> Observation:
    metrics = {"time": 1.0} if status is Status.OK else {}
    return Observation(configuration, status, metrics, seconds=seconds)


def drawn(count: int, space: Space = SPACE) -> list[Configuration]:
    return space.sample(np.random.default_rng(0), count)


def test_learns_what_multiplies_from_few_trials() -> None:
    features = Features(SPACE)
    cost = Cost(features)
    cost.learn([told(c, seconds_of(c)) for c in drawn(30)])
    rest = SPACE.sample(np.random.default_rng(1), 30)
    expected = np.log([seconds_of(c) for c in rest])
    assert np.abs(cost.predict(features.of(rest)) - expected).max() < 0.25


def test_what_was_stopped_before_its_first_step_teaches_nothing() -> None:
    """Whoever runs the trials may say so after a report of step 0."""
    one, other = drawn(2)
    cost, usual = Cost(Features(SPACE)), Cost(Features(SPACE))
    cost.learn([told(one, 1.0), replace(told(other, 2.0, Status.PRUNED), fraction=0.0)])
    usual.learn([told(one, 1.0)])
    inputs = Features(SPACE).of([one, other])
    assert cost.predict(inputs).tolist() == usual.predict(inputs).tolist()


def test_what_was_stopped_early_says_what_the_whole_costs() -> None:
    """A fixed second to begin with, and then in proportion to the steps."""
    features = Features(SPACE)
    rng = np.random.default_rng(0)
    told_of = [
        Observation(
            c, Status.PRUNED, {"time": 1.0}, seconds=1.0 + 100.0 * seconds_of(c) * part, fraction=part
        )
        for c, part in zip(drawn(60), rng.choice([1 / 27, 1 / 9, 1 / 3, 1.0], 60), strict=True)
    ]
    cost = Cost(features)
    cost.learn(told_of)
    rest = SPACE.sample(np.random.default_rng(1), 30)
    expected = np.log([1.0 + 100.0 * seconds_of(c) for c in rest])
    off = cost.predict(features.of(rest)) - expected
    assert abs(off.mean()) < 0.6, "taken as they are, the seconds would be a tenth"
    assert off.std() < 0.3


@pytest.mark.parametrize(
    "status", [Status.DIVERGED, Status.CRASHED, Status.INFEASIBLE, Status.OUT_OF_MEMORY], ids=str
)
def test_what_fails_at_once_does_not_look_cheap(status: Status) -> None:
    cost = Cost(Features(SPACE))
    cost.learn([told(c, 0.01, status) for c in drawn(5)])
    assert cost.predict(Features(SPACE).of(drawn(5))).tolist() == [0.0] * 5


def test_values_of_a_long_range_have_no_effects_of_their_own() -> None:
    space = Space([IntegerRange("batch", 8, 512, scale="log")])
    features = Features(space)
    cost = Cost(features)
    cost.learn([told(Configuration({"batch": b}), 1000.0 / b) for b in (8, 16, 64, 100, 200, 512)])
    found = cost.predict(features.of([Configuration({"batch": b}) for b in (9, 50, 300)]))
    assert (np.diff(found) < -0.5).all()


def test_knows_nothing_at_first_and_the_mean_from_the_first_trial_on() -> None:
    features = Features(SPACE)
    inputs = features.of(drawn(5))
    cost = Cost(features)
    assert cost.predict(inputs).tolist() == [0.0] * 5
    cost.learn([told(drawn(1)[0], 0.0), told(drawn(1)[0], math.inf)])
    assert cost.predict(inputs).tolist() == [0.0] * 5
    cost.learn([told(drawn(1)[0], 8.0)])
    assert cost.predict(inputs) == pytest.approx(np.log(8.0), abs=1e-3)


def test_a_timeout_tells_that_a_trial_takes_long() -> None:
    features = Features(SPACE)
    cost = Cost(features)
    cost.learn([told(drawn(1)[0], 8.0, Status.TIMEOUT)])
    assert cost.predict(features.of(drawn(1)))[0] == pytest.approx(np.log(8.0), abs=1e-3)


def test_a_build_that_was_made_is_cheap() -> None:
    features = Features(SPACE)
    cost = Cost(features, ["unroll", "layout"])
    one = {"unroll": 4, "layout": "row", "threads": 1}
    cost.learn([told(SPACE.configuration(one), 10.0)])
    cost.learn([told(SPACE.configuration(one | {"threads": 2}), 0.1)])
    same = SPACE.configuration(one | {"threads": 8})
    other = SPACE.configuration(one | {"unroll": 8})
    assert np.exp(cost.predict(features.of([same, other]))) == pytest.approx([0.1, 10.0], rel=1e-3)


def test_a_build_with_a_continuous_knob_is_always_new() -> None:
    space = Space([FloatRange("x", 0.0, 1.0), Choice("layout", ("row", "column"))])
    features = Features(space)
    cost = Cost(features, ["x"])
    cost.learn([told(c, 2.0) for c in drawn(5, space)])
    assert np.exp(cost.predict(features.of(drawn(5, space)))) == pytest.approx([2.0] * 5, rel=1e-3)


def test_told_at_once_is_as_told_one_by_one() -> None:
    features = Features(SPACE)
    observations = [told(c, seconds_of(c)) for c in drawn(20)]
    whole, parts = Cost(features, ["unroll"]), Cost(features, ["unroll"])
    whole.learn(observations)
    for one in observations:
        parts.learn([one])
    inputs = features.of(drawn(20))
    assert whole.predict(inputs).tolist() == parts.predict(inputs).tolist()


def test_an_unknown_knob_is_named() -> None:
    with pytest.raises(InputError, match="'unrol'"):
        Cost(Features(SPACE), ["unrol"])


@pytest.mark.parametrize("options", [{"cost": True}, {"rebuild": "unroll"}])
@pytest.mark.parametrize("strategy", ["bayes", "structured", "auto"])
def test_nobody_can_ask_for_it_where_it_does_not_count(strategy: str, options: dict[str, bool | str]) -> None:
    several = Problem(SPACE, (TIME, LOSS), options=options)
    with pytest.raises(InputError, match=f"'{next(iter(options))}' .* has no effect with 2 goals"):
        make_strategy(strategy, several)
    make_strategy(strategy, replace(several, metrics=(TIME,)))


def test_cost_counts_less_as_the_budget_is_spent() -> None:
    by_tries = Problem(SPACE, (TIME,), 100)
    assert [emphasis(by_tries, tries) for tries in (0, 50, 100, 200)] == [1.0, 0.5, 0.0, 0.0]
    assert 0 < emphasis(Problem(SPACE, (TIME,)), 1000) < 1


def test_cost_counts_in_full_where_the_time_is_what_runs_out() -> None:
    alone = Problem(SPACE, (TIME,), seconds=60.0)
    assert [emphasis(alone, 10, passed) for passed in (0.0, 59.0, 70.0)] == [1.0, 1.0, 1.0]
    both = Problem(SPACE, (TIME,), 100, seconds=60.0)
    assert emphasis(both, 0) == 1.0
    assert emphasis(both, 50, passed=40.0) == 1.0, "the other 50 would take 40 s, and 20 are left"
    assert emphasis(both, 50, passed=12.0) == 0.25, "they would take 12 s of 48"
    assert emphasis(both, 100, passed=12.0) == 0.0
    assert emphasis(both, 50) == 1.0, "nobody said when trials ran"


def builds(options: dict[str, float | int | str | bool]) -> int:
    """How many builds a search of 20 tries makes, where a new one costs a hundred times as much."""
    space = Space(
        [
            OrderedValues("unroll", tuple(range(1, 17))),
            Choice("layout", ("row", "column", "tiled")),
            OrderedValues("threads", tuple(range(1, 17))),
        ]
    )
    strategy = make_strategy("bayes", Problem(space, (TIME,), 60, options))
    made: set[tuple[object, object]] = set()
    for _ in range(20):
        configuration = strategy.ask()[0].configuration
        build = configuration["unroll"], configuration["layout"]
        seconds = 0.1 if build in made else 10.0
        made.add(build)
        threads = configuration["threads"]
        assert isinstance(threads, int)
        time = seconds_of(configuration) + abs(threads - 11)
        strategy.tell([Observation(configuration, Status.OK, {"time": time}, seconds=seconds)])
    assert len(strategy.taken) == 20
    return len(made)


def test_cheap_knobs_are_tried_inside_expensive_ones() -> None:
    assert builds({"rebuild": "unroll, layout"}) < builds({})


def sizes_tried(unit: float, limit: float | None) -> list[int]:
    """By a search of 30 tries, where a size costs ``unit`` times as many seconds and gains little."""
    space = Space(
        [
            OrderedValues("size", tuple(2**n for n in range(11))),
            OrderedValues("rate", tuple(range(1, 20)), default=3),
        ]
    )
    strategy = make_strategy("bayes", Problem(space, (LOSS,), seconds=limit), seed=2)
    sizes = []
    for _ in range(30):
        configuration = strategy.ask()[0].configuration
        size, rate = configuration["size"], configuration["rate"]
        assert isinstance(size, int) and isinstance(rate, int)
        loss = 1.0 + 0.1 * abs(rate - 11) + 0.01 * (11 - math.log2(size))
        strategy.tell([Observation(configuration, Status.OK, {"loss": loss}, seconds=unit * size)])
        sizes.append(size)
    return sizes


def test_where_the_budget_is_a_time_cost_counts_unasked() -> None:
    assert sum(sizes_tried(1.0, 4000.0)) < sum(sizes_tried(1.0, None)) / 1.5


def test_among_trials_of_microseconds_none_is_cheaper() -> None:
    """The choice of the next one takes much longer than any of them."""
    assert sum(sizes_tried(1e-6, 60.0)) > sum(sizes_tried(1e-6, None)) / 1.5


def test_what_is_much_larger_than_all_so_far_is_known_to_take_long() -> None:
    """A few small trainings tell that a large one takes a hundred times as long."""
    space = Space([OrderedValues("batch", tuple(range(1, 65))), OrderedValues("width", (16, 64, 256, 1024))])
    features = Features(space)
    cost = Cost(features)
    small = [c for c in space.sample(np.random.default_rng(0), 40) if c["width"] in (16, 64)][:10]
    cost.learn([told(c, 0.01 * int(str(c["width"])) / int(str(c["batch"]))) for c in small])
    large, least = (space.configuration({"batch": 1, "width": width}) for width in (1024, 16))
    expected = cost.predict(features.of([large, least]))
    assert expected[0] - expected[1] > math.log(16.0), "64 times, of which the prior takes its part"


def test_a_resumed_search_goes_on_the_same() -> None:
    problem = Problem(SPACE, (TIME,), 40, {"cost": True})
    first = make_strategy("bayes", problem, seed=3)
    observations = []
    for _ in range(12):
        configuration = first.ask()[0].configuration
        observations.append(told(configuration, seconds_of(configuration)))
        first.tell(observations[-1:])
    second = make_strategy("bayes", problem, seed=3)
    second.restore(12, [o.configuration for o in observations], observations)
    mine, other = first.ask()[0], second.ask()[0]
    assert mine.configuration == other.configuration
    assert mine.reason["seconds"] == other.reason["seconds"]


def test_among_trainings_as_good_the_quick_ones_are_tried() -> None:
    """Nobody asks for it: that some were stopped early is enough."""
    space = Space([FloatRange("rate", 1e-3, 1.0, scale="log"), IntegerRange("batch", 8, 512, scale="log")])
    strategy = make_strategy("bayes", Problem(space, (LOSS,), None, {}, seconds=1e4), seed=1)
    batches, reasons = [], []
    for number in range(30):
        (proposal,) = strategy.ask()
        configuration = proposal.configuration
        reasons.append(proposal.reason)
        rate, batch = configuration["rate"], configuration["batch"]
        assert isinstance(rate, float) and isinstance(batch, int)
        loss = 0.1 + (math.log10(rate) + 1.5) ** 2
        early = number % 3 > 0
        strategy.tell(
            [
                Observation(
                    configuration,
                    Status.PRUNED if early else Status.OK,
                    {"loss": 3 * loss if early else loss},
                    seconds=(1000.0 / batch) * (1 / 27 if early else 1.0),
                    fraction=1 / 27 if early else 1.0,
                    curve=((1 / 27, 3 * loss),) if early else ((1 / 27, 3 * loss), (1.0, loss)),
                )
            ]
        )
        batches.append(batch)
    assert np.median(batches[10:]) > 128, "64 stands in the middle of the scale"
    weighed = ["seconds" in reason for reason in reasons if reason.get("kind") == "expected improvement"]
    assert weighed.count(True) > 20, "the others are ways out of a plateau, and tries before one had ended"
