"""A build tool that goes by the times of files, and so has nothing to do for other knobs: real makefiles."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.stale_build import say_nothing_built
from autotune.measure.objective import Context
from autotune.measure.program import Finished
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MetricSpec

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")

RNG = np.random.default_rng(0)
BY_TIME = "bench: source\n\techo '{\"time\": $(TILE)}' > bench\n"
BY_TILE = "bench-$(TILE): source\n\techo '{\"time\": $(TILE)}' > bench-$(TILE)\n"
MAKE = ("make", "TILE={tile}")


def times(folder: Path, makefile: str, *tiles: int, **fields: Any) -> Iterator[float]:
    """What is measured for each tile, in one search."""
    if not (folder / "Makefile").exists():
        (folder / "Makefile").write_text(makefile)
        (folder / "source").touch()
    spec = CommandObjective(**{"arguments": ("cat", "bench"), "base": folder, "prepare": MAKE, **fields})
    objective = CommandRunner(spec, Context({}, {}, folder / "cache"), (MetricSpec("time", "minimize"),))
    for tile in tiles:
        measured = objective.measure(objective.load(Configuration({"tile": tile})), RNG)
        assert isinstance(measured, dict)
        yield measured["time"]


def test_a_configuration_for_which_make_built_nothing_is_not_measured(tmp_path: Path) -> None:
    """The program of the first configuration had been measured for all, as if the knob had no effect."""
    measured = times(tmp_path, BY_TIME, 1, 2, 3)
    assert next(measured) == 1
    with pytest.raises(
        CommandCrashed, match=r"built nothing \(make(\[1\])?: 'bench' is up to date\.\).* make -B"
    ) as e:
        next(measured)
    assert e.value.mistake == str(e.value), "which is the same for all"


def test_it_is_noticed_each_time_and_what_was_built_still_counts(tmp_path: Path) -> None:
    for tile, expected in [(1, 1), (2, None), (3, None), (1, 1)]:
        measured = times(tmp_path, BY_TIME, tile)
        if expected:
            assert next(measured) == expected
        else:
            with pytest.raises(CommandCrashed, match="built nothing"):
                next(measured)


@pytest.mark.parametrize(
    ("makefile", "fields"),
    [
        (BY_TIME, {"prepare": ("make", "-B", "TILE={tile}")}),
        (BY_TILE, {"arguments": ("cat", "bench-{tile}")}),
        (BY_TILE, {"arguments": ("sh", "-c", "cat bench-$TILE"), "environment": {"TILE": "{tile}"}}),
    ],
)
def test_what_is_built_anew_or_kept_side_by_side_is_measured(
    tmp_path: Path, makefile: str, fields: dict[str, Any]
) -> None:
    assert list(times(tmp_path, makefile, 1, 2, 1, 2, **fields)) == [1, 2, 1, 2]


def test_a_knob_of_the_run_alone_needs_no_build(tmp_path: Path) -> None:
    fields = {"arguments": ("sh", "-c", "cat bench; : {tile}"), "prepare": ("make", "TILE=7")}
    assert list(times(tmp_path, BY_TIME, 1, 2, **fields)) == [7, 7]


@pytest.mark.parametrize(
    ("stdout", "nothing"),
    [
        ("make -C src\nmake[1]: Entering directory '/src'\nmake[1]: Nothing to be done for 'all'.\n", True),
        ("ninja: Entering directory `build'\nninja: no work to do.\n", True),
        ("gcc -c one.c\nmake: 'bench' is up to date.\n", False),
        ("", False),
    ],
)
def test_what_the_tools_say(stdout: str, nothing: bool) -> None:
    assert bool(say_nothing_built(Finished(0, None, stdout, "", 0.1))) == nothing
