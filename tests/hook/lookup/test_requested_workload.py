"""The workload that a recipe is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import InputError
from autotune.store.store import Store
from tests.hook.asking import ask
from tests.hook.stores import add_study

pytestmark = pytest.mark.usefixtures("nothing_is_kept")


def test_what_all_recipes_share_may_be_left_out(store: Store) -> None:
    add_study(store, workload={"n": 1024, "dtype": "float32"})
    best = ask({"n": 1024})
    assert best.workload == {"n": 1024, "dtype": "float32"} and 'assumed: dtype "float32"' in best.how
    assert ask().kind == "exact"
    add_study(store, workload={"n": 1024, "dtype": "float16"})
    with pytest.raises(InputError) as raised:
        ask({"n": 1024})
    assert "the workload of gemm does not say 'dtype'" in str(raised.value)
    assert '"float16" or "float32"' in str(raised.value)


def test_what_nobody_knows_is_refused(store: Store) -> None:
    add_study(store, workload={"n": 1024, "dtype": "float32"})
    with pytest.raises(InputError, match=r"(?s)has no 'dtyp'.*did you mean 'dtype'"):
        ask({"n": 1024, "dtyp": "float32"})
    add_study(store, name="plain", workload={})
    assert ask(name="plain").kind == "exact"
    with pytest.raises(InputError, match=r"(?s)the workload of plain has no 'n'.*expected: none"):
        ask({"n": 1024}, name="plain")
    with pytest.raises(InputError, match=r"(?s)no recipe and no study 'gem'.*did you mean 'gemm'"):
        ask(name="gem")


def test_another_category_is_no_near_workload(store: Store) -> None:
    add_study(store, workload={"n": 1024, "dtype": "float32"})
    assert ask({"n": 1024, "dtype": "float16"}).kind == "default"


def test_numbers_of_numpy_and_lists_are_as_good(store: Store) -> None:
    add_study(store, workload={"shape": [64, 32], "n": 8})
    assert ask({"shape": (np.int64(64), 32), "n": np.int64(8)}).kind == "exact"
    assert ask({"shape": [64, 64], "n": 8}).distance == 1.0


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        ({"n": None}, "'n' of the workload is None"),
        ({"n": np.array([8])}, r"(?s)'n' of the workload is of the type ndarray.*tolist\(\)"),
        ({"link": {"n": 1j}}, "'link.n' of the workload is of the type complex"),
        ({"n": 10**400}, "'n' of the workload is too large"),
        ({1: 2}, "a fact of the workload is named 1"),
        ([("n", 8)], "(?s)the workload is of the type list.*facts by their names"),
        ("n", "the workload is of the type str"),
        ({"n": "many"}, r"(?s)cannot be made for \{'n': 'many'\}.*'n' is a text.*one like \{'n': 1024\}"),
    ],
)
def test_what_is_no_workload_is_said(store: Store, workload: Any, says: str) -> None:
    add_study(store)
    with pytest.raises(InputError, match=says):
        ask(workload)


@pytest.mark.parametrize("name", [None, 3, "", ["gemm"]])
def test_without_a_name_nothing_is_answered(store: Store, name: Any) -> None:
    add_study(store)
    for _ in range(2):
        with pytest.raises(InputError, match="the name of a study or kernel is expected, not"):
            autotune.recipe(name, {"n": 1024})


def test_a_place_is_one_file() -> None:
    with pytest.raises(InputError, match="recipes is of the type list"):
        ask(recipes=["a.json", "b.json"])


def test_a_recording_is_no_recipe(store: Store) -> None:
    add_study(store, replayed=True)
    with pytest.raises(InputError, match="comes from a recording"):
        ask({"n": 1024})
