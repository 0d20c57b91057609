"""``autotune check`` says how long a search will take, from earlier trials where there are any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autotune.cli.check import command
from autotune.errors import InputError
from tests.cli.conftest import autotune
from tests.recordings import record


def check(folder: Path, *arguments: str, exit_code: int = 0) -> str:
    """What the verb prints for the space in ``folder``; in this process, which is quicker than another."""
    done = CliRunner().invoke(command, [str(folder / "space.yaml"), *arguments], standalone_mode=False)
    assert done.exception is None and done.return_value == exit_code, done.output
    return done.stdout


def times(folder: Path, *arguments: str) -> dict[str, Any]:
    return json.loads(check(folder, *arguments, "--json"))["time"]


def copy(folder: Path, to: Path, **replaced: str) -> None:
    """The small study's files with some text in the space file replaced."""
    text = (folder / "space.yaml").read_text()
    for old, new in replaced.items():
        assert f"{old}: " in text
        text = "\n".join(f"{old}: {new}" if line.startswith(f"{old}:") else line for line in text.split("\n"))
    (to / "space.yaml").write_text(text)
    (to / "objective.py").write_text((folder / "objective.py").read_text())


def test_it_says_what_is_tried_first(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(tile):\n    return 1.0\n")
    space = (
        "autotune: 1\nname: a\nobjective: a.py:a\nknobs: {tile: {range: [1, 9]}}\nconstraints: [tile < 6]\n"
    )
    (tmp_path / "space.yaml").write_text(space + "search: {first: [{tile: 3}, {tile: 7}, {}]}\n")
    assert check(tmp_path).splitlines()[-3:-1] == [
        "  2 of 3 configurations to try first",
        "  search.first[1] violates the constraint 'tile < 6' (with tile = 7): it is not tried",
    ]


def test_without_earlier_trials_it_is_a_worst_case(folder: Path, tmp_path: Path) -> None:
    time = times(folder, "--store", str(tmp_path / "none.db"))
    assert time["forecast"] is None and time["worst"] == 12 * (120 + 10)
    said = check(folder, "--store", str(tmp_path / "none.db"))
    assert "at worst it takes 26 min" in said and "no earlier trial" in said
    assert not (tmp_path / "none.db").exists(), "checking made a store"


def test_a_worst_case_has_no_more_trials_than_there_are_configurations(folder: Path, tmp_path: Path) -> None:
    copy(folder, tmp_path, budget="{trials: 100}")
    assert times(tmp_path, "--store", str(tmp_path / "none.db"))["worst"] == 18 * (120 + 10)


def test_the_default_is_shown_as_json(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: placed\ncommand: [echo]\nmetrics: {loss: {goal: minimize}}\n"
        "knobs: {place: {assign: [embed, head], to: [cpu, gpu]}, order: {permutation: [i, j]}}\n"
    )
    default = json.loads(check(tmp_path, "--json"))["default"]
    assert default["configuration"] == {"place": {"embed": "cpu", "head": "cpu"}, "order": ["i", "j"]}


def test_an_option_that_a_knob_leaves_without_a_value_is_said(tmp_path: Path) -> None:
    """The program had refused ``--algo=``, and nothing had said where it came from."""
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: shell\n"
        "command: {run: [sh, -c, 'echo --algo={algo} {tile} | cat'], metrics: wall}\n"
        "knobs:\n  tile: {values: [1, 2]}\n  algo: {choices: [a, b], when: tile == 2}\n"
    )
    assert "where algo does not exist, '--algo=' stands without a value" in check(tmp_path)
    assert json.loads(check(tmp_path, "--json"))["left_empty"] == [{"knob": "algo", "option": "--algo="}]


def test_a_macro_whose_knob_the_space_leaves_out_is_found(tmp_path: Path) -> None:
    """The search refused it, and check had said nothing."""
    objective = (
        "from autotune.measure.kernels.compiled_c import CompiledC\n\n\n"
        "class Kernel(CompiledC):\n    macros = {'tile': 'TILE', 'unroll': 'UNROLL'}\n"
    )
    (tmp_path / "kernel.py").write_text(objective)
    space = "autotune: 1\nname: c\nobjective: kernel.py:Kernel\nknobs: {tile: {values: [1, 2]}}\n"
    (tmp_path / "space.yaml").write_text(space)
    done = autotune(tmp_path, "check", "space.yaml")
    assert done.returncode == 2 and "Kernel.macros has the knob 'unroll'" in done.stderr


