"""Reading a space file: every section, files that are none, and problems that come one by one."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.provenance.profiles import profile
from autotune.space.configuration import FrozenMap
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.reader import parse_spec, read_family, read_spec
from autotune.space.space_file import MAX_BYTES
from autotune.space.spec import (
    Budget,
    CommandObjective,
    MeasureSettings,
    MetricSpec,
    PythonObjective,
    ReplayObjective,
    SearchSettings,
)

ROOT = Path(__file__).parents[2]
DEVICE = {"l1_bytes": 32768, "l2_bytes": 1048576, "names": ("cpu", "cuda:0")}
HEAD = "autotune: 1\nname: demo\n"
TILE = "knobs:\n  tile: {values: [1, 2, 4]}\n"

EXAMPLE = """\
autotune: 1
name: gemm-c
objective: ../objectives/gemm_c.py:Gemm
workload: {m: 960, n: 960, k: 960, dtype: float32}
metrics:
  time: {goal: minimize, unit: s}
  error: {at_most: 1.0e-5}
knobs:
  tile_m:   {values: [1, 2, 4, 8, 16, 30], default: 4}
  depth:    {range: [1, 32], scale: log2, default: 2}
  lr:       {range: [1.0e-5, 1.0], scale: log, default: 1.0e-3}
  layout:   {choices: [row, column], default: row}
  fused:    {flag: true}
  momentum: {range: [0.0, 0.99], when: "layout == 'row'"}
  order:    {permutation: [i, j, k]}
  place:    {assign: [embed, block0, block1, head], to: devices}
constraints:
  - "tile_m * depth * 4 <= device.l1_bytes"
