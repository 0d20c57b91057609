"""The recipe of the case, else of the nearest that the space allows, else the default."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from autotune.errors import InputError
from autotune.hook.lookup.choosing import choose, default, nearest_winners
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Recipe
from autotune.space.knobs import OrderedValues, Permutation
from autotune.space.space import Space


def space(limit: int = 1024) -> Space:
    knobs = [OrderedValues("BLOCK", (16, 32, 64, 128), default=64), OrderedValues("num_warps", (4, 8))]
    return Space(knobs, ["BLOCK <= n"], workload={"n": limit})


def recipe(n: int, block: int, source: str = "") -> Recipe:
    return Recipe("add", "gpu", Case({"n": n}, {}), {"BLOCK": block, "num_warps": 8}, source=source)


CASE = Case({"n": 1024}, {})


def test_nearest_first_and_the_earlier_where_they_tie() -> None:
    recipes = [recipe(512, 16), recipe(2048, 32), recipe(100, 128)]
    chosen = choose(CASE, recipes, space())
    assert (chosen.how, chosen.distance, chosen.configuration["BLOCK"]) == ("nearest", 1.0, 16)
    assert choose(CASE, [*recipes, recipe(1024, 128)], space()).how == "exact"


def test_winners_of_other_cases_are_those_of_this_device_and_the_nearest_first() -> None:
    elsewhere = replace(recipe(1024, 128), device="another")
    other_type = replace(recipe(1024, 64), case=Case({"n": 1024}, {"x": "float16"}))
    recipes = [elsewhere, other_type, recipe(100, 64), recipe(512, 16), recipe(2000, 16), recipe(9, 32)]
    found = nearest_winners(CASE, recipes, "gpu")
    assert [winner["BLOCK"] for winner in found] == [16, 64, 32]
    assert [winner["BLOCK"] for winner in nearest_winners(CASE, recipes[:3], "gpu")] == [64, 128]


def test_a_choice_can_be_pickled() -> None:
    for chosen in (choose(CASE, [recipe(512, 16)], space()), choose(CASE, [], space())):
        assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_what_the_space_does_not_allow_is_passed_over() -> None:
    recipes = [recipe(1024, 256), recipe(900, 128), recipe(64, 32)]
    assert choose(CASE, recipes, space(limit=64)).configuration["BLOCK"] == 32
    assert choose(CASE, recipes[:1], space()).how == "default"


def test_a_recipe_of_another_source_is_stale() -> None:
    assert choose(CASE, [recipe(1024, 16, "old")], space(), "new").stale
    assert not choose(CASE, [recipe(1024, 16, "new")], space(), "new").stale
    assert not choose(CASE, [recipe(1024, 16)], space(), "new").stale
    assert not choose(CASE, [recipe(1024, 16, "old")], space(), "").stale, "not known to be another"


def test_a_recipe_of_other_packages_is_stale() -> None:
    made = replace(recipe(1024, 16), versions={"triton": "3.6.0", "numpy": "2.3.1"})
    assert choose(CASE, [made], space(), versions={"triton": "3.7.1"}).stale
    assert not choose(CASE, [made], space(), versions={"triton": "3.6.0", "torch": "2.13.0"}).stale
    assert not choose(CASE, [made], space()).stale


def test_a_default_that_the_case_refuses_gives_way_to_what_is_near() -> None:
    assert default(space()) == {"BLOCK": 64, "num_warps": 4}
    assert default(space(limit=40)) == {"BLOCK": 32, "num_warps": 4}
    with pytest.raises(InputError, match=r"^no configuration satisfies 'BLOCK <= n' where n is 8\n"):
        default(space(limit=8))


def test_a_kernel_has_no_knob_that_is_an_order() -> None:
    with pytest.raises(InputError, match="the knob 'order' of a kernel is a number"):
        choose(CASE, [], Space([Permutation("order", ("i", "j"))]))
