"""Reports of a run, and how they end it: in this process, in a worker, from a program."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure import reports
from autotune.measure.commands.command import CommandRunner
from autotune.measure.loading.function import FunctionObjective
from autotune.measure.objective import Context, Objective
from autotune.measure.outcome import Outcome, Report
from autotune.measure.phases.runner import Runner
from autotune.measure.reports import ALL_HEARD, SILENT, Curve, Reporter, Stopped
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MeasureSettings, MetricSpec
from autotune.status import Status

METRICS = (MetricSpec("loss", "minimize"), MetricSpec("rate"), MetricSpec("size", at_most=5.0))
CURVE = Curve(steps=9, metric="loss", decide_at=(1, 3))
CONTEXT = Context({}, {}, Path())


class Session:
    """Hears what is reported, and ends the run at a step."""

    def __init__(self, end_at: int | None = None) -> None:
        self.end_at = end_at
        self.heard: list[tuple[int, bool]] = []

    def __call__(self, report: Report, waits: bool) -> str:
        self.heard.append((report.step, waits))
        return f"ended at {report.step}" if report.step == self.end_at else ""


class Training(Objective):
    """Does what it is told in ``measure``."""

    def __init__(self, run: Callable[[Reporter], Any]) -> None:
        super().__init__(CONTEXT)
        self.run = run

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        return self.run(self.report)


def follow(objective: Objective, session: Session, curve: Curve = CURVE) -> Outcome:
    runner = Runner(objective, METRICS, MeasureSettings())
    return runner.measure(lambda: Configuration({"x": 1}), 0, reporter=Reporter(curve, session))


def epochs(n: int, **more: float) -> Callable[[Reporter], None]:
    def run(report: Reporter) -> None:
        for step in range(1, n + 1):
            report(step, loss=1.0 / step, **more)

    return run


def test_a_run_is_one_reading_and_its_last_report_counts() -> None:
    session = Session()
    outcome = follow(Training(epochs(9, rate=3.0)), session)
    assert outcome.status is Status.OK and outcome.facts["step"] == 9 and outcome.facts["reports"] == 9
    assert outcome.metrics["loss"].value == 1 / 9 and outcome.metrics["rate"].value == 3.0
    assert len(outcome.readings) == 2
    assert session.heard == [(1, True), (2, False), (3, True), *((s, False) for s in range(4, 10))]


def test_what_a_run_returns_goes_before_what_it_reported() -> None:
    def run(report: Reporter) -> dict[str, float]:
        report(9, loss=0.5, rate=2.0)
        return {"loss": 0.25}

    outcome = follow(Training(run), Session())
    assert {name: e.value for name, e in outcome.metrics.items()} == {"loss": 0.25, "rate": 2.0}


def test_a_run_that_is_ended_is_pruned_with_its_last_values() -> None:
    cleaned = []

    def run(report: Reporter) -> None:
        try:
            epochs(9)(report)
        finally:
            cleaned.append(True)

    outcome = follow(Training(run), Session(end_at=3))
    assert outcome.status is Status.PRUNED and outcome.message == "ended at 3"
    assert outcome.facts["step"] == 3 and outcome.metrics["loss"].value == 1 / 3
    assert cleaned and not outcome.readings


def test_an_objective_that_swallows_the_end_is_ended_all_the_same() -> None:
    def run(report: Reporter) -> float:
        for step in range(1, 10):
            try:
                report(step, loss=1.0)
            except BaseException:  # noqa: BLE001 - what is not to be done
                continue
        return 0.0

    session = Session(end_at=1)
    outcome = follow(Training(run), session)
    assert outcome.status is Status.PRUNED and session.heard == [(1, True)]


def test_an_except_exception_is_not_in_the_way() -> None:
    def run(report: Reporter) -> None:
        for step in range(1, 10):
            try:
                report(step, loss=1.0)
            except Exception:  # noqa: BLE001 - what people do
                raise AssertionError from None

    assert follow(Training(run), Session(end_at=3)).status is Status.PRUNED


def test_past_the_whole_resource_a_run_is_complete() -> None:
    outcome = follow(Training(epochs(1000)), Session())
    assert outcome.status is Status.OK and outcome.metrics["loss"].value == 1 / 9


def test_a_loss_that_is_no_number_ends_the_run_as_diverged() -> None:
    def run(report: Reporter) -> None:
        report(1, loss=1.0)
        report(2, loss=math.nan)
        raise AssertionError

    outcome = follow(Training(run), Session())
    assert outcome.status is Status.DIVERGED and "nan at step 2" in outcome.message


def test_bounds_are_for_complete_runs() -> None:
    assert follow(Training(epochs(9, size=6.0)), Session(end_at=3)).status is Status.PRUNED
    assert follow(Training(epochs(9, size=6.0)), Session()).status is Status.WRONG


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([(1, {"lost": 1.0})], "must bring the metric 'loss'; that of step 1 has lost"),
        ([(1, {})], "has nothing"),
        ([(2, {"loss": 1.0}), (2, {"loss": 1.0})], "step 2 after one of step 2"),
        ([(-1, {"loss": 1.0})], "report of step -1: steps only go up, from 0"),
        (
            [("1", {"loss": 1.0})],
            "must be a whole number, how many steps are done, not '1'",
        ),
        ([(1.5, {"loss": 1.0})], "done, not 1.5: report(step, loss=...)"),
        ([(1, {"loss": "low"})], "must be a number"),
        ([(1, 0.5)], "metrics have names, as in loss=0.5 or {'loss': 0.5}: got 0.5"),
    ],
)
def test_a_report_that_cannot_be_used_says_why(reports: list[tuple[Any, Any]], message: str) -> None:
    def run(report: Reporter) -> None:
        for step, metrics in reports:
            report(step, metrics)

    outcome = follow(Training(run), Session())
    assert outcome.status is Status.CRASHED and message in outcome.message


def test_a_run_that_reports_nothing_is_read_as_it_returns() -> None:
    outcome = follow(Training(lambda report: 0.5), Session())
    assert outcome.status is Status.OK and outcome.facts["reports"] == 0
    assert follow(Training(lambda report: None), Session()).status is Status.CRASHED


def test_steps_up_to_a_pause_are_not_decided_again() -> None:
    session = Session()
    follow(Training(epochs(9)), session, Curve(9, "loss", (1, 3), done=1))
    assert [step for step, waits in session.heard if waits] == [3]


def test_every_report_is_decided_where_there_are_no_rungs() -> None:
    session = Session()
    follow(Training(epochs(9)), session, Curve(9, "loss", None))
    assert [step for step, waits in session.heard if waits] == list(range(1, 9)), "but the last is not"


def test_steps_that_skip_rungs_are_decided_once() -> None:
    session = Session()

    def run(report: Reporter) -> None:
        for step in (0, 4, 8):
            report(np.int64(step), {"loss": np.float32(1.0)})

    follow(Training(run), session)
    assert session.heard == [(0, False), (4, True), (8, False)]


def test_a_report_that_was_not_heard_can_be_made_again() -> None:
    session = Session()

    def deaf_once(report: Report, waits: bool) -> str:
        if not session(report, waits) and len(session.heard) == 1:
            raise ConnectionError
        return ""

    reporter = Reporter(CURVE, deaf_once)
    with pytest.raises(ConnectionError):
        reporter(1, loss=1.0)
    reporter(1, loss=1.0)
    assert session.heard == [(1, True)] * 2 and reporter.count == 1


def test_a_silent_reporter_does_nothing() -> None:
    SILENT(1, loss="whatever")  # type: ignore[arg-type]
    assert SILENT.steps is None and SILENT.folder is None and SILENT.last is None


def test_a_forked_child_does_not_report() -> None:
    session = Session()
    reporter = Reporter(CURVE, session)
    child = os.fork()
    if child == 0:
        reporter(1, loss=1.0)
        os._exit(len(session.heard))
    assert os.waitpid(child, 0)[1] == 0
    reporter(1, loss=1.0)
    assert len(session.heard) == 1


def test_the_folder_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    reporter = Reporter(CURVE, Session(), tmp_path / "checkpoints" / "abc")
    assert not (tmp_path / "checkpoints").exists()
    assert reporter.folder is not None and reporter.folder.is_dir() and reporter.steps == 9


def test_a_run_may_be_paused_where_it_waits() -> None:
    asked: list[int] = []

    def run(report: Reporter) -> None:
        for step in range(1, 10):
            if report.may_pause(step):
                asked.append(step)
            report(step, loss=1.0)

    follow(Training(run), Session(), Curve(9, "loss", (1, 3), pauses=True))
    assert asked == [1, 3]
    follow(Training(run), Session(), Curve(9, "loss", (1, 3), done=1, pauses=True))
    assert asked == [1, 3, 3]
    follow(Training(run), Session(), Curve(9, "loss", (1, 3)))
    assert asked == [1, 3, 3], "whoever is stopped does not go on"
    assert not SILENT.may_pause(1)


def test_stopped_is_no_exception_that_people_catch() -> None:
    assert not issubclass(Stopped, Exception)


# -- functions -----------------------------------------------------------------------------------


def test_a_function_asks_for_the_reporter_by_name() -> None:
    def train(x: int, report: Reporter) -> None:
        assert x == 1
        epochs(report.steps or 0)(report)

    objective = FunctionObjective(CONTEXT, train)
    assert objective.problems(["x"]) == []
    assert follow(objective, Session()).metrics["loss"].value == 1 / 9
    assert objective.report is SILENT, "after the trial"


def test_a_function_of_the_whole_configuration_can_report() -> None:
    def train(config: Configuration, report: Reporter) -> None:
        report(9, loss=float(config["x"]))

    assert follow(FunctionObjective(CONTEXT, train), Session()).metrics["loss"].value == 1.0


def test_a_knob_called_report_is_a_knob() -> None:
    def train(x: int, report: int) -> float:
        return float(report)

    objective = FunctionObjective(CONTEXT, train)
    assert objective.measure(Configuration({"x": 1, "report": 7}), np.random.default_rng(0)) == 7.0


# -- programs ------------------------------------------------------------------------------------

PROGRAM = """#!/bin/sh
echo '{"step": 1, "loss": 0.9, "note": "text is left out"}'
echo 'some other line'
echo '{"loss": "no step, no report"}'
echo '{"step": 2.0, "loss": 0.8}'
echo "$AUTOTUNE_STEPS" > steps
echo '{"step": 3, "loss": 0.7}'
echo '{"step": 9, "loss": 0.5, "rate": 2}'
"""


def command(folder: Path, program: str = PROGRAM) -> CommandRunner:
    file = folder / "train.sh"
    file.write_text(program)
    file.chmod(0o755)
    context = Context({}, {}, folder / "cache")
    return CommandRunner(CommandObjective(("./train.sh", "{x}"), folder), context, METRICS[:2])


def test_a_program_reports_by_lines_of_json(tmp_path: Path) -> None:
    session = Session()
    outcome = follow(command(tmp_path), session)
    assert outcome.status is Status.OK and outcome.metrics["loss"].value == 0.5
    assert [step for step, _ in session.heard] == [1, 2, 3, 9]
    assert (tmp_path / "steps").read_text() == "9\n"


def test_a_program_is_killed_at_the_end_of_its_run(tmp_path: Path) -> None:
    endless = PROGRAM + "sleep 600\n"
    outcome = follow(command(tmp_path, endless), Session(end_at=3))
    assert outcome.status is Status.PRUNED and outcome.facts["step"] == 3
    assert outcome.phases["measure"] < 300


def test_a_program_whose_report_lacks_the_metric_is_told(tmp_path: Path) -> None:
    outcome = follow(command(tmp_path, """#!/bin/sh\necho '{"step": 1, "los": 1}'\n"""), Session())
    assert outcome.status is Status.CRASHED
    assert outcome.message == "every report must bring the metric 'loss'; there is los"