def test_earlier_trials_of_the_study_say_how_long_the_rest_takes(folder: Path, tmp_path: Path) -> None:
    copy(folder, tmp_path, budget="{trials: 100}")
    store = str(folder / "study.db")
    forecast = times(tmp_path, "--store", store)["forecast"]
    assert forecast["study"] == "small#1" and forecast["known"] == 12 and forecast["differs"] == []
    assert forecast["trials"] == 18 - 12, "the space has 18 configurations, of which 12 were tried"
    lasts = forecast["duration"]
    assert 0 <= lasts["low"] <= lasts["seconds"] <= lasts["high"]
    assert forecast["each"]["measure"] > 0
    said = check(tmp_path, "--store", store)
    assert "the 6 trials to go take about" in said and "judged by 12 trials of small#1" in said
    assert "at worst" not in said


def test_trials_of_a_study_that_differs_count_and_it_is_said(folder: Path, tmp_path: Path) -> None:
    copy(folder, tmp_path, name="renamed")
    forecast = times(tmp_path, "--store", str(folder / "study.db"))["forecast"]
    assert forecast["study"] == "small#1" and forecast["trials"] == 12 and forecast["differs"] == []
    (tmp_path / "objective.py").write_text("def measure(tile, layout, order):\n    return 1.0\n")
    said = check(tmp_path, "--store", str(folder / "study.db"))
    assert "which differs in its source" in said


def test_a_search_that_is_done_and_another_device(folder: Path) -> None:
    assert "its trials are done already" in check(folder, "--store", str(folder / "study.db"))
    elsewhere = times(folder, "--store", str(folder / "study.db"), "--device", "generic-cpu")
    assert elsewhere["forecast"] is None and elsewhere["worst"] is not None


def test_nothing_is_said_of_the_time_of_a_replay(tmp_path: Path) -> None:
    entries = [{"x": x, "time": float(x), "times": [float(x)]} for x in (1, 2)]
    record(tmp_path / "cache.json", {"x": [1, 2]}, entries)
    assert autotune(tmp_path, "import", "cache.json", "-o", "space.yaml").returncode == 0
    time = times(tmp_path)
    assert time["worst"] is None and time["forecast"] is None
    assert "at worst" not in check(tmp_path)


def test_a_recorded_search_learns_from_another_wherever_it_is_replayed(tmp_path: Path) -> None:
    """It had named this machine as where the other one was measured; and the hint left out the store."""
    for name, slow in (("one", 1.0), ("two", 1.5)):
        entries = [{"x": x, "time": slow * x} for x in range(1, 11)]
        record(tmp_path / f"{name}.json", {"x": range(1, 11)}, entries, kernel_name=name)
        said = autotune(tmp_path, "import", f"{name}.json", "--store", "studies.db").stdout
        assert f"next:  autotune search {name}.yaml --store studies.db\n" in said
        searched = autotune(tmp_path, "search", f"{name}.yaml", "--store", "studies.db")
        assert searched.returncode == 0
    assert "note: learning from 10 trials of study one#1\n" in searched.stderr


def test_an_import_says_that_its_recording_breaks_off(tmp_path: Path) -> None:
    entries = ", ".join(f'"{x}": {{"x": {x}, "time": {x}.0}}' for x in (1, 2))
    head = (
        '{"device_name": "a", "kernel_name": "k", "tune_params_keys": ["x"], "tune_params": {"x": [1, 2, 4]},'
    )
    (tmp_path / "cut.json").write_text(f'{head} "cache": {{{entries}, "4": {{"x": 4, "ti')
    said = autotune(tmp_path, "import", "cut.json").stdout
    assert "2 recorded configurations" in said and "the recording is damaged: it breaks off" in said
    document = json.loads(autotune(tmp_path, "import", "cut.json", "--force", "--json").stdout)
    assert document["configurations"] == 2 and document["damage"].startswith("it breaks off")


def test_an_import_says_which_of_its_recording_it_left_out(tmp_path: Path) -> None:
    record(tmp_path / "some.json", {"x": [1, 2]}, [{"x": 1, "time": 1.0}, {"x": 2, "compile_time": 3.0}])
    said = autotune(tmp_path, "import", "some.json").stdout
    assert "1 recorded configuration, 0 of them failed" in said and "1 more entry without a time" in said
    assert "Left out, since they have no time: 1." in (tmp_path / "some.yaml").read_text().replace(
        "\n# ", " "
    )
    document = json.loads(autotune(tmp_path, "import", "some.json", "--force", "--json").stdout)
    assert document["configurations"] == document["untimed"] == 1


