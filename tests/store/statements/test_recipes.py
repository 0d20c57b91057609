"""Imported recipes, on every backend."""

from __future__ import annotations

from collections.abc import Callable

from autotune.store.records import NewRecipe
from autotune.store.store import Store
from tests.store.build import Clock


def recipe(name: str = "gemm", device: str = "cpu", case: str = "[{}]", tile: int = 1) -> NewRecipe:
    return NewRecipe(name, device, case, {"recipe": {"configuration": {"tile": tile, "odd": "é\u2028"}}})


def test_they_come_back_the_newest_first(store: Store, clock: Clock) -> None:
    assert store.recipes() == []
    store.put_recipes([recipe(), recipe(device="gpu")])
    clock.advance(5)
    store.put_recipes([recipe(name="conv")])
    assert [(r.name, r.device) for r in store.recipes()] == [
        ("conv", "cpu"),
        ("gemm", "gpu"),
        ("gemm", "cpu"),
    ]
    assert [r.device for r in store.recipes("gemm")] == ["gpu", "cpu"]
    assert store.recipes("gemm")[0].document == recipe().document
    assert store.recipes()[0].imported_at == clock.now
    assert store.integrity() == []


def test_one_takes_the_place_of_another_of_its_name_device_and_case(store: Store) -> None:
    store.put_recipes([recipe(), recipe(case="[1]")])
    store.put_recipes([recipe(tile=2)])
    found = {r.case: r.document["recipe"]["configuration"]["tile"] for r in store.recipes()}
    assert found == {"[{}]": 2, "[1]": 1}


def test_they_stay(shared_url: str, open_store: Callable[[str], Store]) -> None:
    first = open_store(shared_url)
    first.put_recipes([recipe()])
    first.close()
    assert len(open_store(shared_url).recipes("gemm")) == 1