def test_without_a_policy_a_step_is_a_metric_like_any_other(tmp_path: Path) -> None:
    runner = command(tmp_path)
    assert runner.measure(runner.load(Configuration({})), np.random.default_rng(0))["loss"] == 0.5


def test_what_a_thread_says_after_its_run_is_not_heard() -> None:
    session, left = Session(), []

    def run(report: Reporter) -> None:
        report(1, loss=0.5)
        left.append(report)

    assert follow(Training(run), session).status is Status.OK
    left[0](2, loss=-100.0)  # in whatever thread: the next trial would be given it
    assert session.heard == [(1, True)]


# -- thinned ---------------------------------------------------------------------------------------


class Clock:
    """Advances by ``tick`` whenever it is asked."""

    now = tick = 0.0

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(reports, "monotonic", made)
    return made


def thinned(session: Callable[[Report, bool], str], curve: Curve) -> Reporter:
    return Reporter(curve, session, thinned=True)


FIRST = [(step, False) for step in range(1, ALL_HEARD + 1)]


def test_a_fast_loop_is_heard_where_it_counts(clock: Clock) -> None:
    """A loop of three seconds had written down 69,457 reports."""
    session = Session()
    reporter = thinned(session, Curve(10_000, "loss", (300,), rungs=(300, 900)))
    runner = Runner(Training(epochs(10_000)), METRICS, MeasureSettings())
    outcome = runner.measure(lambda: Configuration({"x": 1}), 0, reporter=reporter)
    assert session.heard == [*FIRST, (300, True), (900, False), (10_000, False)]
    assert outcome.facts["reports"] == 10_000 and outcome.metrics["loss"].value == 1e-4


