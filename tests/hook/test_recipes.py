"""Recipes come back from their file as they were written, and damage is said with its place."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.hook.case import Case
from autotune.hook.recipes import Recipe, read_recipes, write_recipe

RECIPE = Recipe(
    kernel="add",
    device="NVIDIA H200",
    case=Case({"n": 4096, "causal": True}, {"x": "float16"}),
    configuration={"BLOCK": 1024, "fused": False, "how": "tree"},
    time=1.25e-5,
    speedup={"estimate": 1.3, "low": 1.2, "high": 1.4},
    trials=60,
    source="0123456789abcdef",
    versions={"triton": "3.6.0"},
    study="add#1",
    tuned="2026-01-01",
)


def test_there_and_back(tmp_path: Path) -> None:
    file = tmp_path / "kernels" / "add.recipes.json"
    assert read_recipes(file) == ()
    write_recipe(file, RECIPE)
    assert read_recipes(file) == (RECIPE,)
    assert [path.name for path in file.parent.iterdir()] == ["add.recipes.json"]


def test_a_later_recipe_replaces_that_of_the_same_case(tmp_path: Path) -> None:
    file = tmp_path / "recipes.json"
    other = replace(RECIPE, case=Case({"n": 512, "causal": True}, {"x": "float16"}))
    better = replace(RECIPE, configuration={"BLOCK": 512})
    for recipe in (RECIPE, other, better, replace(RECIPE, device="another")):
        write_recipe(file, recipe)
    found = read_recipes(file)
    assert found == (other, better, replace(RECIPE, device="another"))  # by kernel, device and numbers


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "recipes.json"
    cases = [replace(RECIPE, case=Case({"n": n}, {})) for n in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda recipe: write_recipe(file, recipe), cases))
    assert len(read_recipes(file)) == 20


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "recipes.json:1:2: this is not JSON"),
        ("[]", "this is no file of recipes"),
        ('{"autotune_recipes": 2}', "this is no file of recipes"),
        (json.dumps({"autotune_recipes": 1, "recipes": [{"kernel": "add"}]}), "recipe 0 cannot be read"),
        (
            json.dumps(
                {
                    "autotune_recipes": 1,
                    "recipes": [{"kernel": "a", "device": "b", "key": {}, "configuration": 1}],
                }
            ),
            "recipe 0 has no configuration",
        ),
    ],
)
def test_damage_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "recipes.json"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read_recipes(file)
    assert says in str(raised.value)
    with pytest.raises(InputError):
        write_recipe(file, RECIPE)
    assert file.read_text() == text


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name another file"):
        write_recipe(tmp_path / "file" / "recipes.json", RECIPE)
