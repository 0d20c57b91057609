"""Two studies side by side: what they are compared by, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.report.differences.studies import diff_studies
from autotune.store.store import Store
from tests.report.studies import KNOBS, Written
from tests.store.build import new_study


def test_one_configuration_in_common_is_counted_as_one(tmp_path: Path) -> None:
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 1.0)
    [contrast] = [c for c in diff_studies(own.store, own.study, own.study).contrasts if "tried" in c.metric]
    assert contrast.how == "1 configuration was measured in both, and 6 are needed"


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
