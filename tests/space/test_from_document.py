"""A space comes back from its document: the same knobs, the same order, the same draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given

from autotune.errors import InputError
from autotune.space.from_document import space_from_document
from autotune.space.knobs import (
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.space import Space
from tests.space.spaces import SmallSpace, small_spaces


def through_json(space: Space) -> Space:
    rows = None if space.rows is None else [dict(row) for row in space.rows]
    return space_from_document(json.loads(json.dumps(space.to_document())), rows)


@given(small_spaces())
def test_small_spaces_come_back(small: SmallSpace) -> None:
    space = Space(small.knobs, small.constraints, workload={"elsewhere": False})
    again = through_json(space)
    assert again.hash == space.hash
    assert [k.name for k in again.knobs] == [k.name for k in space.knobs]
    assert again.feasible.size == space.feasible.size
    if space.feasible.size:
        assert again.sample(np.random.default_rng(0), 5) == space.sample(np.random.default_rng(0), 5)


def test_facts_of_a_device_that_is_elsewhere_come_along() -> None:
    space = Space(
        [
            OrderedValues("tile", (1, 2, 4), default=2),
            FloatRange("lr", 1e-5, 1, scale="log", when="tile > 1"),
        ],
        ["tile * m <= device.l1_bytes"],
        workload={"m": 8, "dtype": "float32"},
        device={"l1_bytes": 16, "name": "elsewhere"},
    )
    again = through_json(space)
    assert again.hash == space.hash
    assert {"tile": 4, "lr": 0.5} not in again and {"tile": 2, "lr": 0.5} in again


def test_values_that_look_alike_stay_apart() -> None:
    space = Space(
        [
            Choice("c", (True, 1, 1.5, "1", (1, 2), {"a": (1,)})),
            IntegerRange("n", 1, 64, scale="log2"),
            FloatRange("f", 0, 3, step=1.5),
            Permutation("p", (2, "2")),
            Flag("on", default=False),
        ]
    )
    assert through_json(space).hash == space.hash
    assert through_json(space).default() == space.default()


def test_a_recorded_space_needs_its_rows() -> None:
    space = Space([IntegerRange("n", 1, 4)], rows=[{"n": 1}, {"n": 3}])
    assert through_json(space).hash == space.hash
    assert space_from_document(space.to_document()).hash != space.hash


def test_a_kind_of_knob_from_elsewhere_is_refused() -> None:
    document = {"knobs": {"x": {"sphere": 3, "default": 0}}, "constraints": [], "workload": {}, "facts": {}}
    with pytest.raises(InputError, match="the knob 'x' is of no known kind: sphere"):
        space_from_document(document)


@pytest.mark.parametrize(
    "rules",
    [
        ["tile <= device.caps.tile"],
        ["tile * device.caps.deep.er < device.sizes[1]", "tile * len(device.caps) < 8"],
    ],
)
def test_facts_in_maps_of_a_device_come_along(rules: list[str]) -> None:
    space = Space(
        [OrderedValues("tile", (1, 2, 4))],
        rules,
        device={"caps": {"tile": 2, "deep": {"er": 1}}, "sizes": [1, 9]},
    )
    again = through_json(space)
    assert again.hash == space.hash
    assert again.feasible.size == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"knobs": {"a": {"values": 3, "default": 1}}},
        {"knobs": {"a": {"range": [[1], 2], "scale": "linear", "default": 1}}},
        {"knobs": {"a": {"values": [1]}}},
        {"workload": "x"},
        {"knobs": None},
    ],
)
def test_a_document_of_no_space_is_said_to_be_none(changed: dict[str, object]) -> None:
    with pytest.raises(InputError, match="describes no space"):
        space_from_document({"knobs": {}, "constraints": [], "facts": {}, "workload": {}} | changed)
