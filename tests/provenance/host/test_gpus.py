"""GPUs through the real pynvml: without a driver, and against a small management library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.provenance.host.gpus import read_gpus
from tests.provenance.libraries import compile_library

REPORT = """
import json
from autotune.provenance.host.gpus import read_gpus
gpus, states = read_gpus()
print(json.dumps([gpus.to_document(), [state.to_document() for state in states]]))
"""


def report(**variables: str) -> list[dict[str, object]]:
    """In a child: the loader reads LD_LIBRARY_PATH when a process starts."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_without_gpu_or_with_one_it_answers() -> None:
    gpus, states = read_gpus()
    assert len(gpus.devices) == len(states)
    assert bool(gpus.problem) != bool(gpus.devices)


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('hidden')\n")
    gpus, states = report(PYTHONPATH=str(tmp_path))
    assert gpus["problem"] == "the package nvidia-ml-py is not installed"
    assert (gpus["devices"], gpus["driver"], states) == ([], None, [])


def test_one_gpu_that_answers_some_questions(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="the package nvidia-ml-py is not installed")
    compile_library("fake_nvml.c", tmp_path, "libnvidia-ml.so.1")
    gpus, states = report(LD_LIBRARY_PATH=str(tmp_path))
    assert (gpus["driver"], gpus["cuda"], gpus["problem"]) == ("575.57.08", "12.9", "")
    (device,) = gpus["devices"]  # type: ignore[misc]
    known = {
        "index": 0,
        "name": "NVIDIA Test",
        "memory_bytes": 1000000,
        "compute_capability": "9.0",
        "power_limit_watts": 650.5,
        "ecc": True,
        "persistence": False,
    }
    assert {name: value for name, value in device.items() if value is not None} == known
    (state,) = states
    known = {"index": 0, "sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "memory_used_bytes": 400000}
    assert {name: value for name, value in state.items() if value is not None} == known
