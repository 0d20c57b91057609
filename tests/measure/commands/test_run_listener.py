"""Commands whose program opens ``autotune.run``: real processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.facts import OWN_DEFAULTS
from autotune.measure.objective import Context, Diverged, Infeasible, OutOfMemory
from autotune.measure.outcome import Outcome, Report
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import Sample
from autotune.measure.reports import Curve, Reporter
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MeasureSettings, MetricSpec
from autotune.status import Status

METRICS = (MetricSpec("loss", "minimize"), MetricSpec("rate"))
RNG = np.random.default_rng(0)


def command(folder: Path, script: str, *arguments: str) -> CommandRunner:
    (folder / "train.py").write_text(script)
    context = Context({}, {}, folder / "cache")
    return CommandRunner(CommandObjective((sys.executable, "train.py", *arguments), folder), context, METRICS)


def measure(objective: CommandRunner, **knobs: float) -> dict[str, float]:
    measured = objective.measure(objective.load(Configuration(knobs)), RNG)
    return dict(measured.values if isinstance(measured, Sample) else measured)


def follow(objective: CommandRunner, curve: Curve, hear: Callable[[Report, bool], str]) -> Outcome:
    runner = Runner(objective, METRICS, MeasureSettings(), curve=curve)
    return runner.measure(lambda: Configuration({"lr": 0.5}), 1, reporter=Reporter(curve, hear))


TRAIN = """
import os, sys, time
import autotune
with autotune.run("train") as run:
    lr = run.knob("lr", default=0.1)
    for step in range(1, (run.steps or 5) + 1):
        run.report(step, loss=lr / step)
        time.sleep(0.002)
    run.result(rate=float(run.seed is not None and run.folder.is_dir()))
"""


def test_a_command_without_placeholders_has_its_knobs_and_metrics_by_the_hook(tmp_path: Path) -> None:
    assert measure(command(tmp_path, TRAIN), lr=0.5) == {"loss": 0.1, "rate": 1.0}


def test_the_facts_that_a_run_gives_are_the_trials(tmp_path: Path) -> None:
    objective = command(tmp_path, TRAIN + "    run.fact('kernel', {'tile': run.knob('lr', 0.1)})\n")
    measured = objective.measure(objective.load(Configuration({"lr": 0.5})), RNG)
    assert isinstance(measured, Sample)
    assert measured.facts == {"kernel": {"tile": 0.5}, OWN_DEFAULTS: {"lr": 0.1}}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("raise RuntimeError('too wide')", Status.CRASHED),
        ("raise MemoryError", Status.OUT_OF_MEMORY),
        ("raise autotune.Infeasible('too wide')", Status.INFEASIBLE),
        ("run.report(9, loss=float('nan'))", Status.DIVERGED),
        ("os.abort()", Status.CRASHED),
        ("os._exit(78)", Status.INFEASIBLE),
        ("os._exit(75)", Status.LOST),
    ],
)
def test_the_facts_that_a_run_gave_stay_with_a_trial_that_fails(
    tmp_path: Path, end: str, status: Status
) -> None:
    """They may say why it did."""
    objective = command(
        tmp_path, TRAIN.replace("    for", f"    run.fact('path', 'wide')\n    {end}\n    for")
    )
    runner = Runner(objective, METRICS, MeasureSettings())
    outcome = runner.measure(lambda: Configuration({"lr": 0.5}), 1)
    assert outcome.status is status and outcome.facts["path"] == "wide"


def test_facts_are_passed_on_before_the_run_ends(tmp_path: Path) -> None:
    """Whoever kills it at its limit then knows them."""
    objective = command(tmp_path, TRAIN + "    run.fact('path', 'wide')\n    run.fact('rows', 3)\n")
    noted: list[Mapping[str, object]] = []
    objective.note_facts = noted.append
    measure(objective, lr=0.5)
    assert noted == [{"path": "wide"}, {"rows": 3}]


def test_what_a_run_reported_stands_before_what_was_printed(tmp_path: Path) -> None:
    printed = TRAIN + """print('{"step": 1, "loss": 77, "rate": 3}')\n"""
    assert measure(command(tmp_path, printed), lr=0.5) == {"loss": 0.1, "rate": 1.0}


def test_a_knob_that_was_never_asked_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandCrashed, match=r"never asked for the knob 'width' \(it asked for: lr\)"):
        measure(command(tmp_path, TRAIN), lr=0.5, width=3)


def test_a_knob_that_is_an_argument_need_not_be_asked_for(tmp_path: Path) -> None:
    assert measure(command(tmp_path, TRAIN, "--width={width}"), lr=0.5, width=3)["loss"] == 0.1


def test_a_program_without_the_hook_is_as_it_was(tmp_path: Path) -> None:
    assert measure(command(tmp_path, """print('{"loss": 2}')""", "{lr}"), lr=0.5) == {"loss": 2.0}


def test_memory_that_runs_out_is_no_crash(tmp_path: Path) -> None:
    script = TRAIN.replace("    for", "    raise MemoryError('9 GiB')\n    for")
    with pytest.raises(OutOfMemory, match="MemoryError: 9 GiB"):
        measure(command(tmp_path, script), lr=0.5)


CAUGHT = """
import autotune
try:
    with autotune.run("train") as run:
        run.knob("lr", default=0.1)
        run.report(1, loss=0.5)
        raise ERROR
