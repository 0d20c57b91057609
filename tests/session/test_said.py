"""What is said of a search when it has ended: its summary, and why there is no answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.cli.progress import LineProgress
from autotune.report.words.summary import summarize
from autotune.space import Flag, IntegerRange, OrderedValues, Space
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import Budget
from tests.session.bowl import SPACE, bowl, spec


class Checked(autotune.Objective):
    """Its error is known from the check, which the finalists do not go through again."""

    def check(self, loaded: Any, rng: Any) -> dict[str, float]:
        return {"error": 0.5}

    def measure(self, loaded: Any, rng: Any) -> float:
        return bowl(**loaded)


@pytest.mark.long
def test_of_many_knobs_those_are_named_that_the_default_has_otherwise(tmp_path: Path) -> None:
    def cost(**on: bool) -> float:
        return 1.0 + sum(value != (name in ("f03", "f17")) for name, value in on.items())

    names = [f"f{number:02}" for number in range(30)]
    space = Space([Flag(name, default=name == "f17") for name in names])
    said = summarize(autotune.search(space, objective=cost, trials=60, store=tmp_path / "study.db"))
    assert "winner of cost\n\n  f03  true\n  and 29 knobs as in the default\n" in said


def test_to_go_on_with_an_interrupted_search_takes_the_budget_that_it_had(
    search: Callable[..., autotune.Result],
) -> None:
    result = search(trials=4)
    interrupted = replace(result, reason="interrupted")
    patient = replace(result, reason="3 trials without an improvement")
    reached = replace(result, reason="trial 2 reached the target of 1000")
    below = replace(result, reason="trial 2 reached the target of -1000")
    nothing = replace(result, reason="trial 2 reached the target of 0", metrics={})
    better = float(f"{0.9 * result.metrics['time'].value:.2g}")
    for ended, budget, options in [
        (patient, Budget(time=60.0, patience=3), " --time 60s --patience 6"),
        (patient, Budget(trials=30, patience=3), " --trials 30 --patience 6"),
        (result, Budget(trials=4, patience=3), " --trials 10"),
        (reached, Budget(trials=30, target=1e3), f" --trials 30 --target={better:g}"),
        (below, Budget(target=-1e3), " --target=-1100"),
        (nothing, Budget(trials=30, target=0.0), " --trials 30"),
        (interrupted, Budget(trials=30, target=0.125), " --trials 30 --target=0.125"),
        (interrupted, Budget(trials=30), " --trials 30"),
        (interrupted, Budget(time=60.0), " --time 60s"),
        (interrupted, Budget(trials=30, time=60.0), " --time 60s --trials 30"),
        (result, Budget(trials=4), " --trials 10"),
        (result, Budget(time=60.0), " --time 120s"),
        (result, Budget(trials=4, time=60.0), " --time 120s --trials 10"),
        (result, Budget(trials=30, time=60.0), " --time 120s"),
        (result, Budget(), " --trials 10"),
    ]:
        (line,) = [
            line
            for line in summarize(ended, space="bowl", budget=budget, store_option="").splitlines()
            if "go on searching" in line
        ]
        assert line.split("  #")[0].rstrip().endswith(f"search bowl{options}"), (budget, line)


def test_what_looks_better_than_the_winner_and_was_not_measured_again_is_said(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=4)
    assert "since" not in before.remark
    unfinished = spec(tmp_path)
    unfinished = replace(unfinished, measure=replace(unfinished.measure, finalists=0))
    after = search(unfinished, trials=60)
    best = min(after.trials, key=lambda t: bowl(**t.configuration))
    assert after.best == before.best and best.configuration != before.best
    read = f"trial {best.number} was read at {bowl(**best.configuration):.4g} s since"
    assert read in after.remark and read in summarize(after)
    assert "since" not in search(trials=60).remark


def test_a_search_of_which_no_trial_ended_does_not_blame_the_configurations(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db") as session:
        session.ask(2)
        assert session.result().remark == "no trial has finished"


def test_a_result_without_an_answer_has_the_commonest_failure_in_its_words(tmp_path: Path) -> None:
    def never(tile: int) -> float:
        if tile == 1:
            raise autotune.Infeasible("no room")
        raise ValueError(f"no {tile}")

    space = Space([OrderedValues("tile", (1, 2, 4), default=1)])
    result = autotune.search(space, objective=never, store=tmp_path / "study.db")
    assert result.best is None and result.why_nothing.startswith("2 of 3 ended as crashed, as trial 1: Value")
    assert result.why_nothing in repr(result) and result.to_document()["why_nothing"] == result.why_nothing
    answered = autotune.search(space, objective=lambda tile: float(tile), store=tmp_path / "study.db")
    assert answered.why_nothing == ""


HOT = """import autotune
from autotune.measure.readings import Sample

class Hot(autotune.Objective):
    def measure(self, loaded, rng):
        return Sample({"time": 1.0}, discarded="throttled")
