"""The cache of prepared data: made once, shared read only, whole entries or none, bounded, never stale."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from numpy.typing import NDArray

from autotune.measure.kernels.compile_cache import cache_key
from autotune.measure.objective import Context, Objective
from autotune.measure.prepared_data import PreparedData

Made = Mapping[str, NDArray[np.generic]]


@pytest.fixture
def cache(tmp_path: Path) -> PreparedData:
    return PreparedData(tmp_path / "data")


def numbers() -> Made:
    return {"x": np.arange(12.0).reshape(3, 4), "y": np.array([1, 2, 3])}


def never() -> Made:
    raise AssertionError("it was made again")


def files(cache: PreparedData) -> list[Path]:
    return sorted(cache.folder.glob("??/*/*.npy"))


def test_what_was_made_once_is_not_made_again(cache: PreparedData) -> None:
    cache.arrays(numbers, raw="abc", width="4")
    again = PreparedData(cache.folder).arrays(never, width="4", raw="abc")
    assert {name: array.tolist() for name, array in again.items()} == {
        name: array.tolist() for name, array in numbers().items()
    }


def test_what_is_handed_out_is_shared_and_cannot_be_changed(cache: PreparedData) -> None:
    found = cache.arrays(numbers, raw="abc")["x"]
    assert isinstance(found, np.memmap) and not found.flags.writeable


def test_an_entry_that_cannot_be_read_now_stays(cache: PreparedData) -> None:
    cache.arrays(numbers, raw="abc")
    [file, _] = files(cache)
    aside = file.rename(cache.folder / "aside.npy")
    file.symlink_to(file)  # whoever opens it is told of too many links, as it might be of too many files
    assert cache.arrays(numbers, raw="abc")["y"].tolist() == [1, 2, 3]
    file.unlink()
    aside.rename(file)
    cache.arrays(never, raw="abc")


def test_other_parts_are_another_entry(cache: PreparedData) -> None:
    cache.arrays(numbers, raw="abc")
    other = cache.arrays(lambda: {"x": np.zeros(2)}, raw="abd")
    assert other["x"].tolist() == [0.0, 0.0]


def test_where_there_can_be_no_lock_data_is_prepared_all_the_same(cache: PreparedData) -> None:
    key = cache_key(raw="abc")
    (cache.folder / key[:2] / f"{key}.lock").mkdir(parents=True)
    cache.arrays(numbers, raw="abc")
    assert cache.arrays(never, raw="abc")["y"].tolist() == [1, 2, 3]


def test_a_damaged_entry_is_made_anew(cache: PreparedData) -> None:
    cache.arrays(numbers, raw="abc")
    file = files(cache)[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert cache.arrays(numbers, raw="abc")["x"].tolist() == numbers()["x"].tolist()
    assert cache.arrays(never, raw="abc")


@pytest.mark.parametrize("lost", ["x.npy", "manifest.json"])
def test_an_entry_that_lost_a_file_is_made_anew(cache: PreparedData, lost: str) -> None:
    cache.arrays(numbers, raw="abc")
    next(cache.folder.glob(f"??/*/{lost}")).unlink()
    assert cache.arrays(numbers, raw="abc")["x"].shape == (3, 4)
    assert cache.arrays(never, raw="abc")


def test_where_making_fails_nothing_is_kept(cache: PreparedData) -> None:
    def fail() -> Made:
        raise KeyError("no such column")

    with pytest.raises(KeyError, match="column"):
        cache.arrays(fail, raw="abc")
    assert cache.arrays(numbers, raw="abc")


def test_objects_are_refused(cache: PreparedData) -> None:
    with pytest.raises(ValueError, match="'x' holds Python objects"):
        cache.arrays(lambda: {"x": np.array([{}])}, raw="abc")


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden"])
def test_a_name_leads_nowhere_else(cache: PreparedData, name: str) -> None:
    with pytest.raises(ValueError, match="name of a prepared array"):
        cache.arrays(lambda: {name: np.zeros(1)}, raw="abc")


def test_a_folder_that_cannot_be_made_costs_only_the_keeping(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = PreparedData(tmp_path / "file" / "data")
    assert cache.arrays(numbers, raw="abc")["y"].tolist() == [1, 2, 3]


def test_what_was_not_used_for_the_longest_goes_first(tmp_path: Path) -> None:
    kilobyte = {"x": np.zeros(1024, dtype=np.uint8)}
    cache = PreparedData(tmp_path / "data", most_bytes=5000)
    for number in range(3):
        cache.arrays(lambda: kilobyte, raw=str(number))
        entry = max(cache.folder.glob("??/*/"), key=lambda path: path.stat().st_mtime)
        os.utime(entry, (number + 1, number + 1))
    cache.arrays(never, raw="0")  # used now
    for number in range(3, 5):
        cache.arrays(lambda: kilobyte, raw=str(number))
    assert cache.arrays(never, raw="0")
    with pytest.raises(AssertionError, match="made again"):
        cache.arrays(never, raw="1")


MAKER = """
import sys
from pathlib import Path
import numpy as np
from autotune.measure.prepared_data import PreparedData

def make():
    with open(sys.argv[2], "a") as made:
        made.write("once")
    return {"x": np.arange(1000)}

assert PreparedData(Path(sys.argv[1])).arrays(make, raw="abc")["x"].sum() == 499500
"""


def test_of_several_processes_one_makes_it(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", MAKER, str(tmp_path / "data"), str(tmp_path / "made")]
    for process in [subprocess.Popen(arguments) for _ in range(3)]:
        assert process.wait(60) == 0
    assert (tmp_path / "made").read_text() == "once"


@given(
    made=st.dictionaries(
        st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=8),
        some.arrays(
            st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]),
            some.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        ),
        min_size=1,
        max_size=3,
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
def test_what_comes_back_is_what_was_made(tmp_path: Path, made: Made) -> None:
    cache = PreparedData(tmp_path / str(len(list(tmp_path.iterdir()))))
    cache.arrays(lambda: made, raw="abc")
    back = cache.arrays(never, raw="abc")
    assert set(back) == set(made)
    for name, array in made.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].tobytes() == array.tobytes()


def test_an_objective_has_one_beside_what_is_compiled(tmp_path: Path) -> None:
    kept = Objective(Context({}, {}, tmp_path / "scratch", compiled=tmp_path / "compiled"))
    assert kept.prepared_data.folder == tmp_path / "compiled" / "data"
    alone = Objective(Context({}, {}, tmp_path / "scratch"))
    assert alone.prepared_data.folder == tmp_path / "scratch" / "data"
