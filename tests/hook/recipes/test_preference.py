"""Which of several recipes of one case is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.preference import preference, preferred
from autotune.hook.recipes.recipe import Recipe, Speedup
from autotune.provenance.code.frozen import hash_of

BASE = Recipe("gemm", "cpu", Case({"n": 1}), {"tile": 1})
SPEEDUPS = st.none() | st.floats(0.1, 10).map(lambda low: Speedup(low * 1.1, low, low * 1.2))
RECIPES = st.builds(
    lambda n, speedup, defended, tuned: replace(
        BASE, case=Case({"n": n}), speedup=speedup, defended=defended, tuned=tuned
    ),
    st.integers(1, 2),
    SPEEDUPS,
    st.booleans(),
    st.sampled_from(["2026-01-01", "2026-02-01"]),
)


@settings(deadline=None)
@given(st.lists(RECIPES))
def test_one_a_case_and_none_is_better(recipes: list[Recipe]) -> None:
    kept = preferred(recipes)
    assert {recipe.case.values["n"] for recipe in kept} == {recipe.case.values["n"] for recipe in recipes}
    for recipe in recipes:
        [own] = [other for other in kept if other.replaces(recipe)]
        assert preference(own) >= preference(recipe)


def test_the_order_of_preference() -> None:
    unknown = replace(BASE, tuned="2026-03-01")
    no_default = replace(BASE, defended=True)
    small = replace(BASE, defended=True, speedup=Speedup(1.5, 1.1, 1.9), tuned="2026-02-01")
    sure = replace(BASE, defended=True, speedup=Speedup(1.3, 1.2, 1.4), tuned="2026-01-01")
    for worse, better in ((unknown, no_default), (no_default, small), (small, sure)):
        assert preferred([worse, better]) == preferred([better, worse]) == [better]


def test_a_larger_gain_of_an_objective_that_was_edited_since_is_no_rival(tmp_path: Path) -> None:
    """Its default was another one, and perhaps its knobs."""
    (tmp_path / "gemm.py").write_text("now")
    frozen = replace(BASE, folder=str(tmp_path), files=("gemm.py",), defended=True)
    edited = replace(frozen, source="of before", speedup=Speedup(3.0, 2.9, 3.1))
    source = hash_of(tmp_path, edited.files)
    assert source is not None
    present = replace(frozen, source=source, speedup=Speedup(1.5, 1.4, 1.6))
    only_begun = replace(present, defended=False, speedup=None)
    for worse, better in ((edited, present), (only_begun, edited)):
        assert preferred([worse, better]) == preferred([better, worse]) == [better]
