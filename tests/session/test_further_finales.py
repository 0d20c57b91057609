"""A win that comes after other finales: each was a further chance of luck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.cli.best import command as best
from autotune.cli.report import command as report
from autotune.session.answers import load_result
from autotune.session.caveats import say_further_finales
from tests.cli.calling import call, document
from tests.report.studies import Written
from tests.session.bowl import bowl, spec

GAIN = {"against": "the default", "estimate": 1.2, "low": 1.1, "high": 1.3}
WIN = {"is_default": False, "speedup": GAIN, "confidence": 0.95}
NONE = {"is_default": True, "speedup": GAIN, "confidence": 0.95}
UNCOMPARED = {"configuration": None}


@pytest.mark.parametrize(
    ("verdicts", "share"),
    [
        ([], ""),
        ([WIN], ""),
        ([NONE, NONE], ""),
        ([WIN, NONE], ""),
        ([UNCOMPARED, WIN], ""),
        ([WIN, UNCOMPARED], ""),
        ([NONE, WIN], "were measured again 2 times, and each time was another chance of luck"),
        ([NONE, WIN], "of studies without any gain, up to 5 % would show one by now"),
        ([WIN, UNCOMPARED, NONE, WIN | {"speedup": None, "gain": GAIN}], "up to 7.5 % would"),
        ([NONE | {"confidence": 0.99}, WIN], "up to 3 % would"),
        ([{"speedup": GAIN}, WIN | {"confidence": 0.99}], "up to 5.5 % would"),
        ([NONE] * 50 + [WIN], "up to 100 % would"),
    ],
)
def test_of_a_win_it_is_said_how_likely_it_was_by_luck(verdicts: list[dict[str, Any]], share: str) -> None:
    said = say_further_finales(verdicts, 0.9)
    assert share in said and bool(said) is bool(share)


@pytest.mark.long
def test_it_stands_beside_the_answer_wherever_that_is_told(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    first, second = (
        autotune.search(spec(tmp_path), trials=trials, store=file, objective=bowl) for trials in (20, 30)
    )
    assert not first.is_default and "measured again" not in first.remark
    said = "again 2 times, and each time was another chance of luck"
    assert said in second.remark
    place = ("--store", file)
    assert said in document(best, "--format", "json", *place)["remark"]
    for form in ("html", "md"):
        call(report, "-o", tmp_path / f"report.{form}", *place)
        assert said in (tmp_path / f"report.{form}").read_text()


def test_a_cross_measurement_and_a_finale_are_counted_apart(tmp_path: Path) -> None:
    """Each search of several workloads ends with one of both."""
    own = Written(tmp_path)
    own.trial({"tile": 2, "layout": "row"}, 1.0)
    own.verdict({"tile": 2, "layout": "row"})
    own.verdict({"tile": 2, "layout": "row"}, across=[])
    assert "measured again" not in load_result(own.store, own.study).remark
    own.verdict({"tile": 2, "layout": "row"}, across=[])
    assert "measured again 2 times" in load_result(own.store, own.study).remark
