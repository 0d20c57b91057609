"""Rules as JSON: they come back as they were, choose what the space allows, and refuse what is no rule."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.hook.rule import Branch, Equals, Leaf, Rule, Threshold, read_rule, rule_from_document
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import parse_spec

SPACE = parse_spec(
    """
autotune: 1
name: a
objective: a.py:A
workload: {m: 8, kind: half, n: 8}
knobs: {tile: {values: [1, 2, 4, 8]}, order: {permutation: [i, j]}}
constraints: ["m % tile == 0"]
"""
).space

RULE = Rule(
    study="gemm",
    names=("m", "kind"),
    fixed=FrozenMap({"n": 8}),
    configurations=(
        {"tile": 8, "order": ["i", "j"]},
        {"tile": 4, "order": ["j", "i"]},
        {"tile": 2, "order": ["i", "j"]},
    ),
    tree=Branch(
        Equals("kind", "half"), Leaf((0, 1, 2)), Branch(Threshold(("m",), 32), Leaf((1, 2)), Leaf((0,)))
    ),
    space=SPACE.to_document(),
    workloads=({"m": 8, "kind": "half"}, {"m": 64, "kind": "single"}),
    evidence={"device": "a CPU"},
)


def test_it_comes_back_from_json(tmp_path: Path) -> None:
    file = tmp_path / "rule.json"
    file.write_text(json.dumps(RULE.to_document()))
    assert read_rule(file).to_document() == RULE.to_document()
    assert read_rule(file).choose({"m": 8, "kind": "half"}) == RULE.choose({"m": 8, "kind": "half"})


def test_the_first_of_the_leaf_that_the_constraints_allow() -> None:
    assert RULE.choose({"m": 64, "kind": "half"}).place == 0
    chosen = RULE.choose({"m": 12, "kind": "half"})
    assert (chosen.place, chosen.fallback) == (1, True)
    assert chosen.configuration == {"tile": 4, "order": ["j", "i"]}
    assert RULE.choose({"m": 6, "kind": "single"}).place == 2


def test_where_nothing_is_allowed_nothing_is_chosen() -> None:
    with pytest.raises(InputError, match=r"no configuration .* is allowed for m 7, kind half"):
        RULE.choose({"m": 7, "kind": "half"})


def test_how_far_outside_a_workload_lies_is_said() -> None:
    assert RULE.choose({"m": 8, "kind": "half"}).apart == 0
    assert RULE.choose({"m": 8192, "kind": "half"}).apart == pytest.approx(10)
    assert RULE.choose({"m": 8, "kind": "double"}).apart >= 10


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"m": 8}, "the workload has no 'kind'"),
        ({"m": 8, "kind": "half", "kin": 1}, "this rule knows no 'kin'"),
        ({"m": 8, "kind": "half", "n": 9}, "this rule was learned with n 8, not 9"),
        ({"m": "8", "kind": "half"}, "m is '8'"),
        ([8, "half"], "the workload is of the type list"),
        ({"m": 8, "kind": None}, "'kind' of the workload is None"),
        ({"m": np.ones(2), "kind": "half"}, "'m' of the workload is of the type ndarray"),
        ({"m": 8, "kind": "half", 2: 1}, "a fact of the workload is named 2"),
    ],
)
def test_a_workload_that_it_cannot_judge_is_refused(workload: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        RULE.choose(workload)
    assert message in str(error.value)


def test_a_rule_without_its_workloads_knows_what_is_a_number_by_its_conditions() -> None:
    """Any text had been refused, as if it should be a number."""
    rule = replace(RULE, workloads=())
    assert rule.choose({"m": 8, "kind": "half"}).place == 0
    with pytest.raises(InputError, match="m is '8'"):
        rule.choose({"m": "8", "kind": "single"})


def test_numbers_of_numpy_are_numbers() -> None:
    """An integer of NumPy was refused: "m is np.int64(8), expected: a number"."""
    chosen = RULE.choose({"m": np.int64(8), "kind": np.str_("half"), "n": np.int16(8)})
    assert chosen == RULE.choose({"m": 8, "kind": "half"})
    assert RULE.choose({"m": np.float32(64), "kind": "single"}).place == 0


def test_what_is_fixed_may_be_given() -> None:
    assert RULE.choose({"m": 8, "kind": "half", "n": 8}).place == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"autotune_rule": 2}, "this is no rule"),
        ({"tree": {"take": [7]}}, "a leaf takes [7] of 3"),
        ({"tree": {"take": []}}, "a leaf takes []"),
        (
            {"tree": {"if": {"product": ["q"], "at_most": 1}, "then": {"take": [0]}, "else": {"take": [0]}}},
            "asks for q",
        ),
        ({"tree": {"if": {"product": ["m"], "at_most": "1"}, "then": {}, "else": {}}}, "at_most is '1'"),
        ({"tree": {"if": {"product": ["m"], "at_most": 1}, "then": {"take": [0]}}}, "'else' is missing"),
        ({"tree": 5}, "cannot be read"),
        ({"configurations": [3]}, "cannot be read"),
        ({"names": None}, "cannot be read"),
        ({"names": "mn"}, "'mn' stands where a list of texts is expected"),
        ({"study": ["a"]}, "['a'] stands where a text is expected"),
        ({"workloads": [{"m": None}]}, "cannot be set to None"),
        ({"tree": {"take": "01"}}, "a leaf takes ['0', '1'] of 3"),
        ({"tree": {"take": [math.inf]}}, "a leaf takes [inf] of 3"),
        ({"tree": {"take": [0], "els": {"take": [1]}}}, "the tree has the key 'els', where it can have take"),
        ({"tree": {"if": {"product": "m", "at_most": 1}}}, "'m' stands where a list of texts is expected"),
        ({"tree": {"if": {"product": ["m"], "at_most": math.nan}}}, "at_most is nan, not a finite number"),
        ({"tree": {"if": {"product": ["m"], "ovr": ["m"], "at_most": 1}}}, "the tree has the key 'ovr'"),
        ({"tree": {"if": {"name": "m", "equals": 1, "at_most": 1}}}, "the tree has the key 'at_most'"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        rule_from_document(RULE.to_document() | change)
    assert message in str(error.value)


def test_a_file_that_is_no_json_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_rule(tmp_path / "missing.json")
    (tmp_path / "rule.json").write_text("{'a': 1}")
    with pytest.raises(InputError, match=r"rule\.json:1:2: this is not JSON"):
        read_rule(tmp_path / "rule.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InputError):
        read_rule(tmp_path / "deep.json")
    (tmp_path / "long.json").write_text("9" * 5000)
    with pytest.raises(InputError, match="this is not JSON: Exceeds the limit"):
        read_rule(tmp_path / "long.json")


def test_reading_runs_nothing_of_the_file(tmp_path: Path) -> None:
    hostile = RULE.to_document()
    hostile["space"] = {**hostile["space"], "constraints": ["__import__('os').system('touch ran')"]}
    rule = rule_from_document(hostile)
    with pytest.raises(InputError):
        rule.choose({"m": 8, "kind": "half"})
