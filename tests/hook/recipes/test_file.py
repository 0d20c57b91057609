"""Recipes come back from their file as they were written, and damage is said with its place."""

from __future__ import annotations

import json
import math
import os
import string
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import InputError, OutputError
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.document import read_document
from autotune.hook.recipes.file import read_known, render, write_known, write_recipe
from autotune.hook.recipes.recipe import Known, KnownSpace, Metric, Recipe, Speedup
from autotune.ready import ready_root

RECIPE = Recipe(
    name="add",
    device="NVIDIA H200",
    case=Case({"n": 4096, "causal": True, "shape": [4, 8]}, {"x": "float16"}),
    configuration={"BLOCK": 1024, "fused": False, "how": "tree", "order": ["j", "i"], "place": {"a": "gpu"}},
    metric=Metric("time", 1.25e-5, 1.2e-5, 1.3e-5, "s"),
    speedup=Speedup(1.3, 1.2, math.inf),
    defended=True,
    trials=60,
    source="0123456789abcdef",
    versions={"triton": "3.6.0"},
    study="add#1",
    tuned="2026-01-01",
)
SPACE = KnownSpace(
    {
        "knobs": {"BLOCK": {"values": [512, 1024], "default": 512}},
        "constraints": [],
        "workload": {},
        "facts": {},
    }
)


NESTED: list[Any] = []
for _ in range(300):  # which JSON's reader takes
    NESTED = [NESTED]


def test_there_and_back(tmp_path: Path) -> None:
    file = tmp_path / "kernels" / "add.recipes.json"
    assert read_known(file).recipes == ()
    write_recipe(file, RECIPE)
    assert read_known(file).recipes == (RECIPE,)
    assert [path.name for path in file.parent.iterdir()] == ["add.recipes.json"]


