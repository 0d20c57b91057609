"""``autotune best``: what other programs read."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import autotune
from autotune.cli import best, report, show
from autotune.measure.commands.run_protocol import VARIABLE
from autotune.space.knobs import OrderedValues
from autotune.space.space import Space
from tests.cli.calling import call
from tests.interop.exported import make

SPACE = """
autotune: 1
name: spelling
command: [echo]
metrics: {loss: {goal: minimize}}
knobs:
  lr: {values: [1.0e-5]}
  on: {flag: true, default: true}
  steps: {permutation: [true, 2]}
  place: {assign: [head], to: ["no", gpu]}
"""


ODD = """
autotune: 1
name: odd
command: [echo]
metrics: {loss: {goal: minimize}}
knobs: {größe: {values: [1]}, lr: {values: [1]}, LR: {values: [2]}}
"""


@pytest.mark.parametrize("front", [[], ["--front"]])
def test_a_name_that_no_shell_takes_is_an_error_and_prints_nothing(tmp_path: Path, front: list[str]) -> None:
    """A shell had run ``GRÖSSE=1`` as a command, and of two knobs with one name the last had won."""
    (tmp_path / "space.yaml").write_text(ODD)
    with autotune.ask_tell(tmp_path / "space.yaml", strategy="grid", store=tmp_path / "s.db") as session:
        session.tell(session.ask(1)[0], loss=1.0)
    done = call(best.command, "--format", "env", "--store", tmp_path / "s.db", *front)
    assert isinstance(done.exception, autotune.InputError) and done.stdout == ""
    first, second = done.exception.problems
    assert "the name of the knob 'größe' cannot be that of a shell variable" in str(first)
    assert "the knobs 'lr' and 'LR' are both LR" in str(second)
    flags = call(best.command, "--format", "flags", "--store", tmp_path / "s.db", *front).stdout
    assert shlex.split(flags) == ["--größe=1", "--lr=1", "--LR=2"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one trial, the default."""
    folder = tmp_path_factory.mktemp("best")
    (folder / "space.yaml").write_text(SPACE)
    with autotune.ask_tell(folder / "space.yaml", strategy="grid", store=folder / "study.db") as session:
        [trial] = session.ask(1)
        session.tell(trial, loss=1.0)
    return folder / "study.db"


@pytest.mark.parametrize("front", [[], ["--front"]])
def test_yaml_is_what_was_tried_to_readers_of_yaml_1_1_too(store: Path, front: list[str]) -> None:
    """To them ``1e-05`` is a text, and ``on`` a flag."""
    printed = call(best.command, "--store", store, *front).stdout
    assert "lr: 1.0e-05" in printed
    for version in ((1, 1), (1, 2)):
        reader = YAML(typ="safe", pure=True)
        reader.version = version
        read = reader.load(printed)
        assert read == {"lr": 1e-5, "on": True, "steps": [True, 2], "place": {"head": "no"}}
        assert [type(name) for name in read] == [str] * 4


