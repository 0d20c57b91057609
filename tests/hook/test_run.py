"""The hook in a training script: its knobs, what it reports, and how it is told to stop."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import autotune
from autotune.errors import shorten_middle
from autotune.hook.runs.link import Link
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import VARIABLE
from autotune.measure.stopped import Stopped
from autotune.session.caveats import MOST_OF_A_MESSAGE
from tests.hook.listening import Following, Search

# -- where nobody is tuning ------------------------------------------------------------------------


def test_without_a_search_knobs_are_their_defaults_and_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with autotune.run("train") as run:
        assert run.knob("lr", default=1e-3) == 1e-3
        assert run.knob("width", 16) == 16
        run.report(1, loss=object())
        run.result(loss=1.0)
        run.fact("model", object())
        assert not run.should_stop and not run.may_pause(1)
    assert (run.source, run.searching, run.steps, run.seed, run.folder, run.dropped) == (
        "default", False, None, None, None, 0,
    )  # fmt: skip
    assert run.describe() == "lr = 0.001  (default)\nwidth = 16  (default)"


def test_that_a_knob_has_two_defaults_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with autotune.run("train") as run:
        assert [run.knob("lr", 0.1), run.knob("lr", 0.2), run.knob("lr", 0.3)] == [0.1, 0.2, 0.3]
        run.knob("width", 16), run.knob("width", 16.0)
        run.knob("weights", numpy.zeros(2)), run.knob("weights", numpy.ones(2))
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the knob 'lr' is asked for with the defaults 0.1 and 0.2" in said


@pytest.mark.parametrize(
    ("rank", "ranks", "says"),
    [
        (-1, None, "rank is -1"),
        (2, 2, "rank is 2 of 2"),
        (0, 0, "rank is 0 of 0"),
        (1.0, 2, "rank is 1.0 of 2"),
    ],
)
def test_a_rank_that_is_none_is_refused_before_anything_runs(rank: Any, ranks: Any, says: str) -> None:
    with pytest.raises(autotune.InputError, match=re.escape(says)):
        autotune.run("train", rank=rank, ranks=ranks)


LIGHT = """
import sys
before = set(sys.modules)
import autotune
with autotune.run("train") as run:
    run.knob("lr", default=0.1)
    run.report(1, loss=1.0)
    run.should_stop
mine = {name for name in set(sys.modules) - before if "." not in name or name.startswith("autotune.")}
foreign = {name for name in mine if name.partition(".")[0] not in {*sys.stdlib_module_names, "autotune"}}
print(*sorted(foreign), *sorted(n for n in mine if n.startswith("autotune.measure")))
"""


def loaded(script: str) -> list[str]:
    """What a fresh interpreter prints, word by word."""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()


def test_without_a_search_only_the_standard_library_and_the_hook_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert loaded(LIGHT) == []


def test_under_a_search_only_the_standard_library_is_loaded(search: Search) -> None:
    listener = search(lr=0.5)
    light = {"autotune.measure", "autotune.measure.commands", "autotune.measure.commands.run_protocol"}
    assert set(loaded(LIGHT)) <= light
    listener.attend()
    assert listener.heard.values == {"loss": 1.0}


# -- knobs -----------------------------------------------------------------------------------------


def test_a_search_gives_the_knobs_in_the_type_of_their_defaults(search: Search) -> None:
    search()
    with autotune.run("train") as run:
        assert run.searching
        assert run.knob("lr", default=1) == 0.25  # no integer: it stays what it is
        width = run.knob("width", default=16)
        assert (width, type(width)) == (64, int)
        assert run.knob("nesterov", default=True) is False
        assert run.knob("kind", default="sgd") == "adam"
        assert run.knob("order", default=("b", "a")) == ("a", "b")
        assert run.knob("layers", default=2) == 2
    assert run.source == "search, default"
    assert "width = 64  (search; default 16)" in run.describe()
    assert "layers = 2  (default)" in run.describe()


def test_an_integer_searched_for_a_float_is_a_float(search: Search) -> None:
    search(rate=1)
    with autotune.run("train") as run:
        assert isinstance(run.knob("rate", default=0.5), float)


@pytest.mark.parametrize(
    ("text", "default"), [("max-autotune", False), ("16", None), ("16", 8), ("[1, 2]", (3,)), ("1e-3", 0.1)]
)
def test_a_text_that_is_searched_stays_one(text: str, default: Any, search: Search) -> None:
    """It is a choice of the space beside others, ``[false, max-autotune]``, and not the line of a shell."""
    search(mode=text)
    with autotune.run("train") as run:
        assert run.knob("mode", default=default) == text


# -- stopping --------------------------------------------------------------------------------------


def train(run: Any, steps: int, listener: RunListener) -> Iterator[int]:
    """A training beside which the worker gets its turn after each step."""
    for step in range(1, steps + 1):
        run.report(step, loss=1.0)
        listener.attend()
        yield step


def test_a_report_ends_a_script_that_does_not_ask(search: Search) -> None:
    session = Following(stop_at=3)
    listener = search(session.reporter)
    done = []
    with autotune.run("train") as run:
        done += train(run, 27, listener)
        raise AssertionError("it went on")  # pragma: no cover
    listener.attend()
    assert run.should_stop
    assert listener.stopped is not None
    assert listener.stopped.message == "behind the others"
    assert session.heard[-1][0] == 3
    assert listener.heard.failed == {}


@pytest.mark.parametrize(
    ("pauses", "done", "expected"), [(True, 0, [2, 4, 10]), (True, 3, [10]), (False, 0, [])]
)
def test_a_script_hears_where_it_may_be_paused(
    pauses: bool, done: int, expected: list[int], search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saves its checkpoint at no other step, nor at a rung that it has left behind."""
    monkeypatch.setattr(Link, "await_answer", lambda link, seconds: True)  # nobody attends meanwhile
    search(Following(steps=27, rungs=(1, 3, 9), pauses=pauses, done=done).reporter)
    with autotune.run("train") as run:
        asked = []
        for step in range(2 if not done else 4, 28, 2):
            asked += [step] if run.may_pause(step) else []
            run.report(step, loss=1.0)
    assert asked == expected