def test_others_are_heard_every_tenth_of_a_second(clock: Clock) -> None:
    session = Session()
    reporter = thinned(session, Curve(1000, "loss", ()))
    clock.tick = 0.03125  # which a float holds
    epochs(ALL_HEARD + 12)(reporter)
    assert session.heard == [*FIRST, *((ALL_HEARD + more, False) for more in (4, 8, 12))]


def test_the_last_one_is_heard_with_the_metrics_that_were_not(clock: Clock) -> None:
    heard: list[Report] = []
    reporter = thinned(lambda report, waits: str(heard.append(report) or ""), Curve(1000, "loss", ()))
    epochs(ALL_HEARD)(reporter)
    reporter(ALL_HEARD + 1, loss=0.5, rate=3.0)
    reporter(ALL_HEARD + 2, loss=0.25)
    assert reporter.last is not None and dict(reporter.last.metrics) == {"loss": 0.25}
    for _ in range(2):
        reporter.close()
        (last,) = heard[ALL_HEARD:]
        assert (last.step, dict(last.metrics)) == (ALL_HEARD + 2, {"rate": 3.0, "loss": 0.25})


def test_a_run_that_raises_is_heard_to_its_end(clock: Clock) -> None:
    def run(report: Reporter) -> None:
        epochs(ALL_HEARD + 5)(report)
        raise ValueError

    session = Session()
    reporter = thinned(session, Curve(1000, "loss", ()))
    runner = Runner(Training(run), METRICS, MeasureSettings())
    outcome = runner.measure(lambda: Configuration({"x": 1}), 0, reporter=reporter)
    assert outcome.status is Status.CRASHED and session.heard == [*FIRST, (ALL_HEARD + 5, False)]


def test_one_that_is_no_number_is_heard(clock: Clock) -> None:
    session = Session()
    reporter = thinned(session, Curve(1000, "loss", ()))
    epochs(ALL_HEARD + 5)(reporter)
    with pytest.raises(Stopped):
        reporter(200, loss=math.nan)
    assert session.heard == [*FIRST, (200, False)]


def test_where_each_is_decided_upon_each_is_heard(clock: Clock) -> None:
    session = Session()
    epochs(300)(thinned(session, Curve(300, "loss", None)))
    assert session.heard == [*((step, True) for step in range(1, 300)), (300, False)]