search:  {strategy: auto, seed: 0, transfer: true}
measure: {precision: 0.01, confidence: 0.95, timeout: 30, memory: 4GiB}
budget:  {trials: 200, time: 10m, patience: 60}
"""


def problems(text: str, **facts: object) -> list[str]:
    """What reading ``text`` says, a text a problem."""
    with pytest.raises(InputError) as error:
        parse_spec(text, "space.yaml", **facts)  # type: ignore[arg-type]
    return [str(problem) for problem in error.value.problems]


class TestExample:
    spec = parse_spec(EXAMPLE, "searchspaces/gemm-c.yaml", DEVICE)

    def test_name_and_source(self) -> None:
        assert self.spec.name == "gemm-c"
        assert self.spec.source == Path("searchspaces/gemm-c.yaml")
        assert self.spec.text == EXAMPLE

    def test_objective(self) -> None:
        assert self.spec.objective == PythonObjective("../objectives/gemm_c.py:Gemm", Path("searchspaces"))

    def test_workload(self) -> None:
        assert self.spec.workload == FrozenMap({"m": 960, "n": 960, "k": 960, "dtype": "float32"})

    def test_metrics(self) -> None:
        assert self.spec.metrics == (
            MetricSpec("time", "minimize", "s"),
            MetricSpec("error", at_most=1e-5),
        )
        assert [metric.name for metric in self.spec.goals] == ["time"]

    def test_settings(self) -> None:
        assert self.spec.search == SearchSettings("auto", 0, True)
        assert self.spec.measure == MeasureSettings(0.01, 0.95, timeout=30.0, memory=4 * 2**30)
        assert self.spec.budget == Budget(200, 600.0, 60)

    def test_knobs(self) -> None:
        by_name = {knob.name: knob for knob in self.spec.space.knobs}
        assert list(by_name) == ["tile_m", "depth", "lr", "layout", "fused", "momentum", "order", "place"]
        assert by_name["tile_m"] == OrderedValues("tile_m", (1, 2, 4, 8, 16, 30), default=4)
        assert by_name["depth"] == IntegerRange("depth", 1, 32, scale="log2", default=2)
        assert by_name["lr"] == FloatRange("lr", 1e-5, 1.0, scale="log", default=1e-3)
        assert by_name["layout"] == Choice("layout", ("row", "column"))
        assert by_name["fused"] == Flag("fused", default=True)
        assert by_name["order"] == Permutation("order", ("i", "j", "k"))
        assert by_name["place"] == Assignment(
            "place", ("embed", "block0", "block1", "head"), ("cpu", "cuda:0")
        )
        momentum = by_name["momentum"]
        assert isinstance(momentum, FloatRange) and momentum.when is not None
        assert not momentum.when.holds({"layout": "column"})

    def test_the_default_is_in_the_space(self) -> None:
        default = self.spec.space.default()
        assert default in self.spec.space
        assert default["tile_m"] == 4 and default["order"] == ("i", "j", "k")

    def test_device_facts_decide_constraints(self) -> None:
        small = parse_spec(EXAMPLE, "space.yaml", {**DEVICE, "l1_bytes": 64})
        assert small.space.violated(small.space.configuration({"tile_m": 30, "depth": 32}))


def test_the_ready_spaces_are_read() -> None:
    a_cpu_and_a_gpu = {**profile("h200"), **DEVICE}
    for path in sorted((ROOT / "searchspaces").glob("*.yaml")):
        assert read_family(path, a_cpu_and_a_gpu).name


def test_a_limit_of_time_is_for_so_many_trials() -> None:
    assert Budget(20, 600.0).share == 30.0
    assert Budget(1000, 600.0).share == Budget(None, 600.0).share == 12.0
    assert Budget(20).share == math.inf


def test_what_is_left_out_has_its_default() -> None:
    spec = parse_spec(f"{HEAD}objective: a.py:A\n{TILE}")
    assert spec.metrics == (MetricSpec("time", "minimize", "s"),)
    assert (spec.search, spec.measure, spec.budget) == (SearchSettings(), MeasureSettings(), Budget())
    assert spec.workload == FrozenMap({})


def test_empty_optional_sections_are_as_left_out() -> None:
    without = f"{HEAD}objective: a.py:A\n{TILE}"
    spec = parse_spec(f"{without}constraints:\nworkload:\nworkloads:\nsearch:\nmeasure:\nbudget:\n")
    assert replace(spec, text=without) == parse_spec(without)


def test_a_default_outside_the_constraints_is_no_error_of_the_file() -> None:
    """It depends on the machine whether a default is feasible; ``autotune check`` says so."""
    text = f"{HEAD}objective: a.py:A\nknobs: {{tile: {{values: [1, 8], default: 8}}}}\n"
    spec = parse_spec(f"{text}constraints: [tile <= device.cores]\n", device={"cores": 2})
    with pytest.raises(InputError, match=r"space.yaml:5:15: the default configuration violates"):
        spec.space.default()


def test_the_order_of_sections_does_not_matter() -> None:
    one = parse_spec(f"{HEAD}objective: a.py:A\nworkload: {{m: 4}}\n{TILE}constraints: [m % tile == 0]\n")
    other = parse_spec(f"constraints: [m % tile == 0]\n{TILE}workload: {{m: 4}}\nobjective: a.py:A\n{HEAD}")
    assert one.space.hash == other.space.hash


class TestYaml12:
    """What differs from YAML 1.1."""

    def choices(self, written: str) -> tuple[object, ...]:
        (knob,) = parse_spec(f"{HEAD}objective: a.py:A\nknobs: {{a: {{choices: [{written}]}}}}\n").space.knobs
        assert isinstance(knob, Choice)
        return knob.choices

    def test_scalars(self) -> None:
        assert self.choices("1e-3, no, on, true, 010, 0x1F, 0o17, 1_000, 1:30, -.5, +3") == (
            1e-3, "no", "on", True, 10, 31, 15, "1_000", "1:30", -0.5, 3,
        )  # fmt: skip

    def test_quoted_numbers_are_texts(self) -> None:
        assert self.choices("'1', \"2\", 3") == ("1", "2", 3)

    def test_dates_are_texts(self) -> None:
        assert self.choices("2024-01-01") == ("2024-01-01",)

    def test_aliases(self) -> None:
        spec = parse_spec(f"{HEAD}objective: a.py:A\nknobs:\n  a: &tile {{values: [1, 2]}}\n  b: *tile\n")
        assert [knob.cardinality for knob in spec.space.knobs] == [2, 2]

    def test_a_byte_order_mark_and_windows_lines(self) -> None:
        spec = parse_spec("\ufeff" + f"{HEAD}objective: a.py:A\n{TILE}".replace("\n", "\r\n"))
        assert spec.name == "demo"


class TestKnobs:
    def knob(self, written: str, **facts: object) -> object:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{{written}}}\n"
        (knob,) = parse_spec(text, **facts).space.knobs  # type: ignore[arg-type]
        return knob

    def test_a_float_bound_makes_a_range_of_floats(self) -> None:
        assert self.knob("range: [0, 1]") == IntegerRange("a", 0, 1)
        assert self.knob("range: [0, 1.0]") == FloatRange("a", 0.0, 1.0)
        assert self.knob("range: [0, 1], step: 0.25") == FloatRange("a", 0.0, 1.0, 0.25)

    def test_steps(self) -> None:
        assert self.knob("range: [0, 32], step: 8, default: 16") == IntegerRange("a", 0, 32, 8, default=16)

    def test_flags(self) -> None:
        assert self.knob("flag: false") == Flag("a", default=False)
        assert self.knob("flag: true, default: true") == Flag("a", default=True)

    def test_ordered_texts(self) -> None:
        assert self.knob("values: [low, high], default: high") == OrderedValues(
            "a", ("low", "high"), default="high"
        )

    def test_choices_of_lists(self) -> None:
        assert self.knob("choices: [[1, 8], [2, 4]], default: [2, 4]") == Choice(
            "a", ((1, 8), (2, 4)), default=(2, 4)
        )

    def test_permutation_with_a_default(self) -> None:
        assert self.knob("permutation: [i, j], default: [j, i]") == Permutation(
            "a", ("i", "j"), default=("j", "i")
        )

    def test_assignment_to_a_list(self) -> None:
        assert self.knob("assign: [x], to: [0, 1], default: {x: 1}") == Assignment(
            "a", ("x",), (0, 1), default=FrozenMap({"x": 1})
        )

    def test_assignment_to_devices(self) -> None:
        device = {"names": ("cpu", "gpu")}
        assert self.knob("assign: [x], to: devices", device=device) == Assignment("a", ("x",), ("cpu", "gpu"))

    def test_conditions_may_mention_later_knobs(self) -> None:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{values: [1, 2], when: b}}\n  b: {{flag: false}}\n"
        assert "a" not in parse_spec(text).space.default()


class TestCommand:
    def command(self, written: str, rest: str = "") -> CommandObjective:
        spec = parse_spec(f"{HEAD}command:{written}\n{rest}{TILE}", "folder/space.yaml")
        assert isinstance(spec.objective, CommandObjective)
        assert spec.objective.base == Path("folder")
        return spec.objective

    def test_list(self) -> None:
        assert self.command(' [./bench, -n, 3, "{tile}"]').arguments == ("./bench", "-n", "3", "{tile}")

    def test_text_is_split_as_a_shell_would(self) -> None:
        assert self.command(" ./bench --title 'a b' {tile}").arguments == (
            "./bench",
            "--title",
            "a b",
            "{tile}",
        )

    def test_mapping(self) -> None:
        objective = self.command(
            """
  run: [./bench, "{config}", "{workload.n}", "{{x}}"]
  prepare: make TILE={tile}
  check: [./check]
  environment: {THREADS: 4, TILE: "{tile}"}
  config: {file: c.json}
  metrics: {file: out.json}""",
            "workload: {n: 3}\n",
        )
        assert objective.arguments == ("./bench", "{config}", "{workload.n}", "{{x}}")
        assert objective.prepare == ("make", "TILE={tile}")
        assert objective.check == ("./check",)
        assert objective.environment == {"THREADS": "4", "TILE": "{tile}"}
        assert (objective.config_file, objective.config_text) == ("c.json", "")
        assert (objective.metrics_from, objective.metrics_file) == ("file", "out.json")

    def test_config_template(self) -> None:
        objective = self.command(
            "\n  run: [./bench, '{config}']\n  config: {file: c.ini, text: \"tile = {tile}\\n\"}"
        )
        assert (objective.config_file, objective.config_text) == ("c.ini", "tile = {tile}\n")

    def test_patterns(self) -> None:
        objective = self.command("\n  run: [./bench]\n  metrics: {pattern: {time: 't=([0-9.]+)'}}")
        assert objective.metrics_from == "pattern"
        assert objective.patterns == {"time": "t=([0-9.]+)"}

    def test_wall_clock(self) -> None:
        assert self.command("\n  run: [./bench]\n  metrics: wall").metrics_from == "wall"

    def test_placeholders_are_found_inside_a_text(self) -> None:
        found = problems(f"{HEAD}command: ./bench --tile {{tile}} {{tyle}}\n{TILE}")
        said = "unknown placeholder {tyle}\n  expected: a knob, workload.NAME\n  did you mean 'tile'?"
        assert found == [f"space.yaml:3:32: {said}"]


def test_replay() -> None:
    spec = parse_spec(f"{HEAD}replay: recordings/x.json.gz\n{TILE}", "folder/space.yaml")
    assert spec.objective == ReplayObjective(Path("folder/recordings/x.json.gz"))


class TestWorkloadGivenByTheCaller:
    text = f"{HEAD}objective: a.py:A\nworkload: {{m: 4, n: 8}}\n{TILE}constraints: [m % tile == 0]\n"

    def test_replaces_the_files(self) -> None:
        spec = parse_spec(self.text, workload={"m": 2})
        assert spec.workload == FrozenMap({"m": 2, "n": 8})
        assert spec.space.feasible.size == 2

    def test_a_misspelt_name_is_an_error(self) -> None:
        (found,) = problems(self.text, workload={"mm": 2})
        assert "the workload has no 'mm'" in found and "did you mean 'm'?" in found


class TestPlaces:
    """The column of a rule's error, however the rule is written."""

    @pytest.mark.parametrize(
        ("written", "place"),
        [
            ("tile * unrol <= 4", "7:12"),
            ("  tile * unrol <= 4", "7:14"),
            ("'tile * unrol <= 4'", "7:13"),
            ('"tile * unrol <= 4"', "7:13"),
            (">-\n    tile * unrol <= 4", "8:12"),
            ("|\n    tile * unrol <= 4", "8:12"),
            ("tile\n    * unrol <= 4", "7"),
            ('"tile \\x2a unrol <= 4"', "7"),
        ],
    )
    def test_constraint(self, written: str, place: str) -> None:
        text = f"{HEAD}objective: a.py:A\n{TILE}constraints:\n  - {written}\n"
        (found,) = problems(text)
        assert found.startswith(f"space.yaml:{place}: ")

    def test_when(self) -> None:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{flag: true}}\n  b: {{values: [1], when: not c}}\n"
        (found,) = problems(text)
        assert found.startswith("space.yaml:6:30: ")


