"""``--set NAME=VALUE`` of a training script."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

import autotune
from autotune.errors import InputError
from autotune.measure.commands.run_protocol import VARIABLE
from tests.hook.listening import Search


def parsed(run: Any, *arguments: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--epochs", type=int, default=3)
    run.add_arguments(parser)
    parser.parse_args(arguments)


def test_set_arguments_are_typed_by_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with autotune.run("train") as run:
        parsed(
            run,
            "--set",
            "lr=1e-2",
            "--set",
            "width=32",
            "--set",
            "fused=no",
            "--set",
            "kind=a=b",
            "--set=n=2e3",
        )
        assert run.knob("lr", default=0.1) == 0.01
        assert run.knob("width", default=16) == 32
        assert run.knob("fused", default=True) is False
        assert run.knob("kind", default="sgd") == "a=b"
        assert run.knob("n", default=1) == 2000
    assert run.source == "--set"


@pytest.mark.parametrize(("text", "default"), [("abc", 0.1), ("1.5", 1), ("maybe", True)])
def test_set_of_another_type_is_an_error(text: str, default: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with autotune.run("train") as run:
        parsed(run, "--set", f"lr={text}")
        with pytest.raises(ValueError, match=f"the knob 'lr' cannot be '{text}': expected"):
            run.knob("lr", default=default)


def test_set_of_another_type_is_an_error_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had been a traceback, beside the usage that ``--set x`` was answered with."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(SystemExit) as ended, autotune.run("train") as run:
        parser = argparse.ArgumentParser(prog="train.py")
        run.add_arguments(parser)
        parser.parse_args(["--set", "lr=abc"])
        run.knob("lr", default=0.1)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith("usage: train.py")
    assert "train.py: error: --set lr=abc: the knob 'lr' cannot be 'abc': expected a number" in said


def test_set_that_no_knob_took_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with autotune.run("train") as run:
        parsed(run, "--set", "widht=8", "--set", "momentum=0.9", "--set", "lr=0.1")
        run.knob("width", default=16)
        run.knob("lr", default=0.5)
    first, second = capsys.readouterr().err.splitlines()
    assert "--set widht=8 did nothing" in first and "did you mean 'width'" in first
    assert "--set momentum=0.9 did nothing" in second and second.endswith("the script has width, lr")


def test_a_script_that_failed_is_not_told_that_it_has_no_knobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ValueError, match="the knob 'lr' cannot be 'x'"), autotune.run("train") as run:
        parsed(run, "--set", "lr=x")
        run.knob("lr", default=0.1)
    assert "did nothing" not in capsys.readouterr().err


def test_a_knob_both_set_and_searched_is_an_error(search: Search) -> None:
    search(lr=0.5)
    with pytest.raises(InputError, match="a search is choosing the knob 'lr'"), autotune.run("train") as run:
        parsed(run, "--set", "lr=0.1", "--set", "epochs=4")
        assert run.knob("epochs", default=1) == 4
        run.knob("lr", default=1.0)
