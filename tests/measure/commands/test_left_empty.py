"""Options that stand without a value where a knob does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.commands.left_empty import LeftEmpty, left_empty
from autotune.space.spec import CommandObjective


@pytest.mark.parametrize(
    "text",
    [
        "./bench --algo={algo} --tile={tile} | tail -1",
        "./bench --tile={tile} --algo={algo}",
        "./bench --algo={algo}; echo",
        "./bench --algo='{algo}'",
        'x=$(./bench --algo="{algo}")',
    ],
)
def test_within_a_script(text: str) -> None:
    command = CommandObjective(("sh", "-c", text), base=Path())
    assert left_empty(command, ["algo"]) == [LeftEmpty("algo", "--algo=")]
    assert left_empty(command, []) == []


def test_an_argument_that_is_no_option() -> None:
    command = CommandObjective(("./train", "model.algo={algo}"), base=Path())
    assert left_empty(command, ["algo"]) == [LeftEmpty("algo", "model.algo=")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("./bench", "--algo={algo}"),
        ("./bench", "--algo", "{algo}"),
        ("./bench", "{algo}"),
        ("sh", "-c", "./bench {algo} --tile={tile}"),
        ("sh", "-c", "./bench --size={tile}x{algo}"),
        ("./{algo}",),
    ],
)
def test_nothing_is_left_empty(arguments: tuple[str, ...]) -> None:
    assert left_empty(CommandObjective(arguments, base=Path()), ["algo"]) == []


def test_an_option_of_prepare_and_of_the_command_is_said_once() -> None:
    texts = ("sh", "-c", "run --algo={algo} all")
    command = CommandObjective(texts, base=Path(), prepare=texts)
    assert left_empty(command, ["algo"]) == [LeftEmpty("algo", "--algo=")]


def test_of_a_variable_and_a_line_of_the_config_file_a_comma_is_left() -> None:
    """OpenMP takes ``OMP_SCHEDULE=auto,`` for a mistake, and runs with its default schedule."""
    command = CommandObjective(
        ("./bench", "--schedule={schedule},{chunk}"),
        base=Path(),
        environment={"OMP_SCHEDULE": "{schedule},{chunk}", "CHUNK": "{chunk}", "FLAGS": "-O2 {chunk}"},
        config_file="bench.ini",
        config_text="[loop]\nchunk = {chunk}\nschedule = {schedule}:{chunk}\n",
    )
    assert left_empty(command, ["chunk"]) == [
        LeftEmpty("chunk", "--schedule={schedule},"),
        LeftEmpty("chunk", "OMP_SCHEDULE={schedule},"),
        LeftEmpty("chunk", "{schedule}:"),
    ]
