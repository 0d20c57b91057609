"""What ``autotune.recipe`` answers: which configuration, how it was chosen, and whether it is stale."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import InputError, StoreError
from autotune.hook import recipe as module
from autotune.hook.places import Places
from autotune.hook.recipe_file import write_known
from autotune.hook.recipes import Known
from autotune.hook.stored import import_known, known_in
from autotune.space.knobs import OrderedValues
from autotune.space.space import Space
from autotune.store.store import Store
from tests.hook.stores import add_study

ELSEWHERE = "another processor"


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "store.db"))
    monkeypatch.delenv("AUTOTUNE_RECIPES", raising=False)
    module.forget()
    yield
    module.forget()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.db") as store:
        yield store


def ask(workload: dict[str, Any] | None = None, name: str = "gemm", **more: Any) -> autotune.hook.recipe.Best:
    module.forget()
    return autotune.recipe(name, workload, **more)


# -- which one it is


def test_the_winner_of_this_workload_on_this_device(store: Store) -> None:
    add_study(store)
    best = ask({"n": 1024})
    assert (best.kind, best.stale, best.distance) == ("exact", "", 0.0)
    assert best.configuration == {"tile": 8, "layout": "row"}
    assert "2x [1.9, 2.1] over the default, for this workload, on this device" in best.how
    assert str(best) == f"gemm: {best.how}" and "\n" not in str(best)


@pytest.mark.parametrize("defended", [True, False])
def test_what_the_space_no_longer_has_is_no_recipe(store: Store, defended: bool) -> None:
    add_study(store, verdict=defended)
    study = store.study("gemm")
    assert ask({"n": 1024}).configuration["tile"] == 8
    narrower = {**study.document, "space": Space([OrderedValues("tile", (1, 2, 4))]).to_document()}
    store.update_space(study.id, "", narrower, "narrower")
    best = ask({"n": 1024})
    assert (best.kind, best.configuration) == ("default", {"tile": 1})


def test_the_nearest_workload_then_another_device_then_the_default(store: Store) -> None:
    add_study(store, tile=4, device=ELSEWHERE)
    add_study(store, workload={"n": 512}, tile=2, device=ELSEWHERE)
    elsewhere = ask({"n": 600})
    assert (elsewhere.kind, elsewhere.configuration["tile"]) == ("device", 2)
    assert f"on another device, {ELSEWHERE}" in elsewhere.how and "n 512 for 600" in elsewhere.how
    add_study(store, workload={"n": 4096}, tile=16)
    nearest = ask({"n": 1024})
    assert (nearest.kind, nearest.configuration["tile"], nearest.distance) == ("nearest", 16, 2.0)
    assert "the nearest workload, n 4096 for 1024" in nearest.how and "distance 2," in nearest.how
    assert ask({"n": 2}).configuration["tile"] == 2  # 16 and 4 are more than the space allows for 2
    default = ask({"n": 1})
    assert (default.kind, default.configuration) == ("default", {"tile": 1, "layout": "row"})
    assert "none of 3 recipes" in default.how


def test_the_better_defended_of_several_studies_counts(store: Store) -> None:
    add_study(store, tile=2, verdict=False)
    assert "not defended" in ask({"n": 1024}).how
    add_study(store, tile=4, speedup={"against": "the default", "estimate": 1.5, "low": 1.4, "high": 1.6})
    assert ask({"n": 1024}).configuration["tile"] == 4
    add_study(store, tile=8)
    add_study(store, tile=16, speedup={"against": "the default", "estimate": 3.0, "low": 1.0, "high": 9.0})
    assert ask({"n": 1024}).configuration["tile"] == 8


def test_this_very_machine_comes_before_one_like_it(store: Store) -> None:
    add_study(store, tile=4, machine="more cores")
    like = ask({"n": 1024})
    assert like.kind == "exact" and "in another machine" in like.how
    add_study(store, tile=8, verdict=False)
    assert ask({"n": 1024}).configuration["tile"] == 8


def test_no_better_than_the_default_is_said(store: Store) -> None:
    add_study(store, tile=1, is_default=True, speedup={"against": "", "estimate": 1, "low": 1, "high": 1})
    best = ask({"n": 1024})
    assert best.configuration["tile"] == 1
    assert "the default: none of 1 trial was shown to be better" in best.how


def test_a_study_in_which_nothing_succeeded_leaves_the_default(store: Store) -> None:
    add_study(store, succeeded=False)
    best = ask({"n": 1024})
    assert (best.kind, best.configuration["tile"]) == ("default", 1)


def test_a_ready_space_that_nobody_tuned_has_its_default() -> None:
    best = ask({"m": 64, "n": 64, "k": 64}, name="gemm-c")
    assert (best.kind, best.configuration["order"]) == ("default", ("j", "k", "i"))
    assert "nothing is known of gemm-c yet" in best.how


# -- the workload


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


# -- where it is looked for


def filed(store: Store, file: Path) -> Path:
    write_known(file, known_in(store.url.removeprefix("sqlite:///")))
    return file


def test_a_committed_file_comes_before_the_store(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4)
    file = filed(store, tmp_path / "tuned" / "recipes.json")
    add_study(store, tile=8, speedup={"against": "", "estimate": 3.0, "low": 2.9, "high": 3.1})
    assert ask({"n": 1024}).configuration["tile"] == 8
    assert ask({"n": 1024}, recipes=file).configuration["tile"] == 4
    add_study(store, workload={"n": 64}, tile=2)
    assert ask({"n": 64}, recipes=file).configuration["tile"] == 2  # what the file has not, the store has


def test_the_files_of_the_variable_and_of_the_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_study(store, tile=4)
    file = filed(store, tmp_path / "tuned" / "recipes.json")
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    with pytest.raises(InputError):
        ask({"n": 1024})
    monkeypatch.setenv("AUTOTUNE_RECIPES", str(file))
    assert ask({"n": 1024}).configuration["tile"] == 4
    monkeypatch.setenv("AUTOTUNE_RECIPES", "1")  # switches recipes on in a program, and names no file
    monkeypatch.chdir(file.parent)
    assert ask({"n": 1024}).configuration["tile"] == 4
    monkeypatch.setenv("AUTOTUNE_RECIPES", str(tmp_path / "missing.json"))
    with pytest.raises(InputError, match="there is no such file"):
        ask({"n": 1024})


def test_two_devices_in_one_file(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4, device=ELSEWHERE)
    add_study(store, tile=8)
    file = filed(store, tmp_path / "recipes.json")
    best = ask({"n": 1024}, recipes=file, store=tmp_path / "none.db")
    assert (best.kind, best.configuration["tile"]) == ("exact", 8)


def test_a_file_knows_the_constraints_and_the_default(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=8)
    file = filed(store, tmp_path / "recipes.json")
    elsewhere = {"recipes": file, "store": tmp_path / "none.db"}
    assert ask({"n": 512}, **elsewhere).configuration["tile"] == 8
    assert ask({"n": 4}, **elsewhere).configuration["tile"] == 1


def test_what_was_imported_is_found(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4)
    other = tmp_path / "other.db"
    with Store.open(other) as opened:
        assert import_known(opened, known_in(store.url.removeprefix("sqlite:///"))) == 1
    best = ask({"n": 1024}, store=other)
    assert (best.kind, best.configuration["tile"]) == ("exact", 4)
    assert ask({"n": 2}, store=other).kind == "default"


def test_a_store_that_fails_is_passed_over_unless_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database " * 100)
    with pytest.warns(UserWarning, match="the recipe is chosen without the store"):
        assert ask({"m": 64}, name="gemm-c").kind == "default"
    with pytest.raises(StoreError):
        ask({"m": 64}, name="gemm-c", store=tmp_path / "store.db")


def test_a_store_with_nothing_in_it_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert ask({"m": 64}, name="gemm-c", store="empty.db").kind == "default"
    with pytest.raises(InputError, match="no recipe and no study 'gemm'"):
        ask({"m": 64}, store="empty.db")
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_a_store_in_memory_is_refused_where_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is in memory, and what others keep there cannot be read"):
        ask({"m": 64}, name="gemm-c", store="sqlite://")
    monkeypatch.setenv("AUTOTUNE_STORE", "sqlite://")
    with pytest.warns(UserWarning, match="is in memory"):
        assert ask({"m": 64}, name="gemm-c").kind == "default"


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_text("{")
    with pytest.raises(InputError, match=r"recipes.json:1:2"):
        ask({"m": 64}, name="gemm-c")


def test_a_store_that_is_only_read(store: Store, tmp_path: Path) -> None:
    add_study(store)
    store.close()
    file = tmp_path / "store.db"
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert ask({"n": 1024}).kind == "exact"
    finally:
        tmp_path.chmod(0o755)


# -- stale


def test_what_changed_since_is_said(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "gemm.py"
    source.write_text("import sklearn, autotune\nimport numpy.linalg as la\n")
    add_study(store, source=source, packages={"numpy": "0.1", "scikit-learn": "0.2", "torch": "0.3"})
    best = ask({"n": 1024})
    assert best.configuration["tile"] == 8
    said = best.stale.split("; ")
    assert [line.partition(" ->")[0] for line in said] == ["numpy 0.1", "scikit-learn 0.2"]
    source.write_text("import numpy\n")
    assert "the objective's source changed" in ask({"n": 1024}).stale
    source.unlink()  # where it does not lie, nothing can be said of it
    assert "source" not in ask({"n": 1024}).stale


def test_a_recipe_of_another_device_is_not_stale_for_its_versions(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "gemm.py"
    source.write_text("import numpy\n")
    add_study(store, source=source, packages={"numpy": "0.1"}, device=ELSEWHERE)
    assert ask({"n": 1024}).stale == ""


# -- asked again


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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda best: pickle.loads(pickle.dumps(best))])
def test_an_answer_can_be_pickled_and_copied(store: Store, copied: Callable[[Any], Any]) -> None:
    add_study(store, workload={"shape": [64, 32], "link": {"n": 8}})
    for best in (ask(), ask({"shape": [64, 32], "link": {"n": 2}}), ask({"shape": [1, 2], "link": {"m": 1}})):
        again = copied(best)
        assert again == best and str(again) == str(best)
        with pytest.raises(TypeError, match="not to be changed"):
            again.configuration.update(tile=1)
        with pytest.raises(TypeError, match="not to be changed"):
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