@pytest.mark.parametrize("front", [[], ["--front"]])
def test_a_script_that_takes_set_has_what_was_tried(
    store: Path, front: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    words = shlex.split(call(best.command, "--format", "set", "--store", store, *front).stdout)
    parser = argparse.ArgumentParser()
    with autotune.run("spelling") as run:
        run.add_arguments(parser)
        parser.parse_args(words)
        defaults = {"lr": 1.0, "on": False, "steps": [], "place": {}}
        found = {name: run.knob(name, default) for name, default in defaults.items()}
    assert found == {"lr": 1e-5, "on": True, "steps": [True, 2], "place": {"head": "no"}}


@pytest.mark.parametrize("form", ["flags", "env"])
def test_words_are_those_that_a_command_is_given(store: Path, form: str) -> None:
    words = shlex.split(call(best.command, "--format", form, "--store", store).stdout)
    values = {"lr": "1e-05", "on": "true", "steps": "true,2", "place": '{"head":"no"}'}
    spelt = {"flags": str.lower, "env": str.upper}[form]
    start = {"flags": "--", "env": ""}[form]
    assert words == [f"{start}{spelt(name)}={value}" for name, value in values.items()]


def test_a_verdict_that_says_only_who_won_is_read(tmp_path: Path) -> None:
    make(tmp_path / "study.db").close()
    for verb in (best.command, show.command, report.command):
        arguments = ["-o", str(tmp_path / "report.html")] if verb is report.command else []
        done = call(verb, *arguments, "--store", tmp_path / "study.db")
        assert done.exception is None, done.exception


def test_yaml_says_what_the_winner_is_worth(tmp_path: Path) -> None:
    """The remark had been in JSON and in what a search prints, but not in what a program is given."""
    with make(tmp_path / "study.db") as store:
        verdict = {"configuration": {"tile": 4}, "label": "trial 5", "speedup": None}
        remark = "the machine was busy\n{for: half of it} " + "and for longer " * 20
        store.save_verdict(store.study(None).id, 1, verdict | {"remark": remark})
    printed = call(best.command, "--store", tmp_path / "study.db").stdout
    first, second, *_, last = printed.splitlines()
    assert first.startswith("# winner of ")
    assert second.startswith("# Remark: the machine was busy {for: half of it} and for longer")
    assert YAML(typ="safe", pure=True).load(printed) == {"tile": 4} and last == "tile: 4"
    for other in ("env", "flags", "set"):
        assert "#" not in call(best.command, "--format", other, "--store", tmp_path / "study.db").stdout


def test_a_workload_of_several_lines_stays_in_the_comment(tmp_path: Path) -> None:
    """The second line of a text had become a knob of the YAML, and escape codes had reached the terminal."""
    workload = 'workload: {note: "as measured\\ntile: 99", title: "\\e[2Jred\\u202e"}\n'
    (tmp_path / "space.yaml").write_text(SPACE + workload)
    with autotune.ask_tell(tmp_path / "space.yaml", strategy="grid", store=tmp_path / "s.db") as session:
        [trial] = session.ask(1)
        session.tell(trial, loss=1.0)
    printed = call(best.command, "--store", tmp_path / "s.db").stdout
    assert set(YAML(typ="safe", pure=True).load(printed)) == {"lr", "on", "steps", "place"}
    assert "measured\\ntile: 99" in printed and "\x1b" not in printed and "\u202e" not in printed


CONFIGURED = """
autotune: 1
name: configured
command:
  run: [cat, "{config}"]
  config:
    file: tiles.h
    text: |
      #define TILE {tile}
      #define ROWS {workload.rows}
      #define AHEAD {ahead}
  metrics: {pattern: {cost: 'TILE ([0-9]+)'}}
workload: {rows: 7}
metrics: {cost: {goal: minimize}}
knobs:
  tile: {values: [3, 4]}
  ahead: {values: [1, 2], when: tile == 4}
measure: {finalists: 0, max_readings: 3}
"""


def test_the_config_file_of_the_winner_can_be_handed_on(tmp_path: Path) -> None:
    """A header for others had to be written by hand, from the knobs and the template of the space file."""
    (tmp_path / "space.yaml").write_text(CONFIGURED)
    result = autotune.search(tmp_path / "space.yaml", trials=2, store=tmp_path / "s.db")
    assert "YAML (or json, env, flags, set, command, config)" in autotune.summarize(result)
    done = call(best.command, "--format", "config", "--store", tmp_path / "s.db")
    assert done.stdout == "#define TILE 3\n#define ROWS 7\n"
    done = call(best.command, "--format", "command", "--store", tmp_path / "s.db")
    assert done.stdout.splitlines() == [
        "mkdir -p folder",
        "# folder/tiles.h: what --format config writes",
        "cat folder/tiles.h",
    ]


BUILT = """
autotune: 1
name: built
command:
  prepare: [cp, template, "{folder}/{mode}"]
  run: [grep, -H, "cost={cost}", "--label=it's {workload.title}", "{folder}/{mode}"]
  environment: {LANG: "{mode}"}
  metrics: {pattern: {cost: 'cost=([0-9]+)'}}
workload: {title: mine}
metrics: {cost: {goal: minimize}}
knobs:
  cost: {values: [3, 1, 2]}
  mode: {choices: [C, POSIX]}
measure: {finalists: 0, max_readings: 3}
"""


def test_the_winners_command_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(BUILT)
    (tmp_path / "template").write_text("cost=1\ncost=2\ncost=3\n")
    result = autotune.search(tmp_path / "space.yaml", strategy="grid", trials=6, store=tmp_path / "s.db")
    assert "best --format command" in autotune.summarize(result) and result.best is not None
    line = call(best.command, "--format", "command", "--store", tmp_path / "s.db").stdout
    there = tmp_path / "elsewhere"
    there.mkdir()
    shutil.copy(tmp_path / "template", there)
    ran = subprocess.run(line, shell=True, cwd=there, capture_output=True, text=True, check=True)
    assert ran.stdout == f"folder/{result.best['mode']}:cost=1\n"


def test_without_a_command_or_where_it_asks_for_knobs_there_is_no_line_to_paste(
    store: Path, tmp_path: Path
) -> None:
    done = call(best.command, "--format", "command", "--store", store)
    assert isinstance(done.exception, autotune.InputError) and done.stdout == ""
    assert "is not given lr, on, steps, place: its program asks for that" in str(done.exception)
    space = Space([OrderedValues("tile", (1, 2))])
    autotune.search(space, objective=lambda tile: float(tile), trials=2, store=tmp_path / "s.db")
    done = call(best.command, "--format", "command", "--store", tmp_path / "s.db")
    assert isinstance(done.exception, autotune.InputError)
    assert "is no command" in str(done.exception)


def test_without_a_config_file_there_is_none_to_hand_on(store: Path) -> None:
    done = call(best.command, "--format", "config", "--store", store)
    assert isinstance(done.exception, autotune.InputError) and done.stdout == ""
    assert "the objective of spelling#1 is given no config file" in str(done.exception)
