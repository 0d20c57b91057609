"""What a shell is told to complete."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from autotune.cli.options import study_option
from autotune.cli.verbs import cli


def completed(*words: str) -> list[str]:
    """What may stand in the place of the last of ``words``."""
    shell = ShellComplete(cli, {}, "autotune", "_AUTOTUNE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_spaces_are_ready_ones_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gemms").mkdir()
    (tmp_path / "gemms" / "mine.yaml").touch()
    (tmp_path / "gemms" / "mine.py").touch()
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    assert set(completed("search", "gemm")) == {"gemm-c", "gemm-c-shapes", "gemms/"}
    assert completed("check", "gemms/") == ["gemms/mine.yaml"]
    assert completed("search", "./") == ["./gemms/"] and completed("search", "none/") == []


def test_strategies_and_studies_are_those_that_there_are(folder: Path) -> None:
    assert completed("search", "x.yaml", "--strategy", "optuna-n") == ["optuna-nsga2"]
    store = str(folder / "study.db")
    named = completed("best", "--store", store, "")
    assert len(named) == 1
    assert completed("why", "3", "--store", store, "--study", named[0][:2]) == named
    assert completed("best", "--store", str(folder / "none.db"), "") == []


def test_a_verb_may_say_what_a_study_is_to_it() -> None:
    @click.command()
    @study_option("Of which it is.")
    def verb(study: str | None) -> None:
        pass

    assert "Of which it is." in verb.get_help(click.Context(verb))
