"""What a run says to its search: few messages, whatever the script reports."""

from __future__ import annotations

import numpy as np
import pytest

import autotune
from autotune.hook.runs.link import Link
from tests.hook.listening import Following, Search


def test_the_last_values_are_the_result(search: Search) -> None:
    listener = search()
    with autotune.run("train") as run:
        for step in range(100):
            run.report(step, loss=1 / (1 + step), rate=step)
        run.report(100, {"eval.loss": 3})
        run.result(loss=0.5)
    listener.attend()
    assert listener.heard.values == {"loss": 0.5, "rate": 99.0, "eval.loss": 3.0}
    assert (listener.heard.runs, listener.heard.ended) == (1, 1)


def test_reports_are_merged_but_for_those_that_are_waited_for(search: Search) -> None:
    session = Following(steps=2000, rungs=(1, 3, 1500))
    listener = search(session.reporter)
    with autotune.run("train") as run:
        for step in range(1, 2001):
            run.report(step, loss=1.0 / step)
    listener.attend()
    steps = [step for step, _ in session.heard]
    assert {1, 3, 1500, 2000} <= set(steps)
    assert dict(session.heard)[1500]["loss"] == 1 / 1500
    assert len(steps) < 1000
    assert steps == sorted(set(steps))


def test_the_value_at_a_rung_is_heard_where_nobody_is_decided_upon_there(search: Search) -> None:
    """That of a later step had stood for it, by which the others were judged."""
    session = Following(steps=2000, rungs=(), kept=(3, 1501, 1503))
    listener = search(session.reporter)
    with autotune.run("train") as run:
        for step in range(1, 2001):
            run.report(step, loss=1.0 / step)
    listener.attend()
    heard = dict(session.heard)
    assert {3, 1501, 1503, 2000} <= set(heard) and heard[1501]["loss"] == 1 / 1501


@pytest.mark.parametrize("stride", [1, 2])
def test_what_comes_after_the_last_step_does_not_count(search: Search, stride: int) -> None:
    """A fast script that did not look at ``run.steps`` was judged by the last step that it made."""
    session = Following(steps=9)
    listener = search(session.reporter)
    with autotune.run("train") as run:
        for step in range(stride, 60, stride):
            run.report(step, loss=1.0 / step, rate=step)
    listener.attend()
    last = 9 // stride * stride
    assert session.heard[-1] == (last, {"loss": 1.0 / last, "rate": float(last)})
    assert listener.stopped is not None and listener.stopped.message == "all 9 steps are done"


