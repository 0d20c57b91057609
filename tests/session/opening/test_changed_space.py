"""A study that goes on in another space says what has changed, and which of its trials that leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.session.opening.changed_space import say_changed_space
from autotune.space import Flag, IntegerRange, Knob, Space
from autotune.store.store import Store

X, Y, FUSED = IntegerRange("x", 1, 3), IntegerRange("y", 1, 2), Flag("fused")
EIGHT = "8 of its 12 earlier trials are still in it, and count"


@pytest.mark.parametrize(
    ("knobs", "rules", "said"),
    [
        ((X, Y, FUSED), ["x < 3"], f"(other constraints): {EIGHT}"),
        (
            (IntegerRange("x", 2, 9, default=4), Y, Flag("fused", default=False)),
            [],
            f"(changed: x; another default: x=4, fused=False): {EIGHT}",
        ),
        ((X, FUSED), [], "(gone: y): none of its 12 earlier trials is in it any more"),
        (
            (X, IntegerRange("z", 1, 2), FUSED),
            [],
            "(new: z; gone: y): none of its 12 earlier trials is in it any more. A knob with another name is"
            " another knob",
        ),
    ],
)
def test_what_changed_and_what_is_left(
    tmp_path: Path, knobs: tuple[Knob, ...], rules: list[str], said: str
) -> None:
    store = tmp_path / "study.db"
    before = Space([X, Y, FUSED])
    found = autotune.search(before, objective=lambda x, y, fused: float(x + y), trials=12, store=store)
    with Store.open(str(store)) as opened:
        now = Space(knobs, constraints=rules)
        text = say_changed_space(opened, found.study, now)
    assert text == f"the space of study {found.study.name!r} has changed {said}"
