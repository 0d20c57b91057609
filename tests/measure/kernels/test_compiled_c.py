"""Which C compiler is called: the one that the user names, or none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autotune.measure.diagnostics import MOST_MESSAGE
from autotune.measure.kernels.compiled_c import compile_c
from autotune.measure.objective import Infeasible
from autotune.measure.phases.raised import failed

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source.c"
    source.write_text("int two(void) { return 2; }\n")
    return source


def test_every_word_of_the_variable_is_called(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >>"{tmp_path}/calls"\nexec "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", f"{wrapper} gcc -DMINE")
    assert Path(compile_c(source, ["-O1"], tmp_path)).exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls and all(call.startswith("gcc -DMINE ") for call in calls)
    assert any(" -o " in call for call in calls)


@pytest.mark.parametrize("said", ["", "  "])
def test_without_the_variable_there_is_gcc(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("CC", said)
    assert Path(compile_c(source, ["-O1"], tmp_path)).exists()


@pytest.mark.parametrize(
    "said, message",
    [
        ("gcc-of-nobody", "CC is 'gcc-of-nobody', but there is no program 'gcc-of-nobody'"),
        ("ccache-of-nobody gcc", "there is no program 'ccache-of-nobody'"),
        ("gcc 'it", "no command: No closing quotation"),
    ],
)
def test_no_other_compiler_takes_the_place_of_the_one_that_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, message: str
) -> None:
    monkeypatch.setenv("CC", said)
    with pytest.raises(Infeasible, match=message):
        compile_c(source, ["-O1"], tmp_path)


def test_of_what_it_has_much_to_say_of_the_first_error_is_kept_and_all_is_at_hand(tmp_path: Path) -> None:
    source = tmp_path / "source.c"
    source.write_text("".join(f"int f{n}(void) {{ return undeclared{n}; }}\n" for n in range(60)))
    with pytest.raises(Infeasible) as raised:
        compile_c(source, ["-O1"], tmp_path)
    ended = failed(raised.value)
    assert "undeclared0" in ended.message and ended.message.endswith(" ...")
    assert len(ended.message) <= MOST_MESSAGE
    assert "undeclared59" in ended.stderr and "undeclared0" in ended.stderr
