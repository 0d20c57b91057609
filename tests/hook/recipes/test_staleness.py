"""What a recipe depends on is read from its objective's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.staleness import DRIVER, changes, versions_of
from autotune.hook.recipes.this_device import Here, device_of, this_device
from autotune.provenance.code.frozen import snapshot

ENVIRONMENT = {
    "machine": {"processor": {"name": "AMD EPYC"}},
    "packages": {"numpy": "2.0", "scikit-learn": "1.5", "torch": "2.6", "autotune": "0.1"},
    "compilers": {"gcc": "gcc 12", "nvcc": "V13", "cc": "cc 12"},
    "gpus": {"driver": "550.1", "devices": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]},
}


def test_versions_are_those_of_what_the_files_use() -> None:
    python = b"import autotune, os\nfrom sklearn.svm import SVC\nfrom . import near\n"
    assert versions_of(ENVIRONMENT, {"a.py": python}, "python a.py:f", False) == {"scikit-learn": "1.5"}
    assert versions_of(ENVIRONMENT, {"a.py": b"import (", "a.c": b""}, "", False) == {"gcc": "gcc 12"}
    deep = b"import numpy\n" + b"(" * 100_000
    assert versions_of(ENVIRONMENT, {"a.py": deep}, "", False) == {}
    assert versions_of(ENVIRONMENT, {"a.cu": b""}, "", True) == {"nvcc": "V13", DRIVER: "550.1"}
    assert versions_of(ENVIRONMENT, {}, 'command {"prepare": ["gcc", "x.c"]}', False) == {"gcc": "gcc 12"}
    assert versions_of({}, {"a.py": python}, "", True) == {}


def test_a_device_is_what_did_the_work_as_far_as_that_is_known() -> None:
    assert device_of(ENVIRONMENT, on_gpu=True) == "NVIDIA H200"
    assert device_of(ENVIRONMENT, on_gpu=False) == "AMD EPYC with NVIDIA H200"
    assert device_of({**ENVIRONMENT, "gpus": {}}, on_gpu=False) == "AMD EPYC"
    assert device_of({}, on_gpu=True) == "unknown"
    assert Here("AMD EPYC", "NVIDIA H200", "").names == (
        "AMD EPYC",
        "NVIDIA H200",
        "AMD EPYC with NVIDIA H200",
    )
    assert this_device() is this_device()


def test_changes_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import numpy\n")
    frozen = snapshot([tmp_path / "a.py"])
    here = Here("cpu", "", "", driver="560")
    recipe = Recipe(
        "gemm",
        "cpu",
        Case({}),
        {},
        source=frozen.source_hash,
        folder=frozen.folder,
        files=("a.py",),
        versions={DRIVER: "550", "no-such-package": "1.0"},
    )
    assert changes(recipe, here) == ["GPU driver 550 -> 560", "no-such-package 1.0 -> not there"]
    assert changes(replace(recipe, versions={DRIVER: "560"}), here) == []
    assert changes(replace(recipe, device="gpu"), here) == []
    (tmp_path / "a.py").write_text("import numpy as np\n")
    assert changes(replace(recipe, versions={}), here) == ["the objective's source changed"]