def test_a_search_that_does_not_answer_is_waited_for_once(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def answers_nothing(link: Link, seconds: float) -> bool:
        waited.append(seconds)
        return await_answer(link, 0.0)

    await_answer = Link.await_answer
    monkeypatch.setattr(Link, "await_answer", answers_nothing)
    session = Following(steps=27, rungs=(1, 3, 9), pauses=True)
    listener = search(session.reporter)  # in this very process, so that nobody attends meanwhile
    with autotune.run("train") as run:
        for step in range(1, 28):
            run.report(step, loss=1.0 / step)
    listener.attend()
    assert len(waited) == 1
    assert {1, 3, 9, 27} <= {step for step, _ in session.heard}


def test_values_without_the_metric_go_with_the_next_report_that_has_it(search: Search) -> None:
    session = Following()
    listener = search(session.reporter)
    with autotune.run("train") as run:
        run.report(1, rate=7.0)
        run.report(1, loss=0.5)
        run.report(1, loss=0.4)  # the same step again: no further point of the curve
    listener.attend()
    assert session.heard == [(1, {"rate": 7.0, "loss": 0.5})]
    assert listener.heard.values == {"rate": 7.0, "loss": 0.4}


@pytest.mark.parametrize("value", ["low", "0.3", 10**400], ids=["text", "a number as text", "beyond a float"])
def test_a_metric_that_is_no_number_is_said_where_it_is_reported(search: Search, value: object) -> None:
    search()
    with pytest.raises(TypeError, match="metric 'loss' must be a number"), autotune.run("train") as run:
        run.report(1, loss=value)


def test_a_loss_that_is_missing_is_refused_whatever_is_reported_after_it(search: Search) -> None:
    search(Following().reporter)
    with pytest.raises(TypeError, match="metric 'loss' must be a number"), autotune.run("train") as run:
        run.report(1, loss=0.5)
        run.report(2, loss=None)
        run.report(3, loss=0.4)


def test_an_array_is_named_by_its_shape(search: Search) -> None:
    """Its numbers, on several lines, had left no room for the reason."""
    search()
    said = r"number, not ndarray of shape \(64, 1\): report its mean, or another single number$"
    with pytest.raises(TypeError, match=said), autotune.run("train") as run:
        run.report(1, loss=np.ones((64, 1)))


class PartOfAGraph:
    """As a tensor that requires a gradient: to make a number of it warns."""

    def detach(self) -> float:
        return 0.25

    def __float__(self) -> float:
        raise AssertionError("it is still part of a graph")


def test_a_loss_is_taken_out_of_its_graph(search: Search) -> None:
    listener = search()
    with autotune.run("train") as run:
        run.report(1, loss=PartOfAGraph())
    listener.attend()
    assert listener.heard.values == {"loss": 0.25}


MANY = {f"metric{number}": 1.0 for number in range(100_000)}


def test_a_report_that_is_too_large_is_said_and_left_out(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = search(Following().reporter)
    with autotune.run("train") as run:
        run.report(1, MANY, loss=3.0)
        run.report(3, MANY, loss=2.0)
        run.report(9, loss=1.0)
        assert run.dropped == 2
    listener.attend()
    assert (listener.heard.values, listener.heard.ended) == ({"loss": 1.0}, 1)
    [said] = capsys.readouterr().err.splitlines()
    assert "a report of 100001 metrics is too large and was not sent" in said


def test_a_result_that_is_too_large_is_said_and_the_run_ends(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = search(lr=0.5)
    with autotune.run("train") as run:
        run.knob("lr", default=0.1)
        run.report(1, loss=1.0)
        run.result(MANY)
    listener.attend()
    assert (listener.heard.values, listener.heard.ended) == ({"loss": 1.0}, 1)
    assert listener.heard.never_asked(["lr"]) == ""
    assert "a result of 100000 metrics is too large and was not sent" in capsys.readouterr().err


def test_the_defaults_of_a_script_are_kept_as_far_as_they_can_be_sent(search: Search) -> None:
    """A default may be anything; one that is no number or short text does not keep the run from ending."""
    kept = {"lr": 0.5, "width": 8, "kind": "adam", "bias": True}
    others = {"sizes": [1, 2], "weights": np.zeros(3), "none": None, "seed": 1 << 80, "text": "x" * 100_000}
    listener = search(**dict.fromkeys(kept | others, 1))
    with autotune.run("train") as run:
        for name, default in (kept | others).items():
            run.knob(name, default)
        run.report(1, loss=1.0)
    listener.attend()
    assert listener.heard.facts == {"own_defaults": kept}
    assert listener.heard.never_asked(list(kept | others)) == "" and listener.heard.ended == 1


def test_facts_are_sent_at_once_and_the_last_of_a_name_counts(search: Search) -> None:
    listener = search()
    with autotune.run("train") as run:
        run.fact("checkpoint", "a.pt")
        run.fact("rows", np.int64(512))
        run.fact("checkpoint", "b.pt")
        listener.attend()
        assert listener.heard.facts == {"checkpoint": "b.pt", "rows": 512}
        run.knob("lr", default=0.5)
    run.fact("late", 1)
    listener.attend()
    assert listener.heard.facts == {"checkpoint": "b.pt", "rows": 512, "own_defaults": {"lr": 0.5}}


def test_a_fact_that_cannot_be_kept_is_said_where_it_is_given(search: Search) -> None:
    search()
    with autotune.run("train") as run:
        with pytest.raises(TypeError, match="the fact 'model' must be JSON"):
            run.fact("model", object())
        for name in ("curve", "mistake", "own_defaults"):
            with pytest.raises(ValueError, match=f"'{name}' has a name of autotune's own"):
                run.fact(name, [])
        with pytest.raises(ValueError, match="the fact 'weights' is too large to be sent"):
            run.fact("weights", [0.5] * 100_000)
