"""A program in Python that is not run by the Python of autotune."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.python_program import own_python, say_another_python
from tests.measure.commands.running import measure, runner

LACKS = "ModuleNotFoundError: No module named {!r}"


def other_python(folder: Path, module: str) -> None:
    """A ``python3`` that has no such module, whatever it is to run."""
    trace = (
        f'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n{LACKS.format(module)}'
    )
    (folder / "train.py").write_text("import autotune\n")
    (folder / "bin").mkdir()
    (folder / "bin/python3").write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{trace}\nEND\nexit 1\n")
    (folder / "bin/python3").chmod(0o755)


def crash_of(folder: Path) -> CommandCrashed:
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    with pytest.raises(CommandCrashed) as caught:
        measure(runner(folder, "python3", "train.py", environment=environment))
    return caught.value


def test_it_is_said_which_python_ran_and_which_has_the_module(tmp_path: Path) -> None:
    """``.venv/bin/autotune search`` without its environment: 'No module named autotune' had been all."""
    other_python(tmp_path, "autotune.hook")
    crashed = crash_of(tmp_path)
    said = f"(it was run by {tmp_path}/bin/python3; {sys.executable}, which runs autotune, has that module"
    assert said in str(crashed) and said in crashed.mistake


def test_a_module_that_neither_has_is_simply_lacking(tmp_path: Path) -> None:
    other_python(tmp_path, "no_such_module")
    crashed = crash_of(tmp_path)
    assert str(crashed).endswith(LACKS.format("no_such_module"))
    assert crashed.mistake == f"{LACKS.format('no_such_module')} (train.py, line 4)"


def test_the_python_of_autotune_and_other_programs_say_nothing_more() -> None:
    assert say_another_python(sys.executable, LACKS.format("autotune")) == ""
    assert say_another_python("./train", LACKS.format("autotune")) == ""
    assert say_another_python("python3", "KeyError: 'autotune'", "/nowhere") == ""


def test_where_python_is_no_program_the_own_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(own_python("python3.99"))):
        runner(tmp_path, "python3.99", "-c", "pass")
    assert sys.executable in own_python("python")
    assert own_python("pythonic") == own_python("make") == ""
