"""A T1 file becomes a space with as many configurations as its conditions leave."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.kernel_tuner_t1 import convert
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.reading.reader import read_spec
from autotune.space.space import Space

SHARED = Path(__file__).parents[4] / "shared" / "spaces" / "kernel-spaces.json"


def parameter(name: str, values: Any, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"Name": name, "Type": kind, "Values": values, **more}


PARAMETERS = [
    parameter("block_x", "[16, 32, 64, 128]", Default=32),
    parameter("block_y", "list(range(1, 9))", Default="4"),
    parameter("pad", "[0, 1]", Default=1),
    parameter("fused", "true, false", "bool", Default=True),
    parameter("layout", '["row", "column"]', "string", Default="row"),
    parameter("scale", "[0.5, 1]", "float", Default=1),
]
CONDITIONS = [
    "(block_x * block_y) <= 256",
    "not pad or block_x % 32 == 0",
    'layout == "row" && !(fused && block_y > 4)',
]


def write(folder: Path, parameters: list[Any], conditions: list[str], **more: Any) -> Path:
    file = folder / "T1.json"
    document = {
        "General": {"FormatVersion": 1},
        "ConfigurationSpace": {
            "TuningParameters": parameters,
            "Conditions": [{"Parameters": [], "Expression": text} for text in conditions],
        },
        "KernelSpecification": {"KernelName": "convolve 2d", "ProblemSize": [4096, 4096]},
        **more,
    }
    file.write_text(json.dumps(document, indent=2))
    return file


def read_back(file: Path) -> Space:
    output = file.parent / "space.yaml"
    output.write_text(convert(file).text())
    spec = read_spec(output)
    assert spec.name == "convolve-2d"
    return spec.space


def test_as_many_configurations_as_the_conditions_leave(tmp_path: Path) -> None:
    space = read_back(write(tmp_path, PARAMETERS, CONDITIONS))
    expected = {
        (x, y, pad, fused, "row", scale)
        for x, y, pad, fused, scale in product(
            (16, 32, 64, 128), range(1, 9), (0, 1), (True, False), (0.5, 1)
        )
        if x * y <= 256 and (not pad or x % 32 == 0) and not (fused and y > 4)
    }
    names = ("block_x", "block_y", "pad", "fused", "layout", "scale")
    assert {tuple(c[name] for name in names) for c in space.feasible} == expected
    assert len(space.feasible) == len(expected)
    assert dict(space.default()) == {
        "block_x": 32, "block_y": 4, "pad": 1, "fused": True, "layout": "row", "scale": 1,
    }  # fmt: skip
    assert space.workload["problem_size"] == (4096, 4096)


def test_a_default_is_read_as_values_are(tmp_path: Path) -> None:
    parameters = [
        parameter("fused", "[true, false]", "bool", Default="false"),
        parameter("scale", "[0.5, 0.001]", "float", Default="1e-3"),
        parameter("layout", '["row", "true"]', "string", Default="true"),
        parameter("order", '["ij", "ji"]', "string", Default="'ji'"),
        parameter("block", "[1, 2]"),
    ]
    converted = convert(write(tmp_path, parameters, []))
    assert converted.default == {"fused": False, "scale": 0.001, "layout": "true", "order": "ji", "block": 1}
    assert "the file gives no default of block: the first value was taken." in converted.notes
    assert not any("none of its values" in note for note in converted.notes)


def test_numbers_have_an_order_and_texts_have_none(tmp_path: Path) -> None:
    kinds = {knob.name: type(knob) for knob in read_back(write(tmp_path, PARAMETERS, [])).knobs}
    ordered = dict.fromkeys(("block_x", "block_y", "pad", "scale"), OrderedValues)
    assert kinds == {**ordered, "fused": Flag, "layout": Choice}


def test_values_are_of_the_type_that_the_file_says(tmp_path: Path) -> None:
    parameters = [
        parameter("on", "[0, 1]", "bool", Default=1),
        parameter("mixed", "[False, 1]", "bool"),
        parameter("size", "[2, 4]", "uint"),
        parameter("part", "[0, 0.5]", "float"),
    ]
    found = convert(write(tmp_path, parameters, []))
    assert {name: [repr(value) for value in values] for name, values in found.knobs.items()} == {
        "on": ["False", "True"],
        "mixed": ["False", "True"],
        "size": ["2", "4"],
        "part": ["0", "0.5"],
    }
    assert found.default["on"] is True


@pytest.mark.parametrize(
    "values", ["(2**i for i in range(3))", "reversed([4, 2, 1])", "(1, 2, 4)", [1, 2, 4]]
)
def test_values_may_come_one_after_the_other(tmp_path: Path, values: Any) -> None:
    assert convert(write(tmp_path, [parameter("a", values)], [])).knobs == {"a": (1, 2, 4)}


@pytest.mark.parametrize(
    ("kernel", "name", "workload"),
    [
        ({"KernelName": "add", "ProblemSize": [64, 32]}, "add", {"problem_size": (64, 32)}),
        ({"KernelName": "add", "ProblemSize": 64}, "add", {"problem_size": (64,)}),
        ({"KernelName": "", "ProblemSize": []}, "T1", {}),
        ({"KernelName": "\ud800", "ProblemSize": ["n", 32]}, "T1", {}),
        ({"ProblemSize": [0.5, 10**400]}, "T1", {}),
        ({"ProblemSize": [10**400]}, "T1", {}),
        ([], "T1", {}),
    ],
)
def test_the_kernel_names_the_space_and_its_problem_is_the_workload(
    tmp_path: Path, kernel: Any, name: str, workload: dict[str, object]
) -> None:
    found = convert(write(tmp_path, [parameter("a", "[1]")], [], KernelSpecification=kernel))
    assert (found.name, found.workload) == (name, workload)


def test_the_values_of_a_set_stand_in_their_order(tmp_path: Path) -> None:
    """In that of the set texts would stand in another one each time, and with them the default."""
    texts = [f"mode{number}" for number in range(10)]
    parameters = [
        parameter("tile", "{8, 1, 0.5, 64, 2}", "float"),
        parameter("mode", repr({*texts}), "string"),
    ]
    found = convert(write(tmp_path, parameters, []))
    assert found.knobs == {"tile": (0.5, 1, 2, 8, 64), "mode": tuple(texts)}
    with pytest.raises(InputError, match=r"a can be \(1,\)"):
        convert(write(tmp_path, [parameter("a", "{(1,), 2}")], []))


def test_conditions_that_rules_have_no_words_for(tmp_path: Path) -> None:
    parameters = [
        parameter("a", "[16, 24, 32, 48]"),
        parameter("b", "list(range(8))"),
        parameter("f", "[0, 1]"),
    ]
    conditions = [
        "any([a > 16, b > 2, f])",
        "all(x % 2 == 0 for x in (a, b))",
        "(a if f else b) <= 32",
        "a & 31 == 0 or b > 3",
        "(a & (a - 1)) == 0",
    ]
    file = write(tmp_path, parameters, conditions)
    expected = {
        (a, b, f)
        for a, b, f in product((16, 24, 32, 48), range(8), (0, 1))
        if all(eval(text, {"a": a, "b": b, "f": f}) for text in conditions)
    }
    assert {tuple(c[name] for name in "abf") for c in read_back(file).feasible} == expected
    assert 0 < len(expected) < 64
    assert [note for note in convert(file).notes if "became a list" in note] == [
        "a & a - 1 == 0 became a list of the values for which it holds: list anew what you change."
    ]


@pytest.mark.skipif(not SHARED.exists(), reason="there are no recorded spaces of kernels here")
@pytest.mark.parametrize("name", ["gemm", "hotspot"])
def test_real_spaces_have_their_known_number_of_configurations(tmp_path: Path, name: str) -> None:
    recorded = json.loads(SHARED.read_text())[name]
    parameters = [parameter(knob, repr(values)) for knob, values in recorded["knobs"].items()]
    space = read_back(write(tmp_path, parameters, recorded["constraints"]))
    assert len(space.feasible) == recorded["valid"]


def test_a_condition_that_always_holds_is_left_out_and_said(tmp_path: Path) -> None:
    """It had become the constraint ``True``."""
    file = write(tmp_path, [parameter("a", "[1, 2, 4]"), parameter("b", "[8, 16]")], ["a ^ b != 3", "a < b"])
    converted = convert(file)
    assert [note for note in converted.notes if "holds" in note] == [
        "a ^ b != 3 holds for all values: it is left out."
    ]
    assert list(converted.constraints) == ["a < b"] and len(read_back(file).feasible) == 6


def test_a_default_that_is_no_value_is_said(tmp_path: Path) -> None:
    converted = convert(write(tmp_path, [parameter("a", "[1, 2]", Default=7)], []))
    assert converted.default == {"a": 1}
    assert "the Default of a, 7, is none of its values: it counts as not given." in converted.notes


def test_a_default_that_violates_the_conditions_is_replaced_and_said(tmp_path: Path) -> None:
    parameters = [parameter("a", "[1, 2]", Default=1), parameter("b", "[1, 2]", Default=1)]
    converted = convert(write(tmp_path, parameters, ["a != b"]))
    assert converted.default in ({"a": 1, "b": 2}, {"a": 2, "b": 1})
    assert "violates its conditions" in " ".join(converted.notes)


@pytest.mark.parametrize(
    ("parameters", "conditions", "says"),
    [
        ([], [], "there are no TuningParameters"),
        ([parameter("a", "[1, open('x')]")], [], "T1.json:10:20: \"open('x')\" is not understood"),
        ([parameter("a", "[1, 2")], [], "T1.json:10:20: '[1, 2' is no Python"),
        ([parameter("a", "-" * 50_000 + "1")], [], "...' is no Python: it is nested too deep"),
        ([parameter("a", "[1.5]")], [], "a can be 1.5"),
        ([parameter("a", "[0, 1, 2]", "bool")], [], "T1.json:10:20: a can be 2"),
        ([parameter("a", 4)], [], "T1.json:10:19: the Values are 4"),
        ([parameter("a", None)], [], "T1.json:10:19: there are no Values"),
        ([parameter("a", "[4, 0, -1]", "uint")], [], "T1.json:10:20: a can be -1"),
        ([parameter("a", "['x', -1]", "uint")], [], "a can be 'x'"),
        ([parameter("a", "[1]", "half")], [], "a is of type 'half'"),
        (
            [parameter("a", "range(10**9)")],
            [],
            "T1.json:10:20: 'range(10 ** 9)' is not understood: it has more",
        ),
        ([parameter("a", "range(10**30)")], [], "it has more than 100,000 items"),
        ([parameter("a", "list(range(10**30))")], [], "1,000,000,000,000,000,000,000,000,000,000 items"),
        ([parameter("a", "[1e400, 16]", "float")], [], "T1.json:10:20: a can be inf"),
        ([parameter("a", [float("nan"), 16], "float")], [], "a can be nan"),
        ([parameter("a", ["\ud800"], "string")], [], "T1.json:10:19: a can be '\\ud800'"),
        ([parameter("a", "[1]"), parameter("a", "[1]")], [], "two parameters 'a'"),
        ([parameter("max", "[1]")], [], "T1.json:10:20: 'max' cannot name a knob"),
        ([{"Type": "int", "Values": "[1]"}], [], "T1.json:9:20: parameter 0 has no Name"),
        ([parameter("a", "[1]", ["int"])], [], "a is of type ['int']\n  expected: one of int, uint, float"),
        ([parameter("a", "[1.5]")], [], "expected: values of type int"),
        ([parameter("a", "[1e400]", "float")], [], "expected: finite values of type float"),
        ([parameter("a b", "[1]")], [], "'a b' cannot name a knob"),
        ([parameter("a", "[1, 2]")], ["foo(a) == 3"], "T1.json:16:24: "),
        ([parameter("a", "[1, 2]")], ["a > 1", "a > bb"], "T1.json:20:28: 'bb' cannot be said in a rule"),
        ([parameter("a", "[1, 2]")], ["a > 2"], "no configuration satisfies all conditions"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, parameters: list[Any], conditions: list[str], says: str
) -> None:
    file = write(tmp_path, parameters, conditions)
    with pytest.raises(InputError) as raised:
        convert(file)
    assert says in str(raised.value)


def test_a_parameter_without_values_does_not_shift_the_places_of_others(tmp_path: Path) -> None:
    without = {"Name": "a", "Type": "int"}
    with pytest.raises(InputError) as raised:
        convert(write(tmp_path, [without, parameter("b", "[1.5]")], []))
    first, second = map(str, raised.value.problems)
    assert "there are no Values" in first and "T1.json:14:20: b can be 1.5" in second


def test_a_condition_without_expression_does_not_shift_the_places_of_others(tmp_path: Path) -> None:
    file = write(tmp_path, [parameter("a", "[1, 2]")], ["a > 1", "a > b"])
    document = json.loads(file.read_text())
    del document["ConfigurationSpace"]["Conditions"][0]["Expression"]
    file.write_text(json.dumps(document, indent=2))
    with pytest.raises(InputError) as raised:
        convert(file)
    first, second = map(str, raised.value.problems)
    assert "condition 0 has no Expression" in first and "T1.json:19:28: 'b' cannot be said" in second


@pytest.mark.parametrize("conditions", [["a > 1"], [None], "a > 1", {"Expression": "a > 1"}, 1])
def test_conditions_are_a_list_of_objects(tmp_path: Path, conditions: Any) -> None:
    document = {"TuningParameters": [parameter("a", "[1, 2]")], "Conditions": conditions}
    file = tmp_path / "T1.json"
    file.write_text(json.dumps({"ConfigurationSpace": document}))
    with pytest.raises(InputError, match=r"T1\.json:1:\d+: Conditions is no list of objects\n.*Expression"):
        convert(file)


def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "T1.json"
    file.write_text(f'{{"ConfigurationSpace": {"9" * 5000}}}')
    with pytest.raises(InputError, match="this cannot be read: Exceeds the limit"):
        convert(file)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"ConfigurationSpace": 1}', '{"ConfigurationSpace": {}}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "T1.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"T1\.json"):
        convert(file)


def test_defaults_that_are_said_stay_where_the_others_can_be_chosen_to_fit(tmp_path: Path) -> None:
    """All had been given up, and the speed-up was over a configuration that nobody has."""
    parameters = [
        parameter("block", "[16, 32, 64]", Default=32),
        parameter("pad", "[True, False]", Type="bool"),
        parameter("vector", "['float', 'float4']", Type="string"),
    ]
    converted = convert(write(tmp_path, parameters, ["not pad or vector == 'float4'"]))
    assert converted.default["block"] == 32 and (
        not converted.default["pad"] or converted.default["vector"] == "float4"
    )
    assert any("with the defaults that it gives was taken" in note for note in converted.notes)
    impossible = convert(write(tmp_path, parameters, ["block > 32", "not pad or vector == 'float4'"]))
    assert impossible.default["block"] == 64
    assert not any("the file gives no default" in note for note in impossible.notes)
    assert any("the default of the file violates its conditions" in note for note in impossible.notes)


def test_conditions_may_name_values_that_are_no_defaults(tmp_path: Path) -> None:
    """The file was refused: "'pad' is never true"."""
    parameters = [
        parameter("pad", "[0, 1]", "bool", Default=0),
        parameter("layout", "['row', 'co\\'l']", "string", Default="co'l"),
        parameter("block", "[16, 32, 64]"),
    ]
    kept = convert(write(tmp_path, parameters, ["pad == True or layout == 'row' or block > 16"]))
    assert kept.default == {"pad": False, "layout": "co'l", "block": 32}
    given_up = convert(write(tmp_path, parameters, ["pad == True"]))
    assert given_up.default["pad"] is True
    assert any("the default of the file violates its conditions" in note for note in given_up.notes)


def test_a_default_of_null_is_none(tmp_path: Path) -> None:
    converted = convert(write(tmp_path, [parameter("a", "[1, 2]", Default=None)], []))
    assert converted.notes[-1] == "the file gives no default: the first value was taken."
    assert not any("none of its values" in note for note in converted.notes)


def test_conditions_under_the_key_of_an_older_file_are_not_lost(tmp_path: Path) -> None:
    """They were passed over without a word."""
    file = write(tmp_path, PARAMETERS, CONDITIONS)
    document = json.loads(file.read_text())
    space = document["ConfigurationSpace"]
    for older in ([], ["block_x > 16"]):
        file.write_text(json.dumps({**document, "ConfigurationSpace": {**space, "constraints": older}}))
        if not older:
            convert(file)
    with pytest.raises(InputError, match=r"T1.json:1:\d+: constraints is no key of T1: it has Conditions"):
        convert(file)