def test_an_import_says_what_a_search_for_time_does_not_try(tmp_path: Path) -> None:
    """``1 of them have other numbers`` was said, after those that were left out; in JSON it was not."""
    results = [
        {"configuration": {"x": 1}, "measurements": [{"name": "time", "value": 1.0}]},
        {"configuration": {"x": 2}, "measurements": [{"name": "energy", "value": 5.0, "unit": "J"}]},
    ]
    (tmp_path / "some.json").write_text(json.dumps({"results": results}))
    said = autotune(tmp_path, "import", "some.json").stdout
    assert "1 configuration has other numbers, but no time: not tried by a search for time" in said
    assert json.loads(autotune(tmp_path, "import", "some.json", "--force", "--json").stdout)["lacking"] == 1


def test_an_import_says_for_what_its_recording_was_tuned(tmp_path: Path) -> None:
    """The space that was written for a tuning of energy was for time, without a word."""
    result = {
        "configuration": {"x": 1},
        "measurements": [{"name": "time", "value": 1.0}, {"name": "energy", "value": 5.0, "unit": "J"}],
    }
    for tuned, is_said in ((["energy"], True), (["energy", "time"], False), (None, False)):
        (tmp_path / "some.json").write_text(json.dumps({"results": [result | {"objectives": tuned}]}))
        said = autotune(tmp_path, "import", "some.json", "--force").stdout
        assert ("it was tuned for energy, and this space is for time" in said) is is_said
        document = json.loads(autotune(tmp_path, "import", "some.json", "--force", "--json").stdout)
        assert document["objectives"] == (tuned or [])


def test_an_option_of_the_strategy_that_is_misspelt_is_found(tmp_path: Path) -> None:
    text = "autotune: 1\nname: o\ncommand: ['true']\nknobs:\n  a: {range: [1, 9]}\n"
    (tmp_path / "space.yaml").write_text(
        f"{text}search: {{strategy: evolution, options: {{populaton: 3}}}}\n"
    )
    found = autotune(tmp_path, "check", "space.yaml")
    assert found.returncode == 2 and "did you mean 'population'?" in found.stderr
    assert "space.yaml:" in found.stderr and ": the strategy 'evolution' has no option" in found.stderr
    assert autotune(tmp_path, "check", "space.yaml", "--device", "generic-cpu").returncode == 0


def test_what_cannot_be_counted_is_marked_as_an_estimate(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: big\ncommand: ['true']\nknobs:\n"
        "  a: {range: [1, 1000000]}\n  b: {range: [1, 1000000]}\n  x: {range: [0.0, 1.0]}\n"
        "constraints: ['a * b <= 10 ** 11', 'b >= 1', 'a * x >= 0']\n"
    )
    first, *rules = check(tmp_path, "--store", str(tmp_path / "none.db")).splitlines()
    assert "1,000,000,000,000 combinations, ~330,000,000,000 (too many states" in first
    assert [line.split()[1] for line in rules if "removes" in line] == ["~670,000,000,000", "0", "~0"]


def test_a_knob_that_the_facts_rule_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: other\ncommand: ['true']\nworkload: {m: 64}\nknobs:\n"
        "  tile: {values: [1, 2]}\n  split: {range: [1, 8], when: m > 1000 and tile > 1}\n"
    )
    said = check(tmp_path, "--store", str(tmp_path / "none.db"))
    assert "split never exists here: m > 1000 and tile > 1, but workload.m is 64" in said
    assert "2 combinations, 2 feasible" in said


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("objective: objectiv.py:run", "space.yaml:3:12: there is no objective file"),
        ("objective: no.such.module:run", "space.yaml:3:12: there is no Python module 'no.such.module'"),
        ("objective: objective.py:Run", "Run names 'gone.c' among its `sources`"),
        ("replay: nothere.json", "space.yaml:3:9: there is no recording"),
        (f"replay: {'long' * 75}/nothere.json", "space.yaml:3:9: there is no recording"),
        (f"objective: {'long' * 75}/objective.py:run", "space.yaml:3:12: there is no objective file"),
        ("objective: objective.py:Long", "Long names 'longlonglong"),
        ("objective: objective.py:runn", "space.yaml:3:12: objective.py has no 'runn'"),
        ("objective: broken.py:run", "broken.py:1:"),
        ("objective: objective.py:other", "objective.py:4: other() has no parameter for the knob 'a'"),
        ("command: [./bench, '{a}']", "space.yaml:3:10: there is no program './bench'"),
        ("command: [python3, objectiv.py]", "space.yaml:3:10: there is no file 'objectiv.py'"),
    ],
)
def test_what_is_tuned_has_to_be_there_and_to_take_the_knobs(tmp_path: Path, what: str, said: str) -> None:
    (tmp_path / "objective.py").write_text(
        "def run(a): return float(a)\nclass Run: sources = ('gone.c',)\n"
        f"class Long: sources = ('{'long' * 75}',)\ndef other(b=1): return float(b)\n"
    )
    (tmp_path / "broken.py").write_text("def run(a b): pass\n")
    space = tmp_path / "space.yaml"
    knobs = "metrics: {time: {goal: minimize}}\nknobs: {a: {values: [1, 2]}}\n"
    space.write_text(f"autotune: 1\nname: gone\n{what}\n{knobs}")
    with pytest.raises(InputError) as raised:
        CliRunner().invoke(command, [str(space)], standalone_mode=False, catch_exceptions=False)
    assert said in str(raised.value)
    assert "objectiv.py:run" not in what or "did you mean 'objective.py'?" in str(raised.value)


