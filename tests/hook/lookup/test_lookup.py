"""Which recipe is the answer, how it was chosen, and whether it is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.hook.lookup.known_failures import Failures, failures_in
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.this_device import this_device
from autotune.space.knobs import OrderedValues
from autotune.space.space import Space
from autotune.store.store import Store
from tests.hook.asking import ELSEWHERE, ask, filed
from tests.hook.stores import add_study

pytestmark = pytest.mark.usefixtures("nothing_is_kept")


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
    space = Space([OrderedValues("tile", (1, 2, 4))], workload={"n": 1024})
    narrower = {**study.document, "space": space.to_document()}
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


def test_of_a_workload_whose_default_alone_was_tried_the_nearest_knows_more(
    store: Store, tmp_path: Path
) -> None:
    """A search that only had room for its default kept a program from a neighbour's winner ever after."""
    add_study(store, tile=1, verdict=False, is_default=True)
    alone = ask({"n": 1024})
    assert (alone.kind, alone.configuration["tile"]) == ("exact", 1)
    file = filed(store, tmp_path / "recipes.json")
    add_study(store, workload={"n": 4096}, tile=16)
    for recipes in (None, file):
        best = ask({"n": 1024}, recipes=recipes)
        assert (best.kind, best.configuration["tile"]) == ("nearest", 16)


def test_what_failed_for_this_workload_is_passed_over(store: Store) -> None:
    add_study(store, workload={"n": 512}, tile=8)
    add_study(store, workload={"n": 4096}, tile=16)
    add_study(store, workload={"n": 600}, tile=8, succeeded=False)
    next_nearest = ask({"n": 600})
    assert (next_nearest.kind, next_nearest.configuration["tile"]) == ("nearest", 16)
    assert next_nearest.how.endswith("passed over: the winner for n 512 crashed in gemm#3:0")
    add_study(store, workload={"n": 600}, tile=16, succeeded=False)
    default = ask({"n": 600})
    assert (default.kind, default.configuration["tile"]) == ("default", 1)
    assert "each recipe has failed here" in default.how
    add_study(store, workload={"n": 600}, tile=1, succeeded=False)
    assert ask({"n": 600}).how.endswith("it crashed in gemm#5:0 itself")
    assert ask({"n": 513}).configuration["tile"] == 8


def test_a_failure_elsewhere_or_of_other_files_says_nothing_here(store: Store, tmp_path: Path) -> None:
    source, other = tmp_path / "gemm.py", tmp_path / "other.py"
    source.write_text("one = 1")
    other.write_text("two = 2")
    add_study(store, workload={"n": 512}, tile=8, source=source)
    add_study(store, workload={"n": 600}, tile=8, succeeded=False, device=ELSEWHERE, source=source)
    assert ask({"n": 600}).kind == "nearest"
    add_study(store, workload={"n": 600}, tile=8, succeeded=False, source=other)
    assert ask({"n": 600}).kind == "nearest"
    add_study(store, workload={"n": 600}, tile=8, succeeded=False, machine="more cores", source=source)
    assert ask({"n": 600}).kind == "default"


def test_what_failed_once_and_worked_is_no_failure(store: Store) -> None:
    add_study(store, workload={"n": 512}, tile=8)
    add_study(store, workload={"n": 600}, tile=8, succeeded=False)
    here = this_device().names
    assert failures_in(store.url, "gemm", Case({"n": 600}), here).of({"tile": 8, "layout": "row"})
    add_study(store, workload={"n": 600}, tile=8, machine="more cores")
    assert failures_in(store.url, "gemm", Case({"n": 600}), here) == Failures()
    assert failures_in(store.url, "none", Case({"n": 600}), here) == Failures()


def test_the_better_defended_of_several_studies_counts(store: Store) -> None:
    add_study(store, tile=2, verdict=False)
    assert "not defended" in ask({"n": 1024}).how
    add_study(store, tile=4, speedup={"against": "the default", "estimate": 1.5, "low": 1.4, "high": 1.6})
    assert ask({"n": 1024}).configuration["tile"] == 4
    add_study(store, tile=8)
    add_study(store, tile=16, speedup={"against": "the default", "estimate": 3.0, "low": 1.0, "high": 9.0})
    assert ask({"n": 1024}).configuration["tile"] == 8


def test_the_winner_of_the_present_source_comes_before_a_larger_gain_of_another(
    store: Store, tmp_path: Path
) -> None:
    source = tmp_path / "gemm.py"
    for text, tile, gain in (("before", 8, 3.0), ("now", 4, 1.5)):
        source.write_text(text)
        speedup = {"against": "the default", "estimate": gain, "low": gain - 0.1, "high": gain + 0.1}
        add_study(store, tile=tile, speedup=speedup, source=source)
    best = ask({"n": 1024})
    assert (best.configuration["tile"], best.stale) == (4, "")
    source.write_text("before")
    best = ask({"n": 1024})
    assert (best.configuration["tile"], best.stale) == (8, "")


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
