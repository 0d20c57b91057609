"""What trials that were stopped early teach."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.search.contract import Observation, Problem
from autotune.search.loss import signed, signed_at_full
from autotune.search.models.fidelity import at_full
from autotune.search.models.history import History
from autotune.search.strategies.bayes import Bayes
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPEC = parse_spec(
    "autotune: 1\nname: a\nobjective: a.py:A\nknobs: {x: {range: [0, 999]}}\n", "space.yaml", {}
)
PROBLEM = Problem(SPEC.space, SPEC.metrics)
RUNGS = (1 / 27, 1 / 9, 1 / 3)


def told(x: int, curve: list[float], final: float | None = None) -> Observation:
    """A trial with those values at the rungs; without a ``final`` it was stopped at the last of them."""
    fraction = 1.0 if final is not None else RUNGS[len(curve) - 1]
    return Observation(
        Configuration({"x": x}),
        Status.OK if final is not None else Status.PRUNED,
        {"time": curve[-1] if final is None else final},
        fraction=fraction,
        curve=tuple(zip(RUNGS, curve, strict=False)),
    )


def losses(observations: list[Observation]) -> list[float]:
    return [float(x) for x in signed(PROBLEM, observations)]


def test_a_stopped_trial_stands_as_far_behind_as_it_was_where_nothing_else_is_known() -> None:
    assert losses([told(0, [1.0, 0.5, 0.3], 0.1), told(1, [1.5])]) == pytest.approx([0.1, 0.15])
    assert losses([told(0, [1.0], -0.1), told(1, [1.5])]) == pytest.approx([-0.1, 0.4]), "no logarithms here"


def test_what_was_heard_in_a_pause_counts_until_more_is_heard() -> None:
    before = [told(0, [1.0, 0.5, 0.3], 0.1), replace(told(1, [1.5]), paused=True)]
    assert losses(before) == pytest.approx([0.1, 0.15])
    ended = [*before, told(1, [1.5, 0.5, 0.25], 0.08)]
    assert losses(ended) == pytest.approx([0.1, math.nan, 0.08], nan_ok=True)
    further = [*before, replace(told(1, [1.5, 0.5]), paused=True)]
    assert losses(further) == pytest.approx([0.1, math.nan, 0.1], nan_ok=True)
    failed = [*before, Observation(Configuration({"x": 1}), Status.CRASHED)]
    assert list(History.of(PROBLEM, failed).values()) == pytest.approx([0.1, math.nan], nan_ok=True)


def test_where_first_losses_tell_nothing_to_have_been_stopped_is_no_fault() -> None:
    complete = [told(n, [1.0 + n % 7 + 1e-3 * n], 0.1 + 0.01 * (n * 5 % 11)) for n in range(77)]
    found = losses([*complete, told(100, [9.0])])[-1]
    assert found == pytest.approx(0.15, rel=0.1), "as the others, not nine times as bad"


def test_one_that_blew_up_says_nothing_of_the_others() -> None:
    complete = [told(n, [1.0 + n % 7 + 1e-3 * n], 0.1 + 0.01 * (n * 5 % 11)) for n in range(20)]
    alone = losses([*complete, told(100, [9.0])])[-1]
    beside = losses([*complete, told(100, [9.0]), told(101, [1e200])])[-2]
    assert beside == pytest.approx(alone, rel=0.05)


def test_a_loss_whose_square_overflows_is_one_of_the_worst() -> None:
    """Squared among losses that are not all positive, it had ended the search in an error."""
    found = losses(
        [told(0, [1.0, 0.5], -0.1), told(1, [1e200]), told(2, [-1e200, 3.0]), told(3, [2.0, 1.0], 0.5)]
    )
    assert all(map(math.isfinite, found)) and max(found) == found[1]


def test_where_first_losses_tell_all_it_stays_behind() -> None:
    complete = [told(n, [1.0 + n % 7], 0.1 * (1.0 + n % 7)) for n in range(77)]
    assert losses([*complete, told(100, [14.0])])[-1] == pytest.approx(1.4, rel=0.01)


def test_what_was_never_read_is_less_sure_than_what_was() -> None:
    complete = [told(n, [1.0 + n % 7 + 1e-3 * n], 0.1 + 0.01 * (n * 5 % 11)) for n in range(77)]
    stopped = [told(100, [4.0]), told(101, [9.0]), told(102, [90.0])]
    unsure = signed_at_full(PROBLEM, [*complete, *stopped]).doubts
    assert set(unsure[:77]) == {0.0}
    assert 0.02 < unsure[77] < unsure[78] < unsure[79]
    spread = np.std(losses(complete))
    assert unsure[77] == pytest.approx(spread, rel=0.15), "a first loss that tells nothing leaves all open"


def test_a_surrogate_is_told_how_sure_it_is() -> None:
    observations = [told(n, [1.0 + n % 7 + 1e-3 * n], 0.1 + 0.01 * (n * 5 % 11)) for n in range(20)]
    targets = History.of(PROBLEM, [*observations, told(100, [4.0])]).targets()
    assert targets is not None
    assert targets.known[-1] > 0.1, "a good part of the variance of all"
    assert not targets.known[:-1].any()


def test_the_worst_of_a_crowd_may_come_to_no_more_than_it_has() -> None:
    """As trainings that have learned nothing: near the others by their ratio, yet nowhere near them."""
    went_on = [told(n, [2.10 + 0.02 * n, 1.0, 0.2], 0.1 + 0.01 * (n % 3)) for n in range(4)]
    crowd = [told(100 + n, [2.28 + 0.001 * n]) for n in range(20)]
    found = losses([*went_on, *crowd])
    assert 0.1 < found[4] < 0.15, "the best of them stands nearly as well as those that went on"
    assert found[4:] == sorted(found[4:]) and found[-1] > 0.8, "and the last one has hardly learned"


def test_between_two_that_went_on_it_stands_between_them() -> None:
    found = losses([told(0, [1.0], 0.1), told(1, [2.0], 0.3), told(2, [1.5])])
    assert found[2] == pytest.approx(0.1 * 3.0 ** math.log2(1.5)), "on logarithms, as all are above 0"


def test_later_rungs_teach_the_earlier_ones() -> None:
    found = losses([told(0, [1.0, 0.5], 0.1), told(1, [1.2, 0.8]), told(2, [1.2]), told(3, [1.2])])
    assert found == pytest.approx([0.1, 0.16, 0.16, 0.16])


def test_crossing_curves_are_levelled() -> None:
    found = losses([told(0, [1.0], 0.4), told(1, [1.5], 0.2), told(2, [1.2])])
    assert found[2] == pytest.approx(math.sqrt(0.4 * 0.2))


def test_where_nobody_went_further_the_value_there_is_all_there_is() -> None:
    assert losses([told(0, [1.0]), told(1, [2.0])]) == [1.0, 2.0]


def test_one_without_a_curve_keeps_what_it_has_and_is_unsure() -> None:
    bare = replace(told(2, [0.7]), curve=())
    found = signed_at_full(PROBLEM, [told(0, [1.0], 0.1), told(1, [2.0], 0.3), bare])
    assert found.losses[2] == 0.7
    assert found.doubts == pytest.approx([0.0, 0.0, 0.1])
    assert losses([bare]) == [0.7], "with nothing beside it too"


def test_a_failure_has_no_loss_and_misleads_nobody() -> None:
    failed = Observation(Configuration({"x": 5}), Status.CRASHED)
    found = losses([failed, told(0, [1.0], 0.1), told(1, [2.0])])
    assert math.isnan(found[0]) and found[1:] == pytest.approx([0.1, 0.2])


def test_what_is_past_a_bound_has_no_loss_and_yet_tells_what_becomes_of_others() -> None:
    good = [told(n, [1.0 + 0.1 * n], 0.1 + 0.01 * (n * 5 % 11)) for n in range(11)]
    past = [
        replace(told(20 + n, [2.2 + 0.01 * n], 2.0), status=Status.WRONG, metrics={}, bounded={"time": 2.0})
        for n in range(3)
    ]
    ended = losses([*good, *past, told(100, [2.21])])
    assert all(math.isnan(x) for x in ended[11:14])
    assert ended[-1] == pytest.approx(2.0, rel=0.05)
    assert losses([*good, told(100, [2.21])])[-1] < 0.5, "which those that went well cannot tell"


@pytest.mark.parametrize(
    ("knobs", "top", "early", "drawn"),
    [(1, 9.5, True, 3), (3, 9.5, True, 3), (6, 9.5, True, 6), (6, 9.5, False, 3), (6, 2, True, 3)],
    ids=["a knob", "three", "six", "six, none stopped", "six, a small space"],
)
def test_what_was_stopped_is_no_ground_for_a_model_yet(
    knobs: int, top: float, early: bool, drawn: int
) -> None:
    text = "\n".join(f"  k{n}: {{range: [0, {top}]}}" for n in range(knobs))
    spec = parse_spec(f"autotune: 1\nname: a\nobjective: a.py:A\nknobs:\n{text}\n", "space.yaml", {})
    strategy = Bayes(Problem(spec.space, spec.metrics), seed=1)
    kinds = []
    for _ in range(8):
        (proposal,) = strategy.ask()
        kinds.append(proposal.reason["kind"])
        value = 1.0 + sum(float(v) for v in proposal.configuration.values()) / 100  # type: ignore[arg-type]
        seen = Observation(proposal.configuration, Status.OK, {"time": value}, curve=((1 / 9, value),))
        if early and kinds[-1] != "default":
            seen = replace(seen, status=Status.PRUNED, fraction=1 / 9)
        strategy.tell([seen])
    assert kinds[:drawn] == ["default"] + ["initial"] * (drawn - 1)
    assert "initial" not in kinds[drawn:]


def test_without_stopped_trials_nothing_changes() -> None:
    pruned = Observation(Configuration({"x": 1}), Status.PRUNED, {"time": 3.0})
    assert losses([told(0, [1.0], 0.1), pruned]) == [0.1, 3.0]


def test_what_is_maximised_is_turned_round() -> None:
    accuracies = [told(0, [0.6], 0.9), told(1, [0.5])]
    found = at_full(accuracies, np.array([-0.9, math.nan]), sign=-1.0)
    assert found.losses == pytest.approx([-0.9, -0.8])


def test_the_curve_of_another_metric_says_nothing_of_the_goal() -> None:
    """Judged by their loss: who stands badly by that is not among the good by accuracy."""
    goals = (MetricSpec("accuracy", "maximize"), MetricSpec("loss", "minimize"))
    judged = Problem(SPEC.space, goals, judged="loss")
    complete = [
        Observation(
            Configuration({"x": x}), Status.OK, {"accuracy": 0.9 - x / 100}, curve=((1 / 3, 1.0 + x),)
        )
        for x in range(4)
    ]
    stopped = Observation(
        Configuration({"x": 9}), Status.PRUNED, {"accuracy": 0.1}, fraction=1 / 3, curve=((1 / 3, 9.0),)
    )
    found = signed_at_full(judged, [*complete, stopped])
    assert found.losses == pytest.approx([-0.9, -0.89, -0.88, -0.87, -0.1])
    assert found.doubts[-1] > 0.0 == found.doubts[0]


VALUES = st.floats(0, 100)


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12),
    st.lists(VALUES, min_size=2, max_size=12),
)
@example([(0.0, 0.0), (1e-308, 2.0)], [1.0, 2e-309])
def test_who_was_worse_at_a_rung_is_not_better_at_the_end(
    complete: list[tuple[float, float]], stopped: list[float]
) -> None:
    observations = [told(n, [value], final) for n, (value, final) in enumerate(complete)]
    observations += [told(100 + n, [value]) for n, value in enumerate(stopped)]
    found = losses(observations)
    assert found[: len(complete)] == [final for _, final in complete]
    pairs = sorted(zip(stopped, found[len(complete) :], strict=True))
    assert all(b[1] >= a[1] - 1e-9 for a, b in itertools.pairwise(pairs))
    assert pairs[0][1] >= min(final for _, final in complete) - 1e-9