def test_what_another_machine_has_is_not_asked_here(tmp_path: Path) -> None:
    text = "autotune: 1\nname: there\nobjective: only.there:run\nmetrics: {time: {goal: minimize}}\n"
    (tmp_path / "space.yaml").write_text(f"{text}knobs: {{a: {{values: [1, 2]}}}}\n")
    (tmp_path / "machine.yaml").write_text("name: elsewhere\nkind: cpu\nl1_bytes: 32768\n")
    assert "2 feasible" in check(tmp_path, "--device", str(tmp_path / "machine.yaml"))


def test_continuous_knobs_alone_have_no_combinations_to_be_counted(tmp_path: Path) -> None:
    """A space of two ranges had been '1 combination, 1 feasible'."""
    (tmp_path / "objective.py").write_text("def f(a, b): return a + b\n")
    head = "autotune: 1\nname: smooth\nobjective: objective.py:f\n"
    (tmp_path / "space.yaml").write_text(head + "knobs: {a: {range: [0.0, 1.0]}, b: {range: [0.0, 9.0]}}\n")
    said = check(tmp_path)
    assert said.startswith("smooth: 2 knobs, of continuous values: a, b\n") and "combination" not in said


def test_knobs_that_hang_on_a_continuous_one_are_said_not_to_be_counted(tmp_path: Path) -> None:
    """A knob of eleven values had been one of '2 knobs, 1 combination', and was named nowhere."""
    (tmp_path / "objective.py").write_text("def f(u, n=0): return u + n\n")
    head = "autotune: 1\nname: hanging\nobjective: objective.py:f\n"
    knobs = "knobs: {u: {range: [0.0, 1.0]}, n: {range: [0, 10], when: 'u > 0.5'}}\n"
    (tmp_path / "space.yaml").write_text(head + knobs)
    said = check(tmp_path)
    assert said.startswith("hanging: 2 knobs, of continuous values: u\n")
    assert "not counted, since a continuous knob decides whether it is there: n\n" in said


def test_a_constraint_that_no_value_of_continuous_knobs_satisfies_is_said_to_be_too_rare(
    tmp_path: Path,
) -> None:
    """It had been sound, and the search then ended before its first trial."""
    (tmp_path / "objective.py").write_text("def f(x, y): return x * y\n")
    head = "autotune: 1\nname: line\nobjective: objective.py:f\nconstraints: [x * y < -1]\n"
    knobs = "knobs: {x: {range: [0.0, 1.0]}, y: {range: [0.0, 1.0], default: 1.0}}\n"
    (tmp_path / "space.yaml").write_text(head + knobs)
    said = check(tmp_path, exit_code=3)
    assert "removes     over 99.9 %  of random draws  x * y < -1" in said
    assert "no configuration satisfies 'x * y < -1': it is false for all values of x, y" in said