TEXT = st.text(string.ascii_letters + 'é日"\\\n ', max_size=8)
NUMBER = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(st.booleans() | NUMBER | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
RECIPES = st.builds(
    Recipe,
    name=TEXT,
    device=TEXT,
    case=st.builds(Case, st.dictionaries(TEXT, VALUE, max_size=3)),
    configuration=st.dictionaries(TEXT, VALUE, max_size=3),
    metric=st.none()
    | st.builds(Metric, TEXT.filter(bool), st.integers(-9, 9), st.none(), st.just(1.5), TEXT),
    speedup=st.none() | st.just(Speedup(1.5, 1.25, math.inf)),
    defended=st.booleans(),
    is_default=st.booleans(),
    trials=st.integers(0, 9),
    files=st.lists(TEXT, max_size=2).map(tuple),
    versions=st.dictionaries(TEXT, TEXT, max_size=2),
    shares=st.dictionaries(TEXT, st.sampled_from([0.0, 0.125, 1.0]), max_size=2),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(RECIPES, max_size=2))
def test_whatever_a_recipe_holds_comes_back(recipes: list[Recipe]) -> None:
    known = Known(tuple(recipes), {"add": SPACE})
    assert read_document(render(known, Path("/nowhere")), "file") == known


def test_the_same_recipes_make_the_same_text(tmp_path: Path) -> None:
    """Whatever the order in which they came: one line a knob, so that a diff shows what changed."""
    files = tmp_path / "a.json", tmp_path / "b.json"
    other = replace(RECIPE, device="another", configuration=dict(reversed(RECIPE.configuration.items())))
    for file, order in zip(files, ((RECIPE, other), (other, RECIPE)), strict=True):
        for recipe in order:
            write_recipe(file, recipe)
    assert files[0].read_text() == files[1].read_text()
    before = files[0].read_text().splitlines()
    write_recipe(files[0], replace(RECIPE, configuration={**RECIPE.configuration, "BLOCK": 512}))
    after = files[0].read_text().splitlines()
    assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == [
        ('    "BLOCK": 1024,', '    "BLOCK": 512,')
    ]


def test_a_later_recipe_replaces_that_of_the_same_case(tmp_path: Path) -> None:
    file = tmp_path / "recipes.json"
    other = replace(RECIPE, case=Case({"n": 512, "causal": True}, {"x": "float16"}))
    better = replace(RECIPE, configuration={"BLOCK": 512})
    for recipe in (RECIPE, other, better, replace(RECIPE, device="another")):
        write_recipe(file, recipe)
    found = read_known(file).recipes
    assert found == (other, better, replace(RECIPE, device="another"))  # by name, device and numbers


def test_a_recipe_for_a_flag_does_not_replace_that_for_the_number_1(tmp_path: Path) -> None:
    flag, number = (replace(RECIPE, case=Case({"causal": value})) for value in (True, 1))
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    for file, order in ((one, (flag, number, flag)), (two, (number, flag))):
        for recipe in order:
            write_recipe(file, recipe)
    assert {type(recipe.case.values["causal"]) for recipe in read_known(one).recipes} == {bool, int}
    assert one.read_text() == two.read_text()


def test_paths_hold_in_another_checkout(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    recipe = replace(RECIPE, folder=str(one / "src"), files=("add.py",))
    space = replace(SPACE, file=str(one / "spaces" / "add.yaml"))
    write_known(one / "tuned" / "recipes.json", Known((recipe,), {"add": space}))
    text = (one / "tuned" / "recipes.json").read_text()
    assert '"folder": "../src"' in text and '"file": "../spaces/add.yaml"' in text
    one.rename(two)
    known = read_known(two / "tuned" / "recipes.json")
    assert known.recipes[0].folder == str(two / "src")
    assert known.spaces["add"].file == str(two / "spaces" / "add.yaml")


def test_a_path_that_is_no_utf8_comes_back(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/odd \xff/objective")
    write_recipe(tmp_path / "recipes.json", replace(RECIPE, folder=odd, files=("a.py",)))
    [recipe] = read_known(tmp_path / "recipes.json").recipes
    assert recipe.folder == odd


def test_what_comes_with_autotune_is_named_as_such(tmp_path: Path) -> None:
    recipe = replace(RECIPE, folder=str(ready_root() / "objectives"), files=("gemm_c.py",))
    space = replace(SPACE, file=str(ready_root() / "searchspaces" / "gemm-c.yaml"))
    known = Known((recipe,), {"add": space})
    write_known(tmp_path / "recipes.json", known)
    text = (tmp_path / "recipes.json").read_text()
    assert '"autotune:objectives"' in text and '"autotune:searchspaces/gemm-c.yaml"' in text
    assert read_known(tmp_path / "recipes.json") == known


def test_the_first_format_is_read(tmp_path: Path) -> None:
    """Files that ``@autotune.kernel`` wrote before there were recipes of studies."""
    file = tmp_path / "recipes.json"
    old = {"kernel": "add", "device": "gpu", "key": {"n": 1}, "types": {}, "configuration": {"B": 1}}
    old |= {"time": 0.5, "speedup": {"estimate": 2.0, "low": 1.5, "high": 2.5}}
    file.write_text(json.dumps({"autotune_recipes": 1, "recipes": [old]}))
    [recipe] = read_known(file).recipes
    assert (recipe.name, recipe.case, recipe.defended) == ("add", Case({"n": 1}), True)
    assert recipe.metric == Metric("time", 0.5, unit="s")
    write_recipe(file, replace(recipe, device="another"))
    assert json.loads(file.read_text())["autotune_recipes"] == 2


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "recipes.json"
    cases = [replace(RECIPE, case=Case({"n": n}, {})) for n in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda recipe: write_recipe(file, recipe), cases))
    assert len(read_known(file).recipes) == 20


def test_one_who_writes_through_a_link_waits_for_the_others(tmp_path: Path) -> None:
    """Each had locked the folder where its own name of the file is, and one lost what the other wrote."""
    file, link = tmp_path / "own" / "recipes.json", tmp_path / "linked" / "recipes.json"
    write_recipe(file, RECIPE)
    link.parent.mkdir()
    link.symlink_to(file)
    cases = [replace(RECIPE, case=Case({"n": n}, {})) for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_recipe, [file, link] * 20, cases))
    assert len(read_known(file).recipes) == 41 and link.is_symlink()


def damaged(**changed: object) -> str:
    """A file with one recipe, in which something is not as it should be."""
    recipe = {"name": "a", "device": "b", "workload": {}, "configuration": {"x": 1}} | changed
    return json.dumps({"autotune_recipes": 2, "recipes": [recipe]}, indent=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "recipes.json:1:2: this is not JSON"),
        ("", "recipes.json:1:1: this is not JSON"),
        ("[" * 100_000, "recipes.json"),
        (damaged(configuration={"x": NESTED}), "recipes.json: this is nested too deeply"),
        ("[]", "recipes.json:1:1: this is no file of recipes"),
        ('{"autotune_recipes": 2}', "this is no file of recipes"),
        ('{"autotune_recipes": 3, "recipes": []}', "1:22: the format of these recipes is 3"),
        ('{"recipes": []}', "the format of these recipes is null"),
        ('{"recipes": [' + "9" * 5000 + "]}", "recipes.json: a number in it is too long"),
        (damaged(workload={"n": 10**400}), "'n' of 'workload' of recipe 0 is 1000"),
        ('{"autotune_recipes": 2, "recipes": [7]}', "1:37: recipe 0 is 7"),
        ('{"autotune_recipes": 2, "recipes": [], "space": {}}', "did you mean 'spaces'?"),
        (damaged(nam="b"), "recipes.json:11:11: recipe 0 has no field 'nam'"),
        (damaged(configuration=1), "recipes.json:8:21: 'configuration' of recipe 0 is 1"),
        (damaged(configuration={"x": None}), "recipes.json:9:10: 'x' of 'configuration' of recipe 0 is null"),
        (damaged(trials=-1), "'trials' of recipe 0 is -1\n  expected: a whole number, 0 or more"),
        (damaged(defended="yes"), "'defended' of recipe 0 is \"yes\"\n  expected: true or false"),
        (damaged(speedup={"low": 1}), "'speedup' of recipe 0 has no estimate"),
        (damaged(speedup={"estimate": "2"}), "'estimate' of 'speedup' of recipe 0 is \"2\""),
        (damaged(metric={"name": "time"}), "'metric' of recipe 0 has no name or no value"),
        (
            damaged(metric={"name": "acc", "value": 1, "goal": "maximise"}),
            '\'goal\' of \'metric\' of recipe 0 is "maximise"\n  expected: "minimize" or "maximize"',
        ),
        (damaged(versions={"numpy": 2}), "'numpy' of 'versions' of recipe 0 is 2"),
        (damaged(files="a.py"), "'files' of recipe 0 is \"a.py\"\n  expected: a list of texts"),
        (json.dumps({"autotune_recipes": 1, "recipes": [{"kernel": "add"}]}), "recipe 0 has no 'workload'"),
        ('{"autotune_recipes": 2, "recipes": [], "spaces": {"a": {}}}', "the space 'a' has no 'knobs'"),
        (
            '{"autotune_recipes": 2, "recipes": [], "spaces": {"a": {"space": {"facts": {"x": 1e999}}}}}',
            "1:76: 'facts' of 'space' of 'a' is {\"x\": Infinity}",
        ),
    ],
)
def test_damage_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "recipes.json"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read_known(file)
    assert says in str(raised.value)
    with pytest.raises(InputError):
        write_recipe(file, RECIPE)
    assert file.read_text() == text


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read_known(tmp_path / "recipes.json")


def test_a_folder_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the recipes cannot be read: Is a directory"):
        read_known(tmp_path)


def test_all_damage_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_text(damaged(trials="many", device=7))
    with pytest.raises(InputError) as raised:
        read_known(tmp_path / "recipes.json")
    assert len(raised.value.problems) == 2


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="name another file"):
        write_recipe(tmp_path / "file" / "recipes.json", RECIPE)
