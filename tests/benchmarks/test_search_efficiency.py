"""Searches on recorded spaces: any folder of recordings, and what its searches write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.recordings.read import read_recording
from autotune.space.knobs import Choice, Flag, OrderedValues
from benchmarks.kept import read_lines, read_searches
from benchmarks.known_elsewhere import Elsewhere
from benchmarks.recorded_spaces import recorded_space, recordings
from benchmarks.report_efficiency import KEYS, judges_of
from benchmarks.score import Judge
from benchmarks.search_efficiency import Search, run, strategies
from tests.recordings import record

ROOT = Path(__file__).parents[2]


def _cache_file(file: Path, knobs: Mapping[str, Sequence[Any]]) -> Path:
    """A cache file of Kernel Tuner's in which the knobs are varied one after the other."""
    rows = [dict(zip(knobs, values, strict=True)) for values in zip(*knobs.values(), strict=True)]
    return record(file, knobs, [row | {"time": 1.0 + place} for place, row in enumerate(rows)])


def _searched(folder: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.search_efficiency", "--spaces", str(folder)]
    command += ["--strategies", "random", "--seeds", "1", "--jobs", "1", "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_recording_is_found_once_whatever_forms_it_has(tmp_path: Path) -> None:
    for name in ("b.t4.json.gz", "b.json.gz", "a.t4.json", "c.json", "c.json.gz", "notes.txt"):
        (tmp_path / name).touch()
    found = [(name, file.name) for name, file in recordings(tmp_path)]
    assert found == [("a", "a.t4.json"), ("b", "b.json.gz"), ("c", "c.json.gz")]
    assert [name for name, _ in recordings(tmp_path, "c,a")] == ["a", "c"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*elsewhere"):
        recordings(tmp_path / "elsewhere")


def test_a_recording_of_one_configuration_is_a_space(tmp_path: Path) -> None:
    space = recorded_space(read_recording(_cache_file(tmp_path / "one.json", {"a": [7], "b": [True]})))
    assert space.sample(np.random.default_rng(0)) == [{"a": 7, "b": True}]
    assert space.feasible.size == 1


def test_whatever_a_recording_holds_is_a_knob(tmp_path: Path) -> None:
    """A list among the values had ended the searches of all other recordings too."""
    knobs = {"tile": [[8, 8], [16, 4], [32, 2]], "mode": [1, "auto", 2], "half": [True, False, True]}
    file = _cache_file(tmp_path / "lists.json", {**knobs, "size": [4, 1, 2], "mixed": [True, 2, 3]})
    recording = read_recording(file)
    assert [type(knob) for knob in recorded_space(recording).knobs] == [
        Choice,
        Choice,
        Flag,
        OrderedValues,
        Choice,
    ]
    line: dict[str, Any] = run(Search(file, "auto", 0, tries=3))
    assert Judge(recording).judge(json.loads(json.dumps(line))["configs"]).tries == 3


def test_recordings_of_one_kernel_are_found_by_name(tmp_path: Path) -> None:
    """One without a device in its name had been taken for another kernel's."""
    knobs = {"a": list(range(9)), "b": list(range(9))}
    files = [_cache_file(tmp_path / f"{name}.json", knobs) for name in ("gemm", "gemm-b", "nbody-b")]
    target = Search(tmp_path / "gemm-a.json", "auto", 0)
    assert [source.label for source in Elsewhere(tuple(files), 0).sources(target, run)] == ["gemm", "gemm-b"]


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no recording in"):
        recordings(tmp_path)
    _cache_file(tmp_path / "sizes.json", {"a": [1, 2, 3]})
    with pytest.raises(InputError, match=r"(?s)no recording 'size' in .*expected: sizes.*'sizes'"):
        recordings(tmp_path, "sizes, size")


def test_a_knob_that_exists_only_sometimes_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t4.json"
    results = [
        {"configuration": one, "measurements": [{"name": "time", "value": 1}]} for one in ({"a": 1}, {"b": 1})
    ]
    file.write_text(json.dumps({"results": results}))
    with pytest.raises(InputError, match="a configuration lacks the knob 'b'"):
        recorded_space(read_recording(file))


def test_what_cannot_be_read_ends_no_other_search(tmp_path: Path) -> None:
    folder, out = tmp_path / "spaces", tmp_path / "runs" / "runs.jsonl"
    folder.mkdir()
    (folder / "about.json").write_text("{}")
    _cache_file(folder / "sizes.json", {"a": [1, 2, 3]})
    done = _searched(folder, out)
    assert done.returncode == 1
    assert "about.json is not a recording" in done.stderr
    assert len(done.stderr.splitlines()) == 2  # the reason once, however many searches it costs
    [line] = read_lines(out)
    assert line["space"] == "sizes"
    assert sorted(c["a"] for c in line["configs"]) == [1, 2, 3]
    assert list(judges_of([line], folder)) == ["sizes"]
    assert read_searches([out], KEYS) == [line]
    with pytest.raises(InputError, match="space sizes, strategy random, seed 0 is there 2 times"):
        read_searches([out, out], KEYS)


def test_strategies_are_named_once_and_known() -> None:
    assert strategies("auto, random,auto@8,auto,") == ["auto", "random", "auto@8"]
    with pytest.raises(InputError, match="there is no strategy 'randm'"):
        strategies("auto,randm")
    with pytest.raises(InputError, match="how many trials are in flight"):
        strategies("auto@many")
    with pytest.raises(InputError, match="optuna-tpe is a peer, which has one trial in flight"):
        strategies("optuna-tpe@8")  # had been left out, with exit code 0
    with pytest.raises(InputError, match="no strategy is named"):
        strategies(",")


def test_counts_are_at_least_one(tmp_path: Path) -> None:
    done = _searched(tmp_path, tmp_path / "runs.jsonl", "--jobs", "0")
    assert done.returncode == 2
    assert "argument --jobs: 0 is not at least 1" in done.stderr
