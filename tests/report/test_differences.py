"""Two trials side by side: what they are compared by, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Metric, Recipe
from autotune.measure.facts import STEP
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.report.differences.difference import by_runs, in_unit_of
from autotune.report.differences.recipes import diff_recipes
from autotune.report.differences.studies import diff_studies
from autotune.report.differences.trials import diff_trials
from autotune.session.opening.frozen import SOURCE
from autotune.session.reproduction.replicates import Spread
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.report.studies import KNOBS, Written
from tests.store.build import new_study


def finalist(own: Written, tile: int, values: Sequence[tuple[int, int, float]]) -> TrialRecord:
    """One of a finale, by its run of fresh processes (0: none), its round there, and what was read."""
    purpose = "default" if tile == 1 else "final"
    trial, number = own.begin({"tile": tile, "layout": "row"}, purpose=purpose)
    readings = tuple(Reading("time", v, 0.0, "", {"process": p, "round": r}) for p, r, v in values)
    own.store.finish(trial, Outcome(Status.OK, {"time": Estimate(1.0, 0.9, 1.1, 3, 0.01)}, readings))
    [record] = own.store.numbered(own.study.id, [number])
    return record


@pytest.mark.parametrize(
    ("runs", "said"), [(0, "10 rounds"), (3, "19 rounds"), (4, "4 runs of fresh processes")]
)
def test_it_is_said_how_many_readings_of_what_an_answer_rests_on(
    tmp_path: Path, runs: int, said: str
) -> None:
    """From four runs of fresh processes on, these alone count, and each once."""
    own = Written(tmp_path)
    rounds = [(0, number) for number in range(10)]
    rounds += [(run, number) for run in range(1, runs + 1) for number in range(3)]
    one = finalist(own, 1, [(run, number, 3.0 if run else 2.0) for run, number in rounds])
    other = finalist(own, 4, [(run, number, 1.0) for run, number in rounds])
    [contrast] = diff_trials(own.store, one, other).contrasts
    assert f"read side by side in {said} of session" in contrast.how
    assert contrast.answer == "better" and contrast.ratio is not None
    assert (contrast.ratio[0] == pytest.approx(3.0)) is (runs == 4)


def test_one_and_true_are_two_values_of_a_knob(tmp_path: Path) -> None:
    own = Written(tmp_path, {"level": {"choices": [1, True], "default": 1}})
    numbers = [own.trial({"level": level}, 1.0) for level in (1, True)]
    one, other = own.store.numbered(own.study.id, numbers)
    assert diff_trials(own.store, one, other).parts["configuration"] == {"level": (1, True)}


def test_a_number_that_was_rounded_is_the_same() -> None:
    """Of a recipe and the same one in a file, ``B is worse, 1x [1, 1] as good`` was said."""
    stored, filed = (18.999999999999996,) * 3, (19.0,) * 3
    assert by_runs("speed-up", "", "maximize", filed, stored).answer == "no difference shown"
    assert by_runs("loss", "", "minimize", (-1.0,) * 3, (-1.0000002,) * 3).answer == "no difference shown"
    assert by_runs("loss", "", "minimize", (1.0,) * 3, (0.999,) * 3).answer == "better"


def test_how_much_runs_differ_has_a_unit() -> None:
    """Where a value is not above 0 it is no part of one, and had stood there as 6.9e-07."""
    apart = by_runs("time", "s", "minimize", (-1.0,) * 3, (-2.0,) * 3, Spread(6.9e-7, 3, logarithmic=False))
    assert "runs of the same thing differ by 690 ns (standard deviation)" in apart.how
    close = by_runs("time", "s", "minimize", (1.0,) * 3, (2.0,) * 3, Spread(0.01, 3))
    assert "differ by 1.0% (standard deviation)" in close.how


def test_one_configuration_in_common_is_counted_as_one(tmp_path: Path) -> None:
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 1.0)
    [contrast] = [c for c in diff_studies(own.store, own.study, own.study).contrasts if "tried" in c.metric]
    assert contrast.how == "1 configuration was measured in both, and 6 are needed"


def test_values_in_other_units_of_one_kind_are_compared_in_the_unit_of_the_one(tmp_path: Path) -> None:
    """2 ms, declared as such, had been a thousand times worse than 0.002 s, and were shown as 2 s."""
    own, other = studies_in(tmp_path, "s", "ms")
    for tile in (1, 2, 4, 8, 16, 32):
        own.trial({"tile": tile, "layout": "row"}, 0.002 * tile)
        other.trial({"tile": tile, "layout": "row"}, 1.0 * tile)
    _, winners, shared = diff_studies(own.store, own.study, other.study).contrasts
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    [trials] = diff_trials(own.store, one, its).contrasts
    for contrast in (winners, trials):
        assert (contrast.unit, contrast.one) == ("s", pytest.approx((0.002, 0.0018, 0.0022)))
        assert contrast.other == pytest.approx((0.001, 0.0009, 0.0011))
    for contrast in (winners, trials, shared):
        assert contrast.answer == "better" and contrast.ratio is not None
        assert contrast.ratio[0] == pytest.approx(2.0)


def test_what_was_gained_over_the_default_is_compared_in_one_unit(tmp_path: Path) -> None:
    own, other = studies_in(tmp_path, "s", "ms")
    for study, gain in ((own, 0.003), (other, 3.0)):
        study.trial({"tile": 1, "layout": "row"}, 1.0)
        found = {"against": "the default", "estimate": gain, "low": gain, "high": gain}
        study.verdict({"tile": 4, "layout": "row"}, speedup=None, gain=found)
    contrast = diff_studies(own.store, own.study, other.study).contrasts[0]
    assert (contrast.metric, contrast.unit) == ("better than the default by", "s")
    assert contrast.one == pytest.approx(contrast.other) == (0.003, 0.003, 0.003)


def test_how_much_runs_differ_is_said_in_one_unit(tmp_path: Path) -> None:
    """Of values that are not above 0: milliseconds would count as seconds."""
    own, other = studies_in(tmp_path, "s", "ms")
    for purpose, value in (("search", -0.001), ("final", 0.001)):
        own.trial({"tile": 1, "layout": "row"}, value, purpose=purpose)
        other.trial({"tile": 1, "layout": "row"}, value * 1000, purpose=purpose)
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    [trials] = diff_trials(own.store, one, its).contrasts
    winners = diff_studies(own.store, own.study, other.study).contrasts[1]
    for contrast in (trials, winners):
        assert "runs of the same thing differ by 1.414 ms" in contrast.how


def test_values_of_another_kind_are_not_compared(tmp_path: Path) -> None:
    own, other = studies_in(tmp_path, "s", "J")
    for study in (own, other):
        study.trial({"tile": 1, "layout": "row"}, 2.0)
    _, winners = diff_studies(own.store, own.study, other.study).contrasts
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    for contrast in (winners, *diff_trials(own.store, one, its).contrasts):
        assert (contrast.answer, contrast.how) == ("not comparable", "one is in s, the other in J")
        assert contrast.one is contrast.other is None


def studies_in(folder: Path, *units: str) -> list[Written]:
    """Studies of one store that differ in the unit of their time."""
    return [
        Written(folder, key=unit, metrics=[{"name": "time", "goal": "minimize", "unit": unit}])
        for unit in units
    ]


ONE = Recipe("gemm", "gpu", Case({}), {"tile": 1}, Metric("time", 1.0, unit="s"))


@pytest.mark.parametrize(
    ("metric", "how"),
    [
        (Metric("time", 2.0, unit="J"), "one is in s, the other in J"),
        (Metric("loss", 2.0), "the other is of loss"),
        (Metric("time", 2.0, unit="s", goal="maximize"), "one is to minimize it, the other to maximize it"),
    ],
)
def test_recipes_of_other_metrics_kinds_or_goals_are_not_compared(metric: Metric, how: str) -> None:
    """The value of the other had been shown in the unit of the one."""
    [found] = diff_recipes([ONE], [replace(ONE, metric=metric)], ("A", "B"))
    [contrast] = found.contrasts
    assert (contrast.answer, contrast.how) == ("not comparable", how)
    assert contrast.one is contrast.other is None


@pytest.mark.parametrize(("value", "answer"), [(1000.0, "no difference shown"), (500.0, "better")])
def test_recipes_are_compared_in_one_unit(value: float, answer: str) -> None:
    other = replace(ONE, metric=Metric("time", value, unit="ms"))
    [contrast] = diff_recipes([ONE], [other], ("A", "B"))[0].contrasts
    assert (contrast.answer, contrast.unit) == (answer, "s")
    assert contrast.other == (value / 1000,) * 3


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("ms", "milliseconds", 1.0),
        ("s", "ms", 1e-3),
        ("ms", "h", 3.6e6),
        ("", "s", 1.0),  # unknown
        ("J", "J", 1.0),
        ("MB/s", "GB/s", 1e3),
        ("B", "KiB", 1024.0),
        ("GB/s", "GB", None),
        ("s", "J", None),
        ("B/s", "B/request", None),
    ],
)
def test_units_are_of_one_kind_by_what_they_mean(one: str, other: str, factor: float | None) -> None:
    assert in_unit_of(one, other) == pytest.approx(factor)


GAIN = {"against": "the default", "estimate": 3.0, "low": 2.9, "high": 3.1}


@pytest.mark.parametrize(
    ("verdict", "metric", "one", "how"),
    [
        ({}, "speed-up over the default", (2.0, 1.8, 2.2), "of separate runs"),
        ({"speedup": None, "gain": GAIN}, "better than the default by", (3.0, 2.9, 3.1), "of separate runs"),
        (
            {"speedup": None},
            "speed-up over the default",
            None,
            "its default failed, or a value is not above 0",
        ),
        (None, "speed-up over the default", None, "one of them was not measured again"),
    ],
)
def test_what_was_won_over_the_default_is_compared(
    tmp_path: Path, verdict: dict[str, object] | None, metric: str, one: object, how: str
) -> None:
    """Of values below 0, it was said that one of them was not measured again."""
    own = Written(tmp_path)
    for tile, value in ((1, 2.0), (4, 1.0)):
        own.trial({"tile": tile, "layout": "row"}, value)
    if verdict is not None:
        own.verdict({"tile": 4, "layout": "row"}, **verdict)
    contrast = diff_studies(own.store, own.study, own.study).contrasts[0]
    assert (contrast.metric, contrast.one) == (metric, one) and how in contrast.how


def test_one_and_true_are_two_values_of_a_workload_and_a_default(tmp_path: Path) -> None:
    with Store.open(tmp_path / "two.db") as store:
        one, other = (
            store.create_study(
                new_study(
                    workload={"flag": value},
                    document={"space": {"knobs": {"a": {"choices": [1, True], "default": value}}}},
                )
            )
            for value in (1, True)
        )
        found = diff_studies(store, one, other)
    assert found.parts["workload"] == {"flag": (1, True)}
    assert list(found.parts["space"]) == ["a"]
    assert "they had different workloads" in {contrast.how for contrast in found.contrasts}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"objective": "python other.py:Other"}, "they are of different objectives"),
        ({"workload": {"m": 4}}, "they had different workloads"),
        ({"replayed": True}, "one was measured, the other comes from a recording"),
    ],
)
def test_trials_of_studies_that_are_not_alike_are_not_compared(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    own, other = Written(tmp_path), Written(tmp_path, key="key1", **changed)
    for study in (own, other):
        study.trial({"tile": 1, "layout": "row"}, 1.0)
    found = diff_trials(own.store, *(own.store.trials(study.id)[0] for study in (own.study, other.study)))
    [contrast] = found.contrasts
    assert (contrast.answer, contrast.how, found.remarks) == ("not comparable", why, [why])
    assert contrast.one == contrast.other == pytest.approx((1.0, 0.9, 1.1))
    again = Written(tmp_path, key="key2")
    again.trial({"tile": 1, "layout": "row"}, 1.0)
    found = diff_trials(own.store, own.store.trials(1)[0], own.store.trials(again.study.id)[0])
    assert not found.remarks and found.contrasts[0].answer == "no difference shown"


@pytest.mark.parametrize(
    ("status", "facts", "why"),
    [
        (Status.WRONG, {}, "trial 1 ended as wrong"),  # what it measured stands in its metrics
        (Status.PRUNED, {STEP: 3}, "trial 1 was stopped after step 3"),
        (Status.PRUNED, {}, ""),  # it was read less often, no more
    ],
)
def test_a_trial_that_has_no_final_value_is_not_compared(
    tmp_path: Path, status: Status, facts: dict[str, object], why: str
) -> None:
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 1.0)
    own.trial({"tile": 2, "layout": "row"}, 1.0, status, facts=facts, message=" why \n")
    found = diff_trials(own.store, *own.store.trials(own.study.id))
    [contrast] = found.contrasts
    assert contrast.how == why if why else contrast.answer == "no difference shown"
    assert found.parts["outcome"] == {"status": ("ok", str(status)), "why": (None, "why")}


def test_code_differs_by_files_and_how_many_of_their_lines(tmp_path: Path) -> None:
    own = Written(tmp_path)
    files = [
        {"same.c": b"1", "changed.c": b"a\nb\nc\n", "gone.c": b"1\n2\n"},
        {"same.c": b"1", "changed.c": b"a\nB\nc\nd\n", "new.c": b"1\n"},
    ]
    for number, code in enumerate(files):
        artifacts = {f"{SOURCE}{name}": text for name, text in code.items()} | {"diff": b"%d" % number}
        document = {"source_hash": f"s{number}", "repository": {"head": {"commit": "c"}}}
        own.segment = own.store.open_segment(own.study.id, document, artifacts, "edited").id
        own.trial({"tile": 2**number, "layout": "row"}, 1.0)
    one, other = own.store.trials(own.study.id)
    assert diff_trials(own.store, one, other).parts["code"] == {
        "source": ("s0", "s1"),
        "changed.c": ("3 lines", "4 lines, +2 -1"),
        "gone.c": ("2 lines", None),
        "new.c": (None, "1 line"),
    }
    assert diff_trials(own.store, one, one).parts["code"] == {}


def test_what_is_read_side_by_side_twice_decides_and_once_does_not(tmp_path: Path) -> None:
    own = Written(tmp_path)
    rounds = [(0, number, 2.0) for number in range(2)]
    one = finalist(own, 1, rounds)
    often, once = finalist(own, 4, rounds), finalist(own, 8, rounds[:1])
    assert "side by side in 2 rounds" in diff_trials(own.store, one, often).contrasts[0].how
    assert "of separate runs" in diff_trials(own.store, one, once).contrasts[0].how


LESS = [{"name": "time", "goal": "minimize", "unit": "s"}]


@pytest.mark.parametrize(
    ("changed", "remark"),
    [
        ({"replayed": True}, "one was measured, the other comes from a recording"),
        ({"metrics": [{**LESS[0], "name": "loss"}]}, "they measure different things: time and loss"),
        (
            {"metrics": [{**LESS[0], "goal": "maximize"}]},
            "they have different goals: one is to minimize time, the other to maximize it",
        ),
    ],
)
def test_studies_that_measure_other_things_are_not_compared(
    tmp_path: Path, changed: dict[str, object], remark: str
) -> None:
    own, other = Written(tmp_path), Written(tmp_path, key="key1", **changed)
    found = diff_studies(own.store, own.study, other.study)
    assert (found.remarks, found.contrasts) == ([remark], ())


def test_what_differs_between_studies_is_named(tmp_path: Path) -> None:
    """Knobs by their names, constraints by their texts, settings by their section."""
    documents = [
        {"space": {"knobs": KNOBS, "constraints": ["tile > 1"]}, "budget": {"trials": 9}, "search": {}},
        {
            "space": {"knobs": {**KNOBS, "tile": {"values": [1]}}},
            "budget": {"trials": 8},
            "search": {"seed": 1},
        },
    ]
    bounded = [{**LESS[0], "at_most": 1.0, "at_least": None}]
    own = Written(tmp_path, document=documents[0], metrics=LESS)
    other = Written(tmp_path, document=documents[1], metrics=bounded, key="key1")
    parts = diff_studies(own.store, own.study, other.study).parts
    assert parts["space"] == {"tile": (KNOBS["tile"], {"values": [1]}), "constraint tile > 1": (True, None)}
    assert parts["settings"] == {"search.seed": (None, 1), "budget.trials": (9, 8)}
    plain = {"goal": "minimize", "unit": "s"}
    assert parts["study"] == {"metric time": (plain, {**plain, "at_most": 1.0})}
    [_, winners, _] = diff_studies(own.store, own.study, other.study).contrasts
    assert winners.how == "one of them has no winner"


def test_what_was_won_over_other_defaults_is_not_compared(tmp_path: Path) -> None:
    studies = [Written(tmp_path, key=f"key{number}") for number in range(2)]
    for tile, study in enumerate(studies, start=1):
        study.trial({"tile": tile, "layout": "row"}, 1.0, reason={"kind": "default"})
        study.verdict({"tile": 4, "layout": "row"})
    one, other = studies
    contrast = diff_studies(one.store, one.study, other.study).contrasts[0]
    assert (contrast.answer, contrast.how) == ("not comparable", "their defaults are not the same")
    assert diff_studies(one.store, one.study, one.study).contrasts[0].answer == "no difference shown"


@pytest.mark.parametrize(
    ("factor", "answer"),
    [(0.5, "better"), (2.0, "worse"), (1.0, "no difference shown"), (0.0, "not comparable")],
)
def test_what_both_have_tried_is_compared_by_all_of_it(tmp_path: Path, factor: float, answer: str) -> None:
    own, other = Written(tmp_path), Written(tmp_path, key="key1")
    for number in range(6):
        own.trial({"tile": number, "layout": "row"}, 1.0 + number)
        other.trial({"tile": number, "layout": "row"}, factor * (1.0 + number))
    shared = diff_studies(own.store, own.study, other.study).contrasts[-1]
    assert shared.answer == answer
    if factor:
        assert shared.ratio == pytest.approx((1 / factor,) * 3)
        assert shared.how.startswith("6 configurations that both have measured")
    else:
        assert shared.how == "there is no ratio to a time of 0 or less"
