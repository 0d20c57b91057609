"""``autotune.space``: its names are there, and nothing is loaded that is not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import autotune.space


def test_every_name_is_what_its_module_defines() -> None:
    for name in autotune.space.__all__:
        assert getattr(autotune.space, name).__name__ in (name, "Union")  # a value is one of several types
    assert dir(autotune.space) == sorted(autotune.space.__all__)


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match=r"module 'autotune\.space' has no attribute 'Knobs'"):
        autotune.space.Knobs  # type: ignore[attr-defined]  # noqa: B018


def test_a_worker_loads_no_machinery_of_spaces() -> None:
    """Each of its processes waits for what it loads: a tenth of that was for spaces."""
    code = "import sys, autotune.measure.workers.server; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("autotune.space")}
    assert loaded == {"autotune.space", "autotune.space.configuration", "autotune.space.spec"}