"""


@pytest.mark.long
def test_why_all_was_lost_is_said(tmp_path: Path) -> None:
    """On a GPU that is always too hot: the summary had only said how many were lost."""
    (tmp_path / "hot.py").write_text(HOT)
    space = tmp_path / "space.yaml"
    space.write_text("autotune: 1\nname: hot\nobjective: hot.py:Hot\nknobs: {tile: {values: [1, 2]}}\n")
    result = autotune.search(space, store=tmp_path / "study.db")
    assert result.best is None and not result.failures
    assert result.why_nothing.startswith(
        "2 of 2 ended as lost, as trial 0: nothing of it counts: 20 readings"
    )
    assert "lost, as trial 0: nothing of it counts" in summarize(result)


@pytest.mark.parametrize(
    ("script", "form"),
    [
        (f"[{sys.executable}, bench.py, '{{tile}}', '{{unroll}}']", "command"),
        (f"[{sys.executable}, bench.py, '{{tile}}']", "flags"),
        (f"[{sys.executable}, bench.py]", "yaml"),
        (f"{{run: [{sys.executable}, bench.py, '{{config}}'], config: {{file: tuned.json}}}}", "yaml"),
    ],
)
def test_the_winner_is_offered_in_the_form_that_its_command_reads(
    tmp_path: Path, script: str, form: str
) -> None:
    bench = (
        "import autotune\n"
        "with autotune.run('forms') as run:\n"
        "    run.result(time=run.knob('tile', 2) + run.knob('unroll', 1))\n"
    )
    (tmp_path / "bench.py").write_text(bench)
    knobs = "{tile: {values: [1, 2], default: 2}, unroll: {values: [1, 2]}}"
    text = f"autotune: 1\nname: forms\ncommand: {script}\nknobs: {knobs}\n"
    given = parse_spec(f"{text}measure: {{finalists: 0}}\n", tmp_path / "space.yaml", {})
    said = summarize(autotune.search(given, trials=1, store=tmp_path / "study.db"))
    assert f" best --format {form} --study forms" in said


class Saying(LineProgress):
    """Keeps what the shell would print."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def write(self, text: str) -> None:
        self.said.append(text)


def test_a_best_near_the_default_is_told_from_it(tmp_path: Path) -> None:
    """Both had been 1, beside a gain."""
    space = Space([IntegerRange("x", 10, 20, default=10)])
    loss = (autotune.MetricSpec("loss", "minimize"),)
    heard = Saying()
    result = autotune.search(
        autotune.StudySpec("near", space, metrics=loss),
        objective=lambda x: 1 + 0.0001 * abs(x - 17),
        trials=11,
        progress=heard,
        store=tmp_path / "s.db",
    )
    assert "loss           1.0000; the default 1.0007" in summarize(result)
    bests = [line.partition("best so far ")[2] for line in heard.said if "best so far" in line]
    assert len(set(bests)) == len(bests) > 1


def test_of_the_default_no_ratio_to_itself_is_said(tmp_path: Path) -> None:
    space = Space([IntegerRange("tile", 1, 3)])
    result = autotune.search(space, objective=float_of_tile, store=tmp_path / "s.db")
    assert result.is_default and result.speedup is not None and "over the default" not in summarize(result)
    assert "  # the default as " in summarize(result), "what won nothing was called the winner"


def float_of_tile(tile: int) -> float:
    return float(tile)


def test_where_all_failed_nobody_is_told_to_go_on(tmp_path: Path) -> None:
    def wrong(tile: int) -> float:
        raise autotune.WrongAnswer(f"{tile} is wrong by {0.1 * tile}")

    result = autotune.search(
        Space([IntegerRange("tile", 1, 100, default=1)]), objective=wrong, trials=4, store=tmp_path / "s.db"
    )
    said = summarize(result, space="bowl.yaml")
    assert result.best is None and "go on searching" not in said and " show --failures " in said
    assert f"search bowl.yaml --fresh --store sqlite:///{tmp_path / 's.db'}" in said, (
        "what was mended may be no source of the study: without --fresh its trials would count"
    )
    assert f" --store sqlite:///{tmp_path / 's.db'}" in said, "else the commands would look elsewhere"
    assert "go on searching" in summarize(replace(result, reason="interrupted"), space="bowl.yaml")


def test_a_bound_that_nothing_reports_is_said(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    metrics = "metrics: {time: {goal: minimize}, error: {at_most: 1.0}}\nknobs:"
    given = parse_spec(SPACE.format(high=3).replace("knobs:", metrics), tmp_path / "space.yaml", {})
    assert "no run of this configuration reported error" in search(given, trials=4).remark
    told = search(given, trials=4, objective=lambda x, y: {"time": bowl(x, y), "error": 0.5})
    assert "error" not in told.remark and told.best is not None
    checked = search(given, trials=4, objective=Checked)
    assert "error" not in checked.remark and checked.metrics["error"].value == 0.5
