"""What is known of a paused trial, and its place among the results."""

from __future__ import annotations

import pytest

from autotune.errors import InputError
from autotune.measure.outcome import Estimate, Outcome
from autotune.status import Status
from autotune.store.store import Store
from tests.store.build import Bench, bench, outcome


def paused(step: int = 3) -> tuple[int, Outcome]:
    metrics, facts = {"time": Estimate(0.5, 0.4, 0.6, 1)}, {"step": step, "steps": 27}
    return step, outcome(Status.PRUNED, metrics=metrics, facts=facts, peak_memory=2**33)


def heard(own: Bench, first: int = 0) -> list[tuple[int, int, bool]]:
    _, results = own.store.results_from(own.study.id, first)
    return [(result.told, result.number, result.paused) for result in results]


def test_it_stands_among_the_results_in_the_order_of_what_came(store: Store) -> None:
    own = bench(store)
    first, second = own.trial(1), own.trial(2)
    assert store.pause(first.id, *paused()) == 0
    assert store.finish(second.id, outcome()) == 1
    assert store.finish(own.trial(3, "final").id, outcome()) == 2
    assert store.pause(first.id, *paused(9)) == 3
    assert store.finish(first.id, outcome()) == 4
    assert heard(own) == [(0, 0, True), (1, 1, False), (3, 0, True), (4, 0, False)]
    assert heard(own, 2) == [(3, 0, True), (4, 0, False)] and heard(own, 5) == []


def test_it_says_what_was_known_then(store: Store) -> None:
    own = bench(store)
    trial = own.trial(1)
    store.pause(trial.id, *paused())
    store.finish(trial.id, outcome(Status.CRASHED))
    _, [then, end] = store.results_from(own.study.id, 0)
    assert (then.status, then.metrics["time"].value, then.peak_memory) == (Status.PRUNED, 0.5, 2**33)
    assert then.facts == {"step": 3, "steps": 27} and then.reason == trial.reason
    assert then.configuration == trial.configuration and end.status is Status.CRASHED


def test_once_for_each_step_and_not_after_the_end(store: Store) -> None:
    own = bench(store)
    trial = own.trial(1)
    assert store.pause(trial.id, *paused()) == store.pause(trial.id, *paused()) == 0
    assert store.finish(trial.id, outcome()) == store.pause(trial.id, *paused(9)) == 1
    assert heard(own) == [(0, 0, True), (1, 0, False)]


def test_a_trial_that_is_not_there(store: Store) -> None:
    with pytest.raises(InputError, match="no trial with the id 99"):
        store.pause(99, *paused())


def test_it_goes_with_its_study_or_session(store: Store) -> None:
    own, other = bench(store), bench(store, "other")
    store.pause(own.trial(1).id, *paused())
    store.pause(other.trial(1).id, *paused())
    store.delete([own.study.id])
    store.delete(session_ids=[other.session])
    assert store.results_from(own.study.id, 0) == (0, []) and heard(other) == []