def test_a_script_that_asks_is_not_interrupted(search: Search) -> None:
    session = Following(stop_at=3)
    listener = search(session.reporter)
    with autotune.run("train") as run:
        for step in train(run, 27, listener):  # noqa: B007
            if run.should_stop:
                break
        run.report(step + 1, loss=2.0)
        saved = True
    assert (step, saved) == (3, True)


@pytest.mark.parametrize("loss", [math.nan, -math.inf, numpy.float32(math.nan), numpy.float16(math.inf)])
def test_a_loss_that_is_no_number_ends_the_trial_at_once(search: Search, loss: Any) -> None:
    session = Following()
    listener = search(session.reporter)
    with autotune.run("train") as run:
        run.report(1, loss=1.0)
        run.report(2, loss=loss)
        listener.attend()
        assert run.should_stop
    assert listener.stopped is not None
    assert listener.stopped.status == "diverged"


def test_a_program_that_does_not_end_when_told_is_ended(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.measure.commands.run_listener.GRACE_SECONDS", 0.0)
    session = Following(stop_at=1)
    listener = search(session.reporter)
    assert listener.timeout() is None
    with autotune.run("train") as run:
        run.report(1, loss=1.0)
        with pytest.raises(Stopped, match="behind the others"):
            while True:
                listener.attend()
    assert listener.timeout() == 0


# -- several runs ----------------------------------------------------------------------------------


def test_a_run_inside_another_is_inert_and_says_so(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = search(lr=0.5)
    with autotune.run("outer") as outer:
        with autotune.run("inner") as inner:
            assert inner.knob("lr", default=0.1) == 0.1
            inner.report(1, loss=9.0)
            assert not inner.should_stop
        assert outer.knob("lr", default=0.1) == 0.5
        outer.report(1, loss=1.0)
    listener.attend()
    assert listener.heard.values == {"loss": 1.0}
    assert "the run 'inner' is inside another one" in capsys.readouterr().err


def test_a_run_behind_another_of_the_same_trial_says_so(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of folds the value was that of the last and the curve that of the first, without a word."""
    listener = search(lr=0.5)
    for fold in range(2):
        with autotune.run("folds") as run:
            run.report(1, loss=1.0 + fold)
    listener.attend()
    assert listener.heard.values == {"loss": 2.0}
    said = capsys.readouterr().err
    assert said.count("is opened after another one of the same trial") == 1


def test_a_rank_above_0_that_is_alone_is_told_that_nobody_reports(
    search: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launcher's variables had been left in a shell."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    listener = search(lr=0.5)
    with autotune.run("train") as run:
        run.report(1, loss=1.0)
    listener.attend()
    assert listener.heard.runs == 0
    assert "'train' is of rank 1 of 2, and only rank 0 reports" in capsys.readouterr().err
    with autotune.run("train", rank=0, ranks=2), autotune.run("train", rank=1, ranks=2):
        pass
    assert capsys.readouterr().err == ""


def test_a_metric_is_named_by_a_text(search: Search) -> None:
    search(lr=0.5)
    with pytest.raises(TypeError, match=r"named by a text, not by \('a', 1\)"), autotune.run("train") as run:
        run.report(1, {("a", 1): 2.0})


def test_a_flag_stays_one_for_who_knows_the_goals(search: Search) -> None:
    """It had been 1 before anybody could refuse it."""
    listener = search(lr=0.5)
    with autotune.run("train") as run:
        run.report(1, loss=True, accurate=numpy.bool_(False))
    listener.attend()
    assert listener.heard.values == {"loss": True, "accurate": False}
    assert all(isinstance(value, bool) for value in listener.heard.values.values())


@pytest.mark.parametrize("metrics", [0.0, 0.5])
def test_metrics_without_names_are_said_to_have_none(search: Search, metrics: Any) -> None:
    """It was TypeError: 'float' object is not a mapping; and a loss of 0 was no metric at all."""
    search(lr=0.5)
    for give in (lambda run: run.report(1, metrics), lambda run: run.result(metrics)):
        with autotune.run("train") as run, pytest.raises(TypeError, match=rf"have names.* got {metrics}$"):
            give(run)


@pytest.mark.parametrize("step", [1.5, "3", None])
def test_a_step_that_is_no_whole_number_is_said_to_be_the_step(search: Search, step: Any) -> None:
    search(lr=0.5)
    with (
        autotune.run("train") as run,
        pytest.raises(
            TypeError, match=rf"^the step of a report must be a whole number.* not {re.escape(repr(step))}: "
        ),
    ):
        run.report(step, loss=1.0)


def test_a_second_run_after_the_first_is_tuned_as_well(search: Search) -> None:
    session = Following()
    listener = search(session.reporter, lr=0.5, width=8)
    with autotune.run("first") as run:
        assert run.knob("lr", default=0.1) == 0.5
        run.report(1, loss=1.0)
        run.report(2, loss=0.9)
    with autotune.run("second") as run:
        assert run.knob("width", default=2) == 8
        run.report(1, loss=0.8)
    listener.attend()
    assert (listener.heard.runs, listener.heard.ended) == (2, 2)
    assert listener.heard.values == {"loss": 0.8}
    assert [step for step, _ in session.heard] == [1]  # the second's steps do not continue the curve
    assert listener.heard.never_asked(["lr", "width"]) == ""


def test_a_run_without_with_is_closed_by_hand(search: Search) -> None:
    listener = search()
    run = autotune.run("train")
    run.report(1, loss=1.0)
    run.close()
    run.close()
    run.report(2, loss=5.0)
    listener.attend()
    assert listener.heard.ended == 1
    assert listener.heard.values == {"loss": 1.0}


# -- what the search is told in the end ------------------------------------------------------------


def test_knobs_that_were_never_asked_for_are_named(search: Search) -> None:
    listener = search(learning_rate=0.5, width=8)
    with autotune.run("train") as run:
        run.knob("learn_rate", default=0.1)
        run.knob("width", default=1)
    listener.attend()
    said = listener.heard.never_asked(["learning_rate", "width"])
    assert "never asked for the knob 'learning_rate'" in said
    assert "did you mean 'learn_rate'" in said
    assert listener.heard.never_asked(["width"]) == ""


def test_what_to_do_about_a_knob_that_was_not_asked_for_is_said_where_there_are_many(search: Search) -> None:
    listener = search(learning_rate=0.5)
    with autotune.run("train") as run:
        for number in range(100):
            run.knob(f"knob_number_{number}", default=1)
    listener.attend()
    said = shorten_middle(listener.heard.never_asked(["learning_rate"]), MOST_OF_A_MESSAGE)
    assert said.endswith("give it a 'when'") and "run.knob('learning_rate', default)" in said


class OutOfMemoryError(RuntimeError):
    """As PyTorch has it."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OutOfMemoryError("2 GiB"), "out-of-memory"),
        (MemoryError(), "out-of-memory"),
        (autotune.Infeasible("too wide"), "infeasible"),
        (autotune.Diverged("inf"), "diverged"),
        (autotune.Lost("no server"), "lost"),
        (KeyError("x"), None),
    ],
)
def test_exceptions_are_typed_ends(error: Exception, status: str | None, search: Search) -> None:
    listener = search()
    with pytest.raises(type(error)), autotune.run("train"):
        raise error
    listener.attend()
    failure = listener.heard.failure()
    assert (failure.status if failure else None) == status


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_without_a_text_stays_what_it_is(search: Search) -> None:
    listener = search()
    with pytest.raises(Unspeakable), autotune.run("train") as run:
        run.report(1, loss=1.0)
        raise Unspeakable
    listener.attend()
    assert listener.heard.ended == 1
    assert listener.heard.failed["message"] == "Unspeakable: (its text cannot be shown: RuntimeError)"


def test_a_metric_that_is_no_number_does_not_hide_what_ended_the_run(search: Search) -> None:
    listener = search()
    with pytest.raises(KeyError), autotune.run("train") as run:
        run.result(loss=1.0, best="none")
        raise KeyError("x")
    listener.attend()
    assert listener.heard.values == {"loss": 1.0}
    assert listener.heard.failed["message"] == "KeyError: 'x'"


def test_a_run_whose_result_is_no_number_is_closed(search: Search) -> None:
    search(lr=0.5)
    with pytest.raises(TypeError, match="metric 'loss' must be a number"), autotune.run("first") as run:
        run.result(loss="low")
    with autotune.run("second") as run:  # not inside the first
        assert run.searching and run.knob("lr", default=0.1) == 0.5
