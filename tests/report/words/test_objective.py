"""The objective of a study in words."""

from __future__ import annotations

from pathlib import Path

from autotune.report.words.objective import say_objective
from autotune.session.opening.identity import COMMAND, describe_objective
from autotune.space.spec import CallableObjective, CommandObjective, PythonObjective
from autotune.store.store import Store
from tests.store.build import new_study


def said(objective: str) -> dict[str, str]:
    with Store.open("sqlite://") as store:
        return say_objective(store.create_study(new_study(objective=objective), {}))


def test_a_command_is_said_as_people_write_it() -> None:
    """It was a JSON document with every key that it did not have, cut off before the first that it had."""
    command = CommandObjective(
        ("./a bench", "{tile}"),
        Path("/somewhere"),
        prepare=("make", "-B"),
        environment={"THREADS": "{n}"},
        metrics_from="pattern",
        patterns={"time": "took (.*)"},
    )
    assert said(describe_objective(command)) == {
        "command": "'./a bench' '{tile}'",
        "command's prepare": "make -B",
        "command's environment": "'THREADS={n}'",
        "command's metrics": "pattern time: took (.*)",
    }


def test_other_objectives_are_said_as_they_are() -> None:
    python, given = PythonObjective("gemm.py:Gemm", Path()), CallableObjective("bench:run", "c0de")
    assert said(describe_objective(python)) == {"objective": "python gemm.py:Gemm"}
    assert said(describe_objective(given)) == {"objective": "given by a program: bench:run"}
    for strange in ("{", "[]", '{"arguments": 3}'):  # from an archive that somebody else has made
        assert said(COMMAND + strange) == {"objective": COMMAND + strange}
