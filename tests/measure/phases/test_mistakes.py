"""What is taken for a mistake of the code or the machine, and what may be a limit of a configuration."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.facts import MISTAKE
from autotune.measure.loading.function import FunctionObjective
from autotune.measure.objective import Context, Infeasible
from autotune.measure.outcome import Outcome
from autotune.measure.phases.mistakes import mistake_in, mistake_of_program
from autotune.measure.phases.runner import Runner
from autotune.measure.program import Finished
from autotune.measure.readings import named_values
from autotune.measure.reports import Reporter
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MeasureSettings, MetricSpec

TIME = MetricSpec("time", "minimize", "s")


class OwnKeyError(KeyError):
    """Made by somebody for a purpose."""


def raised(what: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        what()
    return caught.value


@pytest.mark.parametrize(
    "what",
    [
        lambda: exec("missing_name"),
        lambda: exec("import no_such_module"),
        lambda: math.sqroot,  # type: ignore[attr-defined]
        lambda: Configuration({"tile": 8})["tyle"],
        lambda: Path("no/such/file").read_text(),
        lambda: Configuration({"tile": 8}).tile,  # type: ignore[attr-defined]
        lambda: Context({}, {}, Path()).folder,  # type: ignore[attr-defined]
        lambda: Reporter().step,  # type: ignore[attr-defined]
        lambda: range(8 / 2),  # type: ignore[arg-type]
        lambda: math.sqrt(),  # type: ignore[call-arg]
    ],
)
def test_what_is_not_there_is_a_mistake(what: Callable[[], object]) -> None:
    error = raised(what)
    assert type(error).__name__ in mistake_in(error) and "line " in mistake_in(error)


@pytest.mark.parametrize(
    "what",
    [
        lambda: None.launch,  # type: ignore[attr-defined]
        lambda: None * 2,  # type: ignore[operator]
        lambda: named_values("out of registers", "time"),
        lambda: [1][2],
        lambda: int("x"),
        lambda: 1 // 0,
        lambda: exec("raise RuntimeError('invalid argument')"),
        lambda: exec("raise MemoryError"),
        lambda: exec("assert False"),
        lambda: exec("raise error", {"error": OwnKeyError("no such tile")}),
        lambda: exec("raise error", {"error": Infeasible("too large")}),
    ],
)
def test_what_a_limit_may_raise_is_none(what: Callable[[], object]) -> None:
    assert mistake_in(raised(what)) == ""


def test_the_same_words_at_another_line_are_another_mistake() -> None:
    def one() -> object:
        return Configuration({})["tile"]

    def other() -> object:
        return Configuration({})["tile"]

    assert mistake_in(raised(one)) == mistake_in(raised(one))
    first, second = raised(lambda: exec("x")), raised(lambda: exec("\nx"))
    assert mistake_in(first) != mistake_in(second)


def outcome_of(returned: Any) -> Outcome:
    objective = FunctionObjective(Context({}, {}, Path()), lambda: returned)
    return Runner(objective, (TIME,), MeasureSettings()).measure(lambda: Configuration({}), 1)


def run_of(returned: Any) -> object:
    return outcome_of(returned).facts.get(MISTAKE)


def test_a_function_without_a_return_is_told_what_to_return() -> None:
    said = outcome_of(None).message
    assert said == "TypeError: the objective returned nothing; expected a number: the metric 'time'"


def test_numbers_without_the_metric_are_a_mistake_and_nothing_at_all_is_none() -> None:
    assert "'time'; it returned tme" in str(run_of({"tme": 1.0}))
    assert run_of({}) is None and run_of(None) is None and run_of(1.0) is None


TRACEBACK = """warming up
Traceback (most recent call last):
  File "/home/me/bench.py", line 1, in <module>
    import jsn
{last}
"""


def ended(exit_code: int | None, stderr: str) -> Finished:
    return Finished(exit_code, None if exit_code is not None else 11, "", stderr, 0.1)


def test_a_program_in_python_names_its_mistake_in_its_traceback() -> None:
    ending = "ModuleNotFoundError: No module named 'jsn'"
    said = mistake_of_program(ended(1, TRACEBACK.format(last=ending)), ["python3"])
    assert said == f"{ending} (bench.py, line 1)"
    ending = "TypeError: 'float' object cannot be interpreted as an integer"
    assert mistake_of_program(ended(1, TRACEBACK.format(last=ending)), ["python3"]).startswith(ending)


def test_a_mistake_is_one_whatever_is_printed_after_it() -> None:
    """Hydra prints how to see more of the traceback: a search went on with a name that does not exist."""
    hint = "\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    said = mistake_of_program(ended(1, TRACEBACK.format(last="NameError: no 'x'") + hint), ["python3"])
    assert said == "NameError: no 'x' (bench.py, line 1)"


@pytest.mark.parametrize(
    ("exit_code", "stderr"),
    [
        (1, TRACEBACK.format(last="RuntimeError: CUDA error: invalid argument")),
        (1, TRACEBACK.format(last="TypeError: 'NoneType' object is not subscriptable")),
        (1, "KeyError: tile"),
        (2, TRACEBACK.format(last="KeyError: 'tile'")),
        (1, ""),
        (None, ""),
        (3, "tile is not supported"),
    ],
)
def test_other_ends_of_a_program_may_be_limits(exit_code: int | None, stderr: str) -> None:
    assert mistake_of_program(ended(exit_code, stderr), ["./bench"]) == ""


def command(folder: Path, *arguments: str, **said: Any) -> str:
    spec = CommandObjective(arguments, folder, **said)
    objective = CommandRunner(spec, Context({}, {}, folder / "cache"), (TIME,))
    with pytest.raises(CommandCrashed) as caught:
        objective.measure(objective.load(objective.prepare(Configuration({}))), np.random.default_rng(0))
    return caught.value.mistake


def test_a_command_that_a_shell_does_not_find(tmp_path: Path) -> None:
    assert "exit code 127" in command(tmp_path, "sh", "-c", "./no-such-bench")


def test_a_program_with_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("import json\njson.dmps({})  # starts a subprocess\n")
    assert command(tmp_path, sys.executable, "bench.py").startswith("AttributeError: module 'json' has no")
    (tmp_path / "bench.py").write_text("object().dmps  # starts a subprocess\n")
    assert command(tmp_path, sys.executable, "bench.py") == ""  # a limit may be why it is another object
    (tmp_path / "bench.py").write_text("print(x)  # starts a subprocess\n")
    assert (
        command(tmp_path, sys.executable, "bench.py")
        == "NameError: name 'x' is not defined (bench.py, line 1)"
    )


def test_a_program_that_prints_other_numbers(tmp_path: Path) -> None:
    assert "no metric 'time'" in command(tmp_path, "echo", '{{"seconds": 1.0}}')
    assert command(tmp_path, "echo", '{{"error": "out of registers"}}') == ""


def test_a_program_that_tells_no_metric_in_the_way_that_is_asked_for(tmp_path: Path) -> None:
    said = [
        {command(tmp_path, "echo", f"took {n} s", **how) for n in (1, 2)}
        for how in (
            {},
            {"metrics_from": "pattern", "patterns": {"time": "time (.*)"}},
            {"metrics_from": "file", "metrics_file": "out.json"},
        )
    ]
    assert [len(words) for words in said] == [1, 1, 1], "whatever it printed, it is the same mistake"
    assert all(word for words in said for word in words)
