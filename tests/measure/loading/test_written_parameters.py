"""Parameters of a function, told without running its file: as a search finds them, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective
from autotune.measure.loading.written_parameters import require_parameters
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective

KNOBS = ("tile", "unroll")
WORKLOAD = {"m": 4}


def refusal(folder: Path, text: str) -> str:
    """What is said of the parameters of ``run``; empty where nothing is."""
    (folder / "it.py").write_text(f"raise SystemExit('it was run')\n{text}\n")
    try:
        require_parameters(PythonObjective("it.py:run", folder), WORKLOAD, KNOBS)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "text",
    [
        "def run(tile, unroll): ...",
        "def run(tile, unroll, workload, report, m): ...",
        "def run(tile: here, unroll: list[there] = such(), *, more: int = 1 / 0): ...",
        "def run(**knobs): ...",
        "def run(configuration, workload): ...",
        "def run(config): ...",
        "def run(tile, *rest, **knobs): ...",
    ],
)
def test_what_takes_the_knobs_is_let_through(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "class run: ...",
        "run = lambda a: a",
        "from elsewhere import run",
        "@completed\ndef run(a): ...",
        "def run(a): ...\nrun = completed(run)",
        "if fast:\n    def run(a): ...\nelse:\n    def run(tile, unroll): ...",
        "def run(a): ...\nglobals()['run'] = print",
    ],
)
def test_of_what_may_be_another_function_nothing_is_said(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text) == ""


@pytest.mark.parametrize(
    "takes",
    ["tile, unrol, m", "tile", "tile, unroll, n", "", "tile, /, unroll", "tile, *, unroll, workloads"],
)
def test_what_does_not_fit_is_said_as_a_search_says_it(tmp_path: Path, takes: str) -> None:
    said = refusal(tmp_path, f"def run({takes}): ...")
    (tmp_path / "it.py").write_text(f"\ndef run({takes}): ...\n")
    with pytest.raises(InputError) as raised:
        load_objective(PythonObjective("it.py:run", tmp_path), Context(WORKLOAD, {}, tmp_path), knobs=KNOBS)
    assert said.replace("it.py:2:", "it.py:") == str(raised.value)


@pytest.mark.parametrize(("takes", "fits"), [("tile, unroll", False), ("tile, unroll=None", True)])
def test_a_knob_that_is_not_always_there_needs_a_default(tmp_path: Path, takes: str, fits: bool) -> None:
    """It had passed the check, and the first trial without it crashed."""
    (tmp_path / "it.py").write_text(f"def run({takes}): ...\n")
    given = PythonObjective("it.py:run", tmp_path)
    if fits:
        require_parameters(given, WORKLOAD, KNOBS, conditional=["unroll"])
        return
    with pytest.raises(InputError, match=r"run\(\) needs 'unroll', a knob that has no value"):
        require_parameters(given, WORKLOAD, KNOBS, conditional=["unroll"])