class TestOneMistakeOneMessage:
    def test_a_broken_knob_is_not_missed_elsewhere(self) -> None:
        text = (
            f'{HEAD}command: [./b, "{{tile}}"]\nknobs:\n  tile: {{values: []}}\n'
            "  fast: {flag: true, when: tile > 2}\n  deep: {flag: true, when: fast}\n"
            "constraints: [tile < 4, not fast or tile > 1, deep]\n"
        )
        (found,) = problems(text)
        assert "knobs.tile.values is an empty list" in found

    def test_a_broken_fact_is_not_missed_elsewhere(self) -> None:
        text = f"{HEAD}objective: a.py:A\nworkload: {{m: }}\n{TILE}constraints: [m > tile, workload.m > 2]\n"
        (found,) = problems(text)
        assert "workload.m is empty" in found

    def test_a_broken_workload_is_not_missed_elsewhere(self) -> None:
        text = f"{HEAD}objective: a.py:A\nworkload: 960\n{TILE}constraints: [m > tile, workload.m > 2]\n"
        (found,) = problems(text)
        assert "workload is 960" in found

    def test_knobs_are_checked_where_other_sections_are_broken(self) -> None:
        found = problems(f"{HEAD}budget: 3\nobjective: a\nknobs:\n  tile: {{values: [1, 1]}}\n")
        assert len(found) == 3

    def test_a_cycle_is_found_beside_a_broken_knob(self) -> None:
        found = problems(
            f"{HEAD}objective: a.py:A\nknobs:\n  x: {{values: []}}\n"
            "  a: {flag: true, when: b}\n  b: {flag: true, when: a}\n"
        )
        assert len(found) == 2


