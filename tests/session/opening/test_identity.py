"""What makes two searches the same study."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import autotune
from autotune.session.opening.identity import Identity, are_kin, describe_objective, identify, say_difference
from autotune.space.configuration import plain
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec
from autotune.store.records import StudyRecord

SPACE = """
autotune: 1
name: line
objective: given.py:line
knobs: {{x: {{range: [0, 15]}}}}
measure: {{min_readings: 3, max_readings: 3, finalists: 0, cores: {cores}}}
"""


def line(x: int) -> float:
    return 1.0 + x


def on(folder: Path, cores: int) -> StudySpec:
    return parse_spec(SPACE.format(cores=cores), folder / "space.yaml", {})


def study(folder: Path, spec: StudySpec, trials: int = 3) -> StudyRecord:
    return autotune.search(
        spec, objective=line, trials=trials, store=folder / "study.db", strategy="random"
    ).study


def test_another_number_of_cores_begins_a_new_study(tmp_path: Path) -> None:
    """What was measured on one core says nothing of two, least of all of a knob that chooses threads."""
    first, more = study(tmp_path, on(tmp_path, 1)), study(tmp_path, on(tmp_path, 2))
    assert list(more.differs) == ["cores"] and more.id != first.id
    assert study(tmp_path, on(tmp_path, 1)).id == first.id


WHOLE = """
autotune: 1
name: whole
objective: given.py:line
workload: {m: 1, n: 2}
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {range: [0, 15]}}
measure: {finalists: 3}
budget: {trials: 9}
"""
STOPPED = WHOLE + "search: {early_stopping: {policy: asha, resource: epochs, min: 1, max: 9}}\n"


def identity(text: str, source: str = "s", machine: str = "m") -> Identity:
    return identify(parse_spec(text, Path("space.yaml"), {}), source, machine)


@pytest.mark.parametrize(
    ("was", "now", "part"),
    [
        ("given.py:line", "given.py:other", "objective"),
        ("m: 1, n: 2", "m: 1, n: 3", "workload"),
        ("m: 1, n: 2", "n: 2, m: 1", ""),
        ("unit: s", "unit: ms", "metrics"),
        ("goal: minimize", "goal: maximize", "metrics"),
        ("max: 9", "max: 27", "resource"),
        ("resource: epochs", "resource: steps", "resource"),
        (STOPPED, WHOLE, "resource"),
        ("finalists: 3", "finalists: 3, cores: 2", "cores"),
        ("policy: asha", "policy: hyperband", ""),
        ("finalists: 3", "finalists: 5, cores: 1", ""),
        ("trials: 9", "trials: 99", ""),
        ("[0, 15]", "[0, 31]", ""),  # a range may grow
        ("name: whole", "name: other", ""),  # which is beside the key
    ],
)
def test_what_begins_a_new_study(was: str, now: str, part: str) -> None:
    one, other = identity(STOPPED), identity(STOPPED.replace(was, now))
    assert was in STOPPED and list(other.differences(asdict(one))) == ([part] if part else [])
    assert (one.key == other.key) is not bool(part)


def test_so_does_another_source_or_machine_except_for_a_recording() -> None:
    one = identity(WHOLE)
    assert list(identity(WHOLE, source="t").differences(asdict(one))) == ["source"]
    assert list(identity(WHOLE, machine="n").differences(asdict(one))) == ["machine"]
    recorded = WHOLE.replace("objective: given.py:line", "replay: once.json")
    here, there = identity(recorded), identity(recorded.replace("finalists: 3", "cores: 2"), machine="n")
    assert here == there and here.key != identity(recorded, source="t").key


def test_studies_of_a_name_that_differ_in_the_workload_alone_are_kin() -> None:
    def study(text: str = WHOLE, name: str = "whole", **parts: str) -> StudyRecord:
        spec = parse_spec(text, Path("space.yaml"), {})
        own = {**asdict(identity(text)), **parts}
        document = {"identity": {part: value for part, value in own.items() if value}}
        return StudyRecord(
            1, name, "", "", document, "", "", plain(spec.workload), (), "m", "", False, None, {}, 0.0
        )

    one, larger = study(), study(WHOLE.replace("m: 1", "m: 2"))
    assert are_kin(one, larger) and are_kin(larger, one) and are_kin(one, one)
    assert identity(WHOLE).cores == identity(WHOLE).resource == "", "older documents have neither"
    for other in (
        study(name="another"),
        study(WHOLE.replace("m: 1, n: 2", "m: 1")),
        study(STOPPED),
        *(study(**{part: "another"}) for part in ("objective", "source", "metrics", "machine", "cores")),
    ):
        assert not are_kin(one, other) and not are_kin(other, one)


def test_a_part_that_earlier_studies_did_not_have_differs_only_where_it_says_something() -> None:
    now = Identity("python a.py:A", "s", "{}", "[]", "m")
    earlier = {part: text for part, text in asdict(now).items() if part not in ("resource", "cores")}
    assert now.differences(earlier) == {}
    assert now.key == "fc6c7c02657573cf", "studies that are stored are not found any more"
    assert replace(now, resource="27 epochs").differences(earlier) == {"resource": ["", "27 epochs"]}


def test_a_command_that_moved_within_its_file_is_the_same() -> None:
    text = "autotune: 1\nname: t\ncommand: [echo, '{a}']\nknobs: {a: {values: [1, 2]}}\n"
    one, other = (parse_spec(text, Path("space.yaml"), {}) for text in (text, "# moved\n\n" + text))
    said = describe_objective(one.objective)
    assert said == describe_objective(other.objective)
    assert "where" not in said, "studies that are stored are not found any more"


def test_a_command_that_gets_another_grace_is_the_same() -> None:
    text = "autotune: 1\nname: t\ncommand: {run: [echo]%s}\nknobs: {a: {values: [1, 2]}}\n"
    said = {
        describe_objective(parse_spec(text % grace, Path("s.yaml"), {}).objective)
        for grace in ("", ", grace: 0", ", grace: 1m")
    }
    assert len(said) == 1 and "grace" not in said.pop(), "studies that are stored are not found any more"


def test_what_changed_of_a_command_is_said_part_by_part() -> None:
    text = "autotune: 1\nname: t\ncommand: {run: [echo], prepare: %s}\nknobs: {a: {values: [1, 2]}}\n"
    was, now = (
        describe_objective(parse_spec(text % prepare, Path("s.yaml"), {}).objective)
        for prepare in ("[make]", "[make, -j]")
    )
    assert say_difference("objective", was, now) == "the command's prepare changed from make to make -j"


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ([*map(str, range(60))], [*map(str, range(59))], "from ... 58 59 to ... 58"),
        (["-a", *map(str, range(60))], ["-b", *map(str, range(60))], "from -a 0 ... to -b 0 ..."),
        (
            [*"a" * 90, "x", *"b" * 90],
            [*"a" * 90, "y", "z", *"b" * 90],
            "from ... a x b ... to ... a y z b ...",
        ),
        ([*"a" * 90], [*"a" * 91], "from ... a to ... a a"),
    ],
)
def test_of_a_long_part_only_what_differs_is_said(was: list[str], now: list[str], said: str) -> None:
    before, after = ("command " + json.dumps({"prepare": words}) for words in (was, now))
    assert say_difference("objective", before, after) == f"the command's prepare changed {said}"
