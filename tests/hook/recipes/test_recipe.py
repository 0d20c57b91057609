"""What is known of recipes, from several places."""

from __future__ import annotations

from dataclasses import replace

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Known, KnownSpace, Recipe

BASE = Recipe("gemm", "cpu", Case({"n": 1}), {"tile": 1})


def test_what_comes_first_is_known_first() -> None:
    one, two = KnownSpace({"knobs": {}}), KnownSpace({"knobs": {"x": {}}})
    known = Known((BASE,), {"gemm": one}).and_then(
        Known((replace(BASE, name="conv"),), {"gemm": two, "conv": two})
    )
    assert [recipe.name for recipe in known.recipes] == ["gemm", "conv"]
    assert known.spaces == {"gemm": one, "conv": two}
    assert known.of("conv") == Known((replace(BASE, name="conv"),), {"conv": two})
    assert known.of("nms") == Known()