class TestFiles:
    def said(self, path: Path) -> str:
        with pytest.raises(InputError) as error:
            read_spec(path)
        return str(error.value)

    def test_missing(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_text("")
        assert "there is no such file\n  did you mean 'space.yaml'?" in self.said(tmp_path / "spaec.yaml")
        assert "there is no folder" in self.said(tmp_path / "nowhere" / "space.yaml")

    def test_folder(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_text("")
        said = self.said(tmp_path)
        assert "this is a folder" in said and "space.yaml'?" in said

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "space.yaml")
        assert "this is not a regular file" in self.said(tmp_path / "space.yaml")

    def test_huge(self, tmp_path: Path) -> None:
        with (tmp_path / "space.yaml").open("wb") as file:
            file.truncate(50 * MAX_BYTES)
        assert "the file has 50.0 MiB" in self.said(tmp_path / "space.yaml")

    def test_binary(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes(b"\x7fELF\x02\x01\x00\x00\xc0\xff")
        assert ":1:9: the byte 0xc0 is not UTF-8" in self.said(tmp_path / "space.yaml")

    def test_nul(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes(b"autotune: 1\nname: a\x00b\n")
        assert ":2:8: a NUL byte in the text" in self.said(tmp_path / "space.yaml")

    def test_latin_1(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes("autotune: 1\nname: é\n".encode("latin-1"))
        assert ":2:7: the byte 0xe9 is not UTF-8" in self.said(tmp_path / "space.yaml")

    def test_utf_16(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes("autotune: 1\n".encode("utf-16"))
        assert "this looks like UTF-16" in self.said(tmp_path / "space.yaml")

    def test_a_name_with_a_nul(self) -> None:
        assert re.search("no such file|cannot be read", self.said(Path("a\x00b.yaml")))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_forbidden(self, tmp_path: Path) -> None:
        path = tmp_path / "space.yaml"
        path.write_text("")
        path.chmod(0)
        assert "Permission denied" in self.said(path)


class TestHostile:
    def test_billion_laughs(self) -> None:
        lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
        for one, next_ in zip("abcdefghi", "bcdefghij", strict=True):
            lines.append(f"{next_}: &{next_} [{', '.join([f'*{one}'] * 10)}]")
        (found,) = problems("\n".join(lines))
        assert "more than 100,000 values" in found

    @pytest.mark.parametrize("sign", ["[", "{", "- ", "? ", "a: {"])
    def test_deep_nesting(self, sign: str) -> None:
        (found,) = problems(sign * 100_000)
        assert "levels deep" in found

    def test_a_chain_of_aliases_is_as_deep_as_what_they_stand_for(self) -> None:
        lines = ["a0: &a0 0"]
        for number in range(1, 41):
            lines.append(f"a{number}: &a{number} {'[' * 29}*a{number - 1}{']' * 29}")
        (found,) = problems("\n".join(lines))
        assert found == f"space.yaml:3:{len('a2: &a2 ') + 29 + 1}: nested more than 32 levels deep"

    def test_aliases_of_what_is_shallow_are_not_deep(self) -> None:
        facts = "deep: [[[[&leaf [1]]]]], again: [*leaf, *leaf]"
        spec = parse_spec(f"{HEAD}objective: a.py:A\nworkload: {{{facts}}}\n{TILE}")
        assert spec.workload["again"] == ((1,), (1,))

    def test_an_alias_of_itself(self) -> None:
        (found,) = problems("a: &a [*a]")
        assert "the alias *a stands for nothing" in found

    def test_a_number_of_many_digits(self) -> None:
        found = problems(f"name: {'9' * 5000}")
        assert "space.yaml:1:7: a number of 5,000 characters; at most 300 are read" in found

    @pytest.mark.parametrize("field", ["knobs: {a: {range: [1.0, %s]}}", f"{TILE}search: {{seed: %s}}"])
    def test_an_integer_larger_than_any_float(self, field: str) -> None:
        found = problems(f"{HEAD}objective: a.py:A\n" + field % f"0x{'f' * 290}")
        assert any(f"0x{'f' * 55}... is too large for a float" in line for line in found)

    def test_a_long_rule(self) -> None:
        rule = " + ".join(["tile"] * 5000)
        (found,) = problems(f"{HEAD}objective: a.py:A\n{TILE}constraints: [{rule} > 2]\n")
        assert "characters" in found
