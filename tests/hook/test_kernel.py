"""Kernels under ``@autotune.kernel``, run for real in Triton's interpreter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.hook.kernels import kernel_child
from tests.objectives.triton_child import child, needs_triton

pytestmark = [pytest.mark.torch, needs_triton]


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with child(interpret=True) as pool:
        yield pool


def run(process: ProcessPoolExecutor, function: Any, *arguments: Any, **more: Any) -> Any:
    return process.submit(function, *arguments, **more).result()


def recipe(folder: Path, n: int, block: int, **more: Any) -> None:
    """One line more in the file of recipes."""
    file = folder / "recipes.json"
    found = json.loads(file.read_text()) if file.exists() else {"autotune_recipes": 1, "recipes": []}
    new = {
        "kernel": "add",
        "device": "Triton's interpreter",
        "key": {"n": n},
        "types": dict.fromkeys(("x", "y", "out"), "float32"),
        "configuration": {"BLOCK": block, "num_warps": 8},
        **more,
    }
    file.write_text(json.dumps({**found, "recipes": [*found["recipes"], new]}))


def test_without_recipes_a_launch_takes_the_default_and_tunes_nothing(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    found = run(process, kernel_child.launch, tmp_path)
    assert found["right"]
    assert (found["how"], found["configuration"]) == ("default", {"BLOCK": 16, "num_warps": 4})
    assert not list(tmp_path.iterdir())


def test_the_recipe_of_the_case_or_the_nearest_is_taken(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    recipe(tmp_path, 20, 32)
    recipe(tmp_path, 400, 16)
    recipe(tmp_path, 21, 64)  # no value of the knob any more
    recipe(tmp_path, 22, 16, types={"x": "float16"})
    recipe(tmp_path, 22, 16, device="another")
    exact = run(process, kernel_child.launch, tmp_path, 20)
    near = run(process, kernel_child.launch, tmp_path, 22)
    far = run(process, kernel_child.launch, tmp_path, 200)
    assert (exact["how"], exact["configuration"]["BLOCK"], exact["distance"]) == ("exact", 32, 0.0)
    assert (near["how"], near["configuration"]["BLOCK"]) == ("nearest", 32)
    assert (far["how"], far["configuration"]["BLOCK"], far["distance"]) == ("nearest", 16, pytest.approx(1.0))
    assert exact["right"] and near["right"] and far["right"]


def test_a_tuned_kernel_is_shown_by_its_name_and_key(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    assert run(process, kernel_child.shown, tmp_path) == "<autotune.kernel add, key: n>"


def test_constraints_may_speak_of_the_case(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    recipe(tmp_path, 40, 32)
    rules = ["BLOCK <= n"]
    assert run(process, kernel_child.launch, tmp_path, 33, constraints=rules)["configuration"]["BLOCK"] == 32
    assert run(process, kernel_child.launch, tmp_path, 31, constraints=rules)["configuration"]["BLOCK"] == 16


def test_a_recipe_of_another_source_is_taken_and_called_stale(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    recipe(tmp_path, 20, 32, source="0123456789abcdef")
    found = run(process, kernel_child.launch, tmp_path)
    assert (found["how"], found["stale"]) == ("exact", True)


def test_a_stale_recipe_is_tuned_anew_where_tuning_is_asked_for(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """An edited kernel had kept its configuration, whatever asked for tuning."""
    recipe(tmp_path, 12, 32, source="0123456789abcdef")
    assert run(process, kernel_child.launch_asked, tmp_path) == ("exact", True)
    [written] = json.loads((tmp_path / "recipes.json").read_text())["recipes"]
    assert written["study"] and run(process, kernel_child.launch, tmp_path, 12)["stale"] is False


def test_a_recipe_of_another_triton_is_measured_anew_where_tuning_is_asked_for(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """The study of an unchanged kernel would go on, and give what was measured with the other Triton."""
    file = tmp_path / "recipes.json"
    run(process, kernel_child.tune, tmp_path, 12)
    document = json.loads(file.read_text())
    [before] = document["recipes"]
    now = before["versions"]["triton"]
    before["versions"]["triton"] = "1.0.0"
    file.write_text(json.dumps(document))
    assert run(process, kernel_child.launch, tmp_path, 12)["stale"] is True
    assert run(process, kernel_child.launch_asked, tmp_path) == ("exact", True)
    [after] = json.loads(file.read_text())["recipes"]
    assert after["versions"]["triton"] == now and after["study"] != before["study"]
    assert run(process, kernel_child.launch, tmp_path, 12)["stale"] is False


def test_tuning_writes_a_recipe_that_later_launches_take(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    tuned = run(process, kernel_child.tune, tmp_path, 12)
    assert (len(tuned["tried"]), tuned["how"]) == (3, "exact")
    found = run(process, kernel_child.launch, tmp_path, 13)
    assert (found["how"], found["configuration"]) == ("nearest", tuned["best"])
    [written] = json.loads((tmp_path / "recipes.json").read_text())["recipes"]
    assert written["workload"] == {"n": 12}
    assert written["configuration"] == tuned["best"]
    assert set(written) >= {
        "name",
        "device",
        "types",
        "metric",
        "trials",
        "source",
        "versions",
        "study",
        "tuned",
    }
    (tmp_path / "recipes.json").unlink()  # the store knows it still
    again = run(process, kernel_child.launch, tmp_path, 12)
    assert (again["configuration"], again["stale"]) == (tuned["best"], False)


def test_what_won_in_other_cases_is_tried_first(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    recipe(tmp_path, 400, 32, device="another")
    assert run(process, kernel_child.tune, tmp_path, 12)["tried"][1] == {"BLOCK": 32, "num_warps": 8}


def test_a_call_tunes_where_it_is_asked_to(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    assert run(process, kernel_child.launch_asked, tmp_path, tune="never") == ("default", False)
    assert run(process, kernel_child.launch_asked, tmp_path) == ("exact", True)


def test_where_there_was_only_room_for_the_default_the_nearest_case_knows_more(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """It was filed as the recipe of its case, and kept the launch from that of its neighbour ever after."""
    recipe(tmp_path, 13, 32)
    before = (tmp_path / "recipes.json").read_text()
    how, configuration, [said] = run(process, kernel_child.launch_tuned_too_shortly, tmp_path, 12)
    assert (how, configuration) == ("nearest", {"BLOCK": 32, "num_warps": 8})
    assert "tuning add for n 12: there was only room for the default (1 trial)" in said
    assert (tmp_path / "recipes.json").read_text() == before
    recipe(tmp_path, 12, 16, configuration={"BLOCK": 16, "num_warps": 4}, is_default=True, trials=1)
    assert run(process, kernel_child.launch, tmp_path, 12)["how"] == "nearest", "filed by an earlier version"


def test_what_was_tuned_and_cannot_be_filed_is_taken_from_the_store(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    how, known, said = run(process, kernel_child.launch_asked_in_vain, tmp_path, recipes="/proc/recipes.json")
    assert (how, known, len(said)) == ("exact", True, 1)
    assert said[0].startswith("tuning add: cannot write /proc/recipes.json")


def test_a_call_that_cannot_be_tuned_takes_what_it_took_and_is_tuned_no_more(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    store = tmp_path / "none.db"
    store.mkdir()
    how, known, said = run(process, kernel_child.launch_asked_in_vain, tmp_path, store=str(store))
    assert (how, known, len(said)) == ("default", False, 1)
    assert said[0].startswith("tuning add: ")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"key": ["m"]}, "the kernel add has no parameter 'm'"),
        ({"key": "n"}, "key is the text 'n'"),
        ({"written": ["nope"]}, "has no parameter 'nope', which written names"),
        ({"written": ["ou"]}, "did you mean 'out'?"),
        ({"space": {"BLOCK": [16, None]}}, "the knob 'BLOCK' cannot be tuned over [16, None]"),
        ({"space": {1: [16]}}, "space has 1 in it"),
        ({"space": {"BLOK": [16, 32]}}, "did you mean 'BLOCK'?"),
        ({"space": {"BLOCK": [16], "num_warp": [4]}}, "did you mean 'num_warps'?"),
        ({"space": {"n": [16]}}, "has no parameter 'n' to be tuned"),
        ({"space": {"BLOCK": {"value": [16]}}}, "did you mean 'values'?"),
        ({"space": "missing.yaml"}, "there is no such file"),
        ({"constraints": ["BLOCK <= k"]}, "no knob or workload fact 'k'"),
        ({"key": ["x"]}, "the key 'x' is a Tensor"),
        ({"tune": "always"}, "'ask' or 'never'"),
    ],
)
def test_what_is_misspelt_is_said(
    process: ProcessPoolExecutor, tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    assert says in run(process, kernel_child.error_of, tmp_path, **settings)


@pytest.mark.parametrize(
    ("placed", "named", "knob"),
    [((16,), {}, "BLOCK"), ((), {"BLOCK": 16}, "BLOCK"), ((), {"num_warps": 4}, "num_warps")],
)
def test_a_call_that_gives_what_is_tuned_is_told_so(
    process: ProcessPoolExecutor, tmp_path: Path, placed: tuple[int, ...], named: dict[str, int], knob: str
) -> None:
    """It ended in a TypeError, of the function's argument that has two values."""
    found = run(process, kernel_child.errors_of_calls, tmp_path, *placed, **named)
    assert len(found) == 3
    assert all(f"this call of the kernel add gives {knob}, which is tuned" in one for one in found)


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize(("in_place", "answered"), [(False, False), (True, False), (False, True)])
def test_wrong_configurations_are_found(
    process: ProcessPoolExecutor, stride: int, in_place: bool, answered: bool
) -> None:
    assert run(process, kernel_child.verdict, 0, stride, in_place, answered) == ""
    for fault in (1, 2, 3, 5) if in_place else (1, 2, 3, 4, 5):
        assert run(process, kernel_child.verdict, fault, stride, in_place, answered), fault


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_read_past_the_end_of_a_tensor_passes_for_no_zero(
    process: ProcessPoolExecutor, dtype: str
) -> None:
    right, *wrong = run(process, kernel_child.verdict_past_the_end, dtype)
    assert not right and all(said.startswith("out[0] is nan") for said in wrong)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_copy_of_what_lies_behind_an_input_is_noticed_behind_an_output(
    process: ProcessPoolExecutor, dtype: str
) -> None:
    """The same bytes had lain behind both, so nothing seemed to have been written there."""
    found = run(process, kernel_child.verdict_of_copies, dtype)
    assert found == ["", "writes outside out", "writes outside out"]


def test_where_nothing_seems_to_be_written_it_must_be_said(process: ProcessPoolExecutor) -> None:
    assert "written=[...]" in run(process, kernel_child.unwritten)


@pytest.mark.parametrize("dtype", ["float32", "float8_e5m2", "int8", "uint16", "uint32"])
@pytest.mark.parametrize("expanded", [False, True])
def test_tensors_of_any_type_and_expanded_ones_can_be_tuned_with(
    process: ProcessPoolExecutor, dtype: str, expanded: bool
) -> None:
    assert run(process, kernel_child.overwritten, dtype, expanded) == ["out"]


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_copies_have_the_layout_of_their_originals(process: ProcessPoolExecutor, offset: int) -> None:
    assert run(process, kernel_child.copied, offset)


def test_all_ranks_take_the_choice_of_the_first(tmp_path: Path) -> None:
    with child(interpret=True) as one, child(interpret=True) as other:
        ranks = [pool.submit(kernel_child.rank, n, 2, str(tmp_path)) for n, pool in enumerate((one, other))]
        found = [rank.result() for rank in ranks]
    assert [rank["right"] for rank in found] == [True, True]
    assert [rank["configuration"] for rank in found] == [{"BLOCK": 16}, {"BLOCK": 16}]