except BaseException as error:
    print("training failed:", error)
"""


@pytest.mark.parametrize(
    ("error", "signal", "says"),
    [
        ("ValueError('too wide')", CommandCrashed, "ValueError: too wide: it ended the run, and the program"),
        ("RuntimeError('CUDA out of memory. Tried 2 GiB')", OutOfMemory, "CUDA out of memory"),
        ("MemoryError", OutOfMemory, "MemoryError"),
        ("autotune.Infeasible('too wide')", Infeasible, "too wide"),
        ("autotune.Diverged('inf')", Diverged, "inf"),
    ],
)
def test_an_error_that_left_the_run_counts_where_the_program_catches_it_as_well(
    tmp_path: Path, error: str, signal: type[Exception], says: str
) -> None:
    """Each was `ok` with the loss that it had reported before, and might have won."""
    with pytest.raises(signal, match=says):
        measure(command(tmp_path, CAUGHT.replace("ERROR", error)), lr=0.5)


@pytest.mark.parametrize("end", ["SystemExit(0)", "GeneratorExit"])
def test_what_ends_a_run_without_an_error_is_no_failure(tmp_path: Path, end: str) -> None:
    assert measure(command(tmp_path, CAUGHT.replace("ERROR", end)), lr=0.5) == {"loss": 0.5}


def test_of_several_runs_the_last_decides(tmp_path: Path) -> None:
    """A script may try again with smaller batches."""
    script = CAUGHT.replace("ERROR", "MemoryError") + TRAIN
    assert measure(command(tmp_path, script), lr=0.5)["loss"] == 0.1


LEFT = TRAIN.replace("    run.result", "    os._exit(0)\n    run.result")


def test_what_was_reported_last_is_unknown_where_the_run_did_not_end(tmp_path: Path) -> None:
    """Of reports in one moment only the first is sent at once."""
    with pytest.raises(CommandCrashed, match="its run did not end"):
        measure(command(tmp_path, LEFT), lr=0.5)
    again = TRAIN.replace("    run.result", "    if os.fork() == 0: os._exit(0)\n    run.result")
    assert measure(command(tmp_path, again), lr=0.5)["loss"] == 0.1


def test_the_last_step_of_a_trial_is_known_whether_the_run_ends_or_not(tmp_path: Path) -> None:
    outcome = follow(command(tmp_path, LEFT), Curve(9, "loss", (1, 3)), lambda r, waits: "")
    assert outcome.status is Status.OK and outcome.metrics["loss"].value == 0.5 / 9


def test_a_missing_metric_names_those_that_were_reported(tmp_path: Path) -> None:
    with pytest.raises(
        CommandCrashed, match="no metric 'loss' among those that its run reported; there is los"
    ):
        measure(command(tmp_path, TRAIN.replace("loss=", "los=")), lr=0.5)


def test_a_run_that_reported_nothing_is_told_to(tmp_path: Path) -> None:
    silent = TRAIN.replace("(run.steps or 5)", "0").replace("run.result(", "print(")
    with pytest.raises(CommandCrashed, match=r"its run reported no metric: call run\.report\(step"):
        measure(command(tmp_path, silent.replace("rate=", "")), lr=0.5)


@pytest.mark.parametrize("last", ["(run.steps or 5)", "50"], ids=["ends by itself", "is ended"])
def test_a_complete_trial_has_the_defaults_of_its_script(tmp_path: Path, last: str) -> None:
    more = "default=0.1), run.knob('long', 'x' * 300), run.knob('huge', 10**9999), run.knob('layers', [8])[0]"
    script = TRAIN.replace("default=0.1)", more).replace("lr = run", "lr, *_ = run")
    script = script.replace("(run.steps or 5)", last)
    outcome = follow(command(tmp_path, script), Curve(9, "loss", (1, 3)), lambda r, waits: "")
    assert outcome.status is Status.OK and outcome.facts[OWN_DEFAULTS] == {"lr": 0.1}


def test_reports_are_heard_and_the_run_is_complete(tmp_path: Path) -> None:
    heard: list[int] = []

    def hear(report: Report, waits: bool) -> str:
        heard.append(report.step)
        return ""

    printing = TRAIN.replace("time.sleep", """print('{"step": 1, "loss": 9}'); time.sleep""")
    outcome = follow(command(tmp_path, printing), Curve(9, "loss", (1, 3)), hear)
    assert outcome.status is Status.OK
    assert outcome.metrics["loss"].value == 0.5 / 9
    assert {1, 3, 9} <= set(heard)


@pytest.mark.parametrize("pause", ["0.002", "0"])
def test_a_program_that_goes_on_is_judged_by_its_last_step(tmp_path: Path, pause: str) -> None:
    script = TRAIN.replace("(run.steps or 5) + 1", "60").replace("0.002", pause)
    outcome = follow(command(tmp_path, script), Curve(9, "loss", (1, 3)), lambda r, waits: "")
    assert outcome.status is Status.OK
    assert (outcome.facts["step"], outcome.metrics["loss"].value) == (9, 0.5 / 9)


def test_a_program_that_counts_otherwise_is_told_so(tmp_path: Path) -> None:
    """It had ended as ``ok``, with no value."""
    script = TRAIN.replace("run.report(step", "run.report(1000 * step")
    outcome = follow(command(tmp_path, script), Curve(9, "loss", (1, 3)), lambda r, waits: "")
    assert outcome.status is Status.CRASHED
    assert "the first report is of step 1000, and a complete trial has 9" in outcome.message


def test_a_program_is_told_to_end_and_may_save_before_it_does(tmp_path: Path) -> None:
    script = TRAIN + "open('saved', 'w').write(str(step))\n"
    endless = script.replace("0.002", "0.02").replace("(run.steps or 5)", "10**9")
    outcome = follow(command(tmp_path, endless), Curve(27, "loss", (1, 3)), lambda r, waits: "slow" * waits)
    assert outcome.status is Status.PRUNED
    assert outcome.facts["step"] == 1
    assert int((tmp_path / "saved").read_text()) >= 1


def test_at_a_rung_the_search_looks_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.measure.commands.run_listener.LOOK_SECONDS", 3600.0)
    endless = TRAIN.replace("0.002", "0.02").replace("(run.steps or 5)", "10**9")
    outcome = follow(command(tmp_path, endless), Curve(27, "loss", (3, 9)), lambda r, waits: "slow" * waits)
    assert (outcome.status, outcome.facts["step"]) == (Status.PRUNED, 3)


@pytest.mark.parametrize("hint", ["if run.should_stop: break", "pass"], ids=["asks", "is interrupted"])
def test_a_training_that_is_paused_does_not_run_ahead_of_its_checkpoint(tmp_path: Path, hint: str) -> None:
    script = TRAIN.replace("(run.steps or 5)", "10**9").replace("time.sleep(0.002)", hint)
    saving = script.replace("run.report(", "open('saved', 'w').write(str(step)); run.report(")
    curve = Curve(27, "loss", (3, 9), pauses=True)
    outcome = follow(command(tmp_path, saving), curve, lambda r, waits: "behind" * (r.step == 9))
    assert (outcome.status, outcome.facts["step"]) == (Status.PRUNED, 9)
    assert int((tmp_path / "saved").read_text()) == 9


def test_a_program_that_hears_nothing_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.measure.commands.run_listener.GRACE_SECONDS", 0.0)
    deaf = TRAIN.replace("time.sleep(0.002)", "time.sleep(600)")
    began = time.monotonic()
    outcome = follow(command(tmp_path, deaf), Curve(27, "loss", (1, 3)), lambda r, waits: "slow" * waits)
    assert outcome.status is Status.PRUNED
    assert time.monotonic() - began < 300


def test_a_diverging_loss_ends_the_run(tmp_path: Path) -> None:
    script = TRAIN.replace("loss=lr / step", "loss=float('inf')").replace("(run.steps or 5)", "10**9")
    outcome = follow(command(tmp_path, script), Curve(27, "loss", (1, 3)), lambda r, waits: "")
    assert outcome.status is Status.DIVERGED


@pytest.mark.parametrize("polite", ["; run.should_stop and sys.exit()", ""])
@pytest.mark.parametrize("lost", ["step >= 3", "step == 3"])
def test_a_diverging_loss_ends_a_run_that_nobody_stops_early(tmp_path: Path, polite: str, lost: str) -> None:
    """Such a training took its whole time."""
    script = TRAIN.replace("lr / step", f"float('nan') if {lost} else lr / step").replace("or 5", "or 1000")
    script = script.replace("0.002)", f"0.005){polite}") + "if step == 1000: open('whole', 'w')\n"
    with pytest.raises(Diverged, match=r"loss is nan at step 3"):
        measure(command(tmp_path, script), lr=0.5)
    assert not (tmp_path / "whole").exists()


def test_nothing_is_left_of_a_run(tmp_path: Path) -> None:
    measure(command(tmp_path, TRAIN), lr=0.5)
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


def test_a_path_of_any_length_will_do(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    assert measure(command(deep, TRAIN), lr=0.5)["loss"] == 0.1
