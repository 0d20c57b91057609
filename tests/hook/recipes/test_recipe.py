"""Which of several recipes is the better defended."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Known, KnownSpace, Recipe, Speedup, best_defended

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
    kept = best_defended(recipes)
    assert {recipe.case.values["n"] for recipe in kept} == {recipe.case.values["n"] for recipe in recipes}
    for recipe in recipes:
        [own] = [other for other in kept if other.replaces(recipe)]
        assert own.defence >= recipe.defence


def test_the_order_of_defence() -> None:
    unknown = replace(BASE, tuned="2026-03-01")
    no_default = replace(BASE, defended=True)
    small = replace(BASE, defended=True, speedup=Speedup(1.5, 1.1, 1.9), tuned="2026-02-01")
    sure = replace(BASE, defended=True, speedup=Speedup(1.3, 1.2, 1.4), tuned="2026-01-01")
    for worse, better in ((unknown, no_default), (no_default, small), (small, sure)):
        assert best_defended([worse, better]) == best_defended([better, worse]) == [better]


def test_what_comes_first_is_known_first() -> None:
    one, two = KnownSpace({"knobs": {}}), KnownSpace({"knobs": {"x": {}}})
    known = Known((BASE,), {"gemm": one}).and_then(
        Known((replace(BASE, name="conv"),), {"gemm": two, "conv": two})
    )
    assert [recipe.name for recipe in known.recipes] == ["gemm", "conv"]
    assert known.spaces == {"gemm": one, "conv": two}
    assert known.of("conv") == Known((replace(BASE, name="conv"),), {"conv": two})
    assert known.of("nms") == Known()
