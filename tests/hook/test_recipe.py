"""``autotune.recipe`` asked again: what is kept, and when it is looked up anew."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import InputError
from autotune.hook import recipe as module
from autotune.hook.recipes.places import Places
from autotune.hook.recipes.recipe import Known
from autotune.hook.recipes.stored import known_in
from autotune.store.store import Store
from tests.hook.asking import ask, filed
from tests.hook.stores import add_study

pytestmark = pytest.mark.usefixtures("nothing_is_kept")


@pytest.fixture
def deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is one that was deleted."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


@pytest.mark.usefixtures("deleted")
def test_where_the_current_folder_was_deleted_nothing_is_found_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    workload = {"m": 64, "n": 64, "k": 64, "dtype": "float32"}
    assert [autotune.recipe("gemm-c", workload).kind for _ in range(2)] == ["default", "default"]
    for place in ({}, {"recipes": "recipes.json"}, {"store": "study.db"}):
        with pytest.raises(InputError):
            autotune.recipe("nothing of this name", **place)


def test_asked_again_it_is_the_same_answer(store: Store) -> None:
    add_study(store)
    best = autotune.recipe("gemm", {"n": 1024})
    assert autotune.recipe("gemm", workload={"n": 1024}) is best
    workload = {"n": 1024}
    assert autotune.recipe("gemm", workload) is best
    workload["n"] = 512  # the same dictionary, and another question
    assert autotune.recipe("gemm", workload).kind == "nearest"
    with pytest.raises(TypeError):
        best.configuration["tile"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    "workload",
    [
        {"n": 1024, "link": {"bandwidth": 1.0e9, "latency": 0.0}},
        {"devices": [{"cpu": 1}, {"cpu": 0.5, "fast": True}]},
        {"shape": (64, 1)},
    ],
)
def test_asked_again_with_lists_and_mappings_nothing_is_looked_at(
    store: Store, workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_SECONDS", float("inf"))
    add_study(store, workload=workload)
    best = autotune.recipe("gemm", copy.deepcopy(workload))

    def look(*_: object) -> None:
        raise AssertionError("it was looked up again")

    monkeypatch.setattr(module, "_answer", look)
    assert best.kind == "exact" and autotune.recipe("gemm", workload) is best


def test_in_a_mapping_numbers_of_numpy_are_as_others(store: Store) -> None:
    add_study(store, workload={"link": {"bandwidth": 1.0e9}})
    for number in (np.float64(1e9), np.float32(1e9), np.int64(10**9), 10**9):
        for _ in range(2):
            assert autotune.recipe("gemm", {"link": {"bandwidth": number}}).kind == "exact"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda best: pickle.loads(pickle.dumps(best))])
def test_an_answer_can_be_pickled_and_copied(store: Store, copied: Callable[[Any], Any]) -> None:
    add_study(store, workload={"shape": [64, 32], "link": {"n": 8}})
    for best in (ask(), ask({"shape": [64, 32], "link": {"n": 2}}), ask({"shape": [1, 2], "link": {"m": 1}})):
        again = copied(best)
        assert again == best and str(again) == str(best)
        with pytest.raises(TypeError, match="an answer is read-only"):
            again.configuration.update(tile=1)
        with pytest.raises(TypeError, match="an answer is read-only"):
            again.workload.pop("shape")
    assert json.loads(json.dumps(best.configuration)) == best.configuration


def test_true_is_not_one(store: Store) -> None:
    add_study(store, workload={"causal": True}, tile=2)
    add_study(store, workload={"causal": 1}, tile=4)
    for _ in range(2):
        assert autotune.recipe("gemm", {"causal": True}).configuration["tile"] == 2
        assert autotune.recipe("gemm", {"causal": 1}).configuration["tile"] == 4


def test_true_is_not_one_in_a_list_either(store: Store) -> None:
    add_study(store, workload={"flags": [True, False]}, tile=2)
    add_study(store, workload={"flags": [1, 0]}, tile=4)
    for kind in (list, tuple):
        for _ in range(2):
            assert autotune.recipe("gemm", {"flags": kind((True, False))}).configuration["tile"] == 2
            assert autotune.recipe("gemm", {"flags": kind((1, 0))}).configuration["tile"] == 4


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_SECONDS", -1.0)  # looked at each time
    add_study(store, workload={"n": 512}, tile=4)
    file = filed(store, tmp_path / "recipes.json")
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    read = Places.filed

    def read_and_written(places: Places) -> Known:
        known = read(places)
        if len(known.recipes) == 1:
            add_study(store, tile=8)
            filed(store, file)
        return known

    monkeypatch.setattr(Places, "filed", read_and_written)
    assert autotune.recipe("gemm", {"n": 1024}, recipes=file).kind == "nearest"
    assert autotune.recipe("gemm", {"n": 1024}, recipes=file).configuration["tile"] == 8


def test_what_is_new_in_the_store_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_SECONDS", -1.0)  # looked at each time
    add_study(store, workload={"n": 512}, tile=4)
    first = autotune.recipe("gemm", {"n": 1024})
    assert first.kind == "nearest"
    add_study(store, tile=8)
    assert autotune.recipe("gemm", {"n": 1024}).configuration["tile"] == 8


def test_a_changed_variable_is_noticed_at_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_study(store)
    assert autotune.recipe("gemm", {"n": 1024}).kind == "exact"
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    with pytest.raises(InputError):
        autotune.recipe("gemm", {"n": 1024})


def test_from_a_file_nothing_heavy_is_loaded(store: Store, tmp_path: Path) -> None:
    add_study(store)
    file = filed(store, tmp_path / "recipes.json")
    program = (
        "import sys, autotune\n"
        f"assert autotune.recipe('gemm', {{'n': 1024}}, recipes={str(file)!r}).kind == 'exact'\n"
        "print(*{'numpy', 'sqlalchemy', 'ruamel', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_of_one_name(store: Store) -> None:
    add_study(store)
    add_study(store, name="conv")
    url = store.url.removeprefix("sqlite:///")
    assert {recipe.name for recipe in known_in(url).recipes} == {"gemm", "conv"}
    assert [recipe.name for recipe in known_in(url, "conv").recipes] == ["conv"]
    assert known_in(url + ".none") == Known()
