"""Reading a space file: every section, what is left out, and a workload that the caller gives."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from autotune.space.reading.reader import parse_spec, read_family, read_spec
from autotune.space.spec import (
    Budget,
    MeasureSettings,
    MetricSpec,
    PythonObjective,
    ReplayObjective,
    SearchSettings,
    Share,
)
from tests.space.texts import HEAD, TILE, problems

ROOT = Path(__file__).parents[3]
DEVICE = {"cores": 2, "l1_bytes": 32768, "l2_bytes": 1048576, "names": ("cpu", "cuda:0")}

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


@pytest.mark.parametrize("facts", [{"device": "h200"}, {"workload": 3}])
def test_facts_that_are_no_mapping_are_refused(facts: dict[str, Any]) -> None:
    """The name of a profile ended in an AttributeError."""
    (said,) = (f"the {kind} is of the type {type(given).__name__}" for kind, given in facts.items())
    with pytest.raises(InputError, match=said):
        parse_spec(EXAMPLE, **facts)


def test_the_ready_spaces_are_read_and_allow_their_defaults() -> None:
    a_cpu_and_a_gpu = {**profile("h200"), **DEVICE}
    for path in sorted((ROOT / "searchspaces").glob("*.yaml")):
        for spec in read_family(path, a_cpu_and_a_gpu).specs:
            assert spec.space.default() in spec.space, path.name


@pytest.mark.parametrize("name", ["triton-softmax", "triton-layer-norm"])
@pytest.mark.parametrize("columns", [1, 768, 2048, 100_000])
def test_the_default_of_a_ready_space_is_possible_for_rows_of_any_length(name: str, columns: int) -> None:
    """For less than 2049 columns it was not, so a search had nothing to compare its winner with."""
    given = {"rows": 64, "columns": columns}
    found = read_spec(ROOT / "searchspaces" / f"{name}.yaml", device=profile("h200"), workload=given)
    assert found.space.feasible_default() == found.space.default()


def test_a_limit_of_time_is_for_so_many_trials() -> None:
    assert Budget(20, 600.0).share == Share(30.0, 30.0)
    assert Budget(1000, 600.0).share == Share(12.0, 0.6)
    assert Budget(None, 600.0).share == Share(12.0, 0.0)
    assert Budget(20).share == Share(math.inf, math.inf)


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
