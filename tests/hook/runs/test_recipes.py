"""The knobs of a run from a recipe: which one, what is said of it, and what happens without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.measure.commands.run_protocol import VARIABLE


def test_a_recipe_that_nobody_knows_is_said_and_the_default_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    with autotune.run("unheard-of", recipes=True) as run:
        assert run.knob("lr", default=0.1) == 0.1
        assert run.knob("width", default=2) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("autotune: the run 'unheard-of' has its defaults: there is no recipe")
    assert f"looked in the store at {tmp_path}/none.db, which is not there" in said[0]


KNOWN = "autotune recipes lists those that are known"


@pytest.mark.parametrize(
    ("name", "workload", "says"),
    [
        (None, None, f"the name of a study or kernel is expected, not None ({KNOWN})"),
        (3, None, f"the name of a study or kernel is expected, not 3 ({KNOWN})"),
        ("train", {"n": None}, "'n' of the workload is None"),
        ("train", ["n"], "the workload is of the type list"),
    ],
)
def test_a_recipe_that_cannot_be_asked_for_is_said_and_the_default_taken(
    name: Any,
    workload: Any,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A training that has begun is not ended for its lack of a recipe."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with autotune.run(name, recipes=True, workload=workload) as run:
        assert run.knob("lr", default=0.1) == 0.1
        assert run.knob("width", default=2) == 2
    assert run.source == "default"
    assert capsys.readouterr().err == f"autotune: the run {name!r} has its defaults: {says}\n"


def test_in_a_folder_that_was_deleted_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with autotune.run("x", recipes=True) as run:
        assert run.knob("lr", default=0.1) == 0.1
    assert "the run 'x' has its defaults" in capsys.readouterr().err


def test_a_recipe_gives_its_knobs_and_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study of the store is a recipe."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "found.db"
    space = tmp_path / "space.yaml"
    space.write_text(
        "autotune: 1\nname: train\ncommand: [echo]\nmetrics: {loss: {goal: minimize}}\n"
        "knobs: {width: {values: [8, 16], default: 8}, compile: {choices: [max-autotune]}}\n"
    )
    with autotune.ask_tell(space, strategy="grid", store=store) as session:
        for trial in session.ask(2):
            session.tell(trial, loss=1.0 / trial.configuration["width"])
    monkeypatch.setenv("AUTOTUNE_STORE", str(store))
    with autotune.run("train", recipes=True) as run:
        assert run.knob("width", default=8) == 16
        assert run.knob("compile", default=False) == "max-autotune"
        assert run.knob("depth", default=3) == 3
    assert run.source == "recipe, default"
    width, kind, depth, recipe = run.describe().splitlines()
    assert (width, depth) == ("width = 16  (recipe; default 8)", "depth = 3  (default)")
    assert kind == "compile = 'max-autotune'  (recipe; default False)"
    assert recipe.startswith("recipe train: the best of 2 trials")
