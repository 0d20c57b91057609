"""Which C compiler is called, the one that the user names or none, and what it is told."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from ctypes import c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.diagnostics import MOST_MESSAGE
from autotune.measure.kernels.compiled_c import CompiledC, compile_c
from autotune.measure.loading.load import make_objective
from autotune.measure.objective import Context, Infeasible, WrongAnswer
from autotune.measure.phases.raised import failed
from autotune.space.configuration import Configuration, Value

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


class Scale(CompiledC):
    """out = factor * x, in a type of its own."""

    function = "scale"
    signature = (c_void_p, c_void_p, c_int)
    macros: ClassVar[Mapping[str, str]] = {"factor": "FACTOR", "type": "TYPE", "swap": "SWAP"}

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        return {"x": rng.standard_normal(50, dtype=np.float32)}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"out": ((50,), np.float32)}

    def arguments(self) -> tuple[int, ...]:
        return (50,)

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return {"out": 2.0 * inputs["x"].astype(np.float64)}


def test_a_macro_has_the_value_of_its_knob_and_not_its_whole_part(tmp_path: Path) -> None:
    """2.5 was cut off to 2, which was right, and won."""
    source = tmp_path / "scale.c"
    source.write_text(
        "void scale(const float *x, float *out, int n)\n"
        "{\n    for (int i = 0; i < n; i++)\n        out[SWAP ? n - 1 - i : i] = (TYPE)FACTOR * x[i];\n}\n"
    )
    kernel = type("Kind", (Scale,), {"source": source})(Context({}, {}, tmp_path))

    def check(**knobs: Value) -> float:
        configuration = Configuration({"factor": 2.0, "type": "float", "swap": False, "optimize": 1, **knobs})
        return kernel.check(kernel.load(kernel.prepare(configuration)), np.random.default_rng(0))["error"]

    assert check() < 1e-6 and check(factor=2.5, type="unsigned char") < 1e-6
    with pytest.raises(WrongAnswer):
        check(factor=2.5)
    with pytest.raises(WrongAnswer):
        check(swap=True)


def test_a_slice_of_memory_that_is_read_as_whole_is_said_where_the_answer_is_wrong(tmp_path: Path) -> None:
    source = tmp_path / "scale.c"
    source.write_text(
        "void scale(const float *x, float *out, int n)\n{\n    for (int i = 0; i < n; i++)\n"
        "        out[i] = 2.0f * x[i * STEP] + MORE;\n}\n"
    )

    class Sliced(Scale):
        macros: ClassVar[Mapping[str, str]] = {"step": "STEP", "more": "MORE"}

        def make_inputs(self, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
            return {"x": rng.standard_normal(100, dtype=np.float32)[::2]}

    Sliced.source = source
    kernel = Sliced(Context({}, {}, tmp_path))

    def check(**knobs: Value) -> float:
        loaded = kernel.load(kernel.prepare(Configuration({"optimize": 1, **knobs})))
        return kernel.check(loaded, np.random.default_rng(0))["error"]

    assert check(step=2, more=0) < 1e-6, "it may know of the stride by itself"
    with pytest.raises(WrongAnswer, match=r"^out\[1\] is .*only where the memory begins.*ascontiguousarray"):
        check(step=1, more=0)


def test_a_space_need_not_say_how_much_is_optimised(tmp_path: Path) -> None:
    kernel = Scale(Context({}, {}, tmp_path))
    assert kernel.flags(Configuration({"factor": 2.0}))[0] == "-O3"
    assert kernel.flags(Configuration({"factor": 2.0, "optimize": 1}))[0] == "-O1"


def test_of_what_it_has_much_to_say_of_the_first_error_is_kept_and_all_is_at_hand(tmp_path: Path) -> None:
    source = tmp_path / "source.c"
    source.write_text("".join(f"int f{n}(void) {{ return undeclared{n}; }}\n" for n in range(60)))
    with pytest.raises(Infeasible) as raised:
        compile_c(source, ["-O1"], tmp_path)
    ended = failed(raised.value)
    assert "undeclared0" in ended.message and ended.message.endswith(" ...")
    assert len(ended.message) <= MOST_MESSAGE
    assert "undeclared59" in ended.stderr and "undeclared0" in ended.stderr


def test_a_macro_of_a_knob_that_no_space_has_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    """It was 0 in each configuration, and the knob meant changed nothing."""
    kind = type("Kind", (Scale,), {"source": tmp_path / "scale.c"})
    context = Context({}, {}, tmp_path)
    with pytest.raises(InputError, match="macros has the knob 'factor'") as error:
        make_objective(kind, context, ("facter", "type", "swap", "optimize"))
    [problem] = error.value.problems
    assert problem.hint == "did you mean 'facter'?"
    assert make_objective(kind, context, ("factor", "type", "swap"))
    assert make_objective(kind, context), "no space is known"