def test_shares_that_add_up_to_a_whole_are_a_space(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("def f(x, y): return x * y\n")
    head = "autotune: 1\nname: line\nobjective: objective.py:f\nconstraints: [x + y == 1]\n"
    knobs = "knobs: {x: {range: [0.0, 1.0]}, y: {range: [0.0, 1.0], default: 1.0}}\n"
    (tmp_path / "space.yaml").write_text(head + knobs)
    assert "the default is feasible" in check(tmp_path)


def test_a_space_that_nobody_tries_whole_has_no_worst_case(tmp_path: Path) -> None:
    """An order of 200 items has more configurations than a float can say: it had ended in a traceback."""
    items = ", ".join(f"i{number}" for number in range(200))
    head = "autotune: 1\nname: long\ncommand: ['true']\n"
    (tmp_path / "space.yaml").write_text(head + f"knobs: {{order: {{permutation: [{items}]}}}}\n")
    assert times(tmp_path, "--store", str(tmp_path / "none.db"))["worst"] is None
    assert "at worst" not in check(tmp_path, "--store", str(tmp_path / "none.db"))


def test_of_very_many_constraints_it_is_not_said_what_each_removes(tmp_path: Path) -> None:
    knobs = "".join(f"  k{number}: {{flag: false}}\n" for number in range(150))
    rules = "".join(f"  - not k{number} or k{number + 1}\n" for number in range(149))
    head = "autotune: 1\nname: chain\ncommand: ['true']\n"
    (tmp_path / "space.yaml").write_text(f"{head}knobs:\n{knobs}constraints:\n{rules}")
    said = check(tmp_path, "--store", str(tmp_path / "none.db"))
    assert "151 feasible" in said and "its 149 constraints are too many to say what each removes" in said


def test_a_knob_whose_condition_nothing_meets_is_named(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: o\ncommand: ['true']\nknobs:\n"
        "  a: {values: [1, 2, 4]}\n  b: {range: [1, 9], when: a == 3}\n  c: {range: [1, 9], when: a == 2}\n"
    )
    assert "b exists in no configuration: nothing feasible has a == 3" in check(tmp_path)
    assert [row["knob"] for row in json.loads(check(tmp_path, "--json"))["absent"]] == ["b"]


def test_a_wide_range_on_a_linear_scale_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: o\ncommand: ['true']\nknobs:\n  rate: {range: [0.0001, 0.5]}\n"
        "  batch: {range: [1, 100000], default: 8}\n  right: {range: [0.0001, 0.5], scale: log}\n"
        "  threads: {range: [1, 1024]}\n  share: {range: [0.0, 1.0]}\n"
    )
    said = check(tmp_path)
    assert "rate goes from 0.0001 to 0.5 on a linear scale, so that nine in ten draws are above 0.05" in said
    assert "batch goes from 1 to 100,000" in said
    assert [row["knob"] for row in json.loads(check(tmp_path, "--json"))["steep"]] == ["rate", "batch"]


def test_what_comes_after_the_time_of_the_search_is_said(tmp_path: Path) -> None:
    """Ten seconds of searching four workloads take a minute and a half in all."""
    (tmp_path / "objective.py").write_text("def f(a, m): return float(a * m)\n")
    text = "autotune: 1\nname: timed\nobjective: objective.py:f\nknobs: {a: {values: [1, 2]}}\n"
    (tmp_path / "space.yaml").write_text(f"{text}workload: {{m: 1}}\nbudget: {{time: 10s}}\n")
    assert "given 10 s; then the finalists are measured again, which takes about 15 s" in check(tmp_path)
    (tmp_path / "space.yaml").write_text(f"{text}workloads: {{m: [1, 2, 3, 4]}}\nbudget: {{time: 10s}}\n")
    assert "given 10 s over all workloads; then the finalists of each" in check(tmp_path)
    assert times(tmp_path) == {"budget": 10.0, "finale": 80.0}


def test_where_nothing_is_feasible_no_time_is_foreseen(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: o\ncommand: ['true']\nknobs: {a: {values: [1, 2], default: 1}}\n"
        "constraints: ['a > 2', 'a > 3']\nbudget: {time: 20s}\n"
    )
    said = check(tmp_path, exit_code=3)
    assert "0 feasible" in said and "20 s" not in said
    assert [line for line in said.splitlines() if "default" in line and not line.startswith("  ")] == []


def test_a_function_that_needs_a_knob_which_may_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(fast, tile):\n    return 1.0\n")
    knobs = "knobs: {fast: {flag: false}, tile: {range: [1, 9], when: WHEN}}\n"
    space = f"autotune: 1\nname: a\nobjective: a.py:a\nworkload: {{m: 4}}\n{knobs}"
    (tmp_path / "space.yaml").write_text(space.replace("WHEN", "workload.m > 2"))
    check(tmp_path)
    (tmp_path / "space.yaml").write_text(space.replace("WHEN", "fast"))
    done = CliRunner().invoke(command, [str(tmp_path / "space.yaml")], standalone_mode=False)
    assert isinstance(done.exception, InputError) and "write tile=None" in str(done.exception)
