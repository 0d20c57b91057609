"""Several workloads in one file: what they are read to, and that one mistake has one message."""

from __future__ import annotations

import pytest

from autotune.errors import InputError
from autotune.space.reading.reader import parse_family, parse_spec
from autotune.space.reading.workloads import MOST
from autotune.space.spec import Family

SPACE = """autotune: 1
name: shapes
objective: objective.py:measure
workload: {{dtype: float32}}
workloads: {workloads}
knobs: {{tile: {{values: [1, 2, 4]}}}}
constraints: ["m % tile == 0"]
"""


def read(workloads: str) -> Family:
    return parse_family(SPACE.format(workloads=workloads))


def test_each_item_of_a_list_is_a_workload_with_what_all_share() -> None:
    family = read("[{m: 4, n: 2}, {m: 6, n: 2, held_out: true}]")
    assert [dict(spec.workload) for spec in family.specs] == [
        {"dtype": "float32", "m": 4, "n": 2},
        {"dtype": "float32", "m": 6, "n": 2},
    ]
    assert family.held_out == (False, True)
    assert family.several
    assert family.name == "shapes"


def test_rules_are_those_of_the_workload() -> None:
    four, six = read("[{m: 4}, {m: 6}]").specs
    assert {"tile": 4} in four.space
    assert {"tile": 4} not in six.space


def test_a_mapping_of_lists_is_their_product() -> None:
    family = read("{m: [4, 8], n: [1, 2, 3]}")
    assert [(spec.workload["m"], spec.workload["n"]) for spec in family.specs] == [
        (4, 1),
        (4, 2),
        (4, 3),
        (8, 1),
        (8, 2),
        (8, 3),
    ]


def test_a_label_says_what_differs() -> None:
    family = read("[{m: 4, n: 2}, {m: 8, n: 2}]")
    assert [family.label(place) for place in range(2)] == ["m 4", "m 8"]
    assert read("[{m: 4, n: 2}]").label(0) == "dtype float32, m 4, n 2"


def test_values_may_be_texts_lists_and_mappings() -> None:
    family = read("[{m: 4, type: half, heads: [1, 2]}, {m: 4, type: single, heads: [8]}]")
    assert family.specs[0].workload["heads"] == (1, 2)


def test_a_file_without_them_is_a_family_of_one() -> None:
    text = SPACE.format(workloads="[]").replace("workloads: []\n", "").replace("float32", "float32, m: 8")
    family = parse_family(text)
    assert not family.several
    assert family.held_out == (False,)
    assert family.specs == (parse_spec(text),)


@pytest.mark.parametrize(
    ("workloads", "message"),
    [
        ("[]", "workloads is an empty list"),
        ("5", "workloads is 5"),
        ("[{m: 4}, 7]", "workloads[1] is 7"),
        ("[{m: 4}, {}]", "workloads[1] is empty"),
        ("[{m: 4, n: 1}, {m: 4}]", "workloads[1] lacks 'n'"),
        ("[{m: 4}, {m: 4, n: 1}]", "workloads[1] has 'n', which the first has not"),
        ("[{m: 4}, {m: 8}, {m: 4}]", "workloads[2] is the same as workloads[0]: m 4"),
        ("[{m: 4}, {m: 4, held_out: true}]", "workloads[1] is the same as workloads[0]: m 4"),
        ("[{m: 4, dtype: float16}]", "'dtype' stands in workload too"),
        ("[{m: 4, held_out: 1}]", "workloads[0].held_out is 1"),
        ("[{m: 4, held_out: true}]", "every workload is held out"),
        ("{m: 4}", "workloads.m is 4"),
        ("{m: []}", "workloads.m is an empty list"),
        ("{m: [4], held_out: [true]}", "held_out belongs to one workload"),
        ("[{m: 4}, {m: .nan}]", "workloads[1].m is .nan"),
    ],
)
def test_a_mistake_has_one_message_at_its_place(workloads: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(workloads)
    [problem] = error.value.problems
    assert problem.message == message
    assert problem.where is not None
    assert problem.where.line == 5


def test_a_misspelt_name_is_said_once_with_the_likely_one() -> None:
    with pytest.raises(InputError) as error:
        read("[{m: 4, depth: 1}, {m: 8, dept: 1}]")
    [problem] = error.value.problems
    assert problem.hint == "did you mean 'depth'?"


def test_a_product_is_counted_before_it_is_made() -> None:
    with pytest.raises(InputError) as error:
        read("{" + ", ".join(f"{name}: [{', '.join(map(str, range(50)))}]" for name in "mabcdefg") + "}")
    assert "workloads" in str(error.value)
    assert str(MOST) in str(error.value)


def test_a_rule_that_is_wrong_for_one_workload_names_it() -> None:
    text = SPACE.format(workloads="[{m: 4}, {m: 0}]").replace("m % tile == 0", "m > 2")
    with pytest.raises(InputError) as error:
        parse_family(text)
    [problem] = error.value.problems
    assert problem.message.endswith("(with m 0)")


def test_a_mistake_elsewhere_is_said_once() -> None:
    with pytest.raises(InputError) as error:
        parse_family(SPACE.format(workloads="[{m: 4}, {m: 8}]") + "bugdet: {trials: 4}\n")
    [problem] = error.value.problems
    assert problem.hint == "did you mean 'budget'?"


def test_who_wants_one_study_is_told_what_takes_several() -> None:
    with pytest.raises(InputError) as error:
        parse_spec(SPACE.format(workloads="[{m: 4}, {m: 8}]"))
    [problem] = error.value.problems
    assert problem.message == "2 workloads where one study is meant"
    assert "search_many" in problem.hint


def test_one_of_them_can_be_asked_for_by_its_workload() -> None:
    text = SPACE.format(workloads="[{m: 4, n: 1}, {m: 6, n: 1}]")
    six = parse_spec(text, workload={"m": 6, "n": 1})
    assert dict(six.workload) == {"dtype": "float32", "m": 6, "n": 1}
    assert {"tile": 4} not in six.space
    with pytest.raises(InputError, match="one study is meant"):
        parse_spec(text, workload={"m": 6})


def test_a_recording_has_one_workload() -> None:
    text = SPACE.format(workloads="[{m: 4}, {m: 8}]").replace(
        "objective: objective.py:measure", "replay: a.json"
    )
    with pytest.raises(InputError, match="a recording was made for one workload"):
        parse_family(text)
