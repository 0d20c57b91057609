"""Configurations: frozen, comparable, with a hash that every process agrees on."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.space import Configuration, FrozenMap
from autotune.space.configuration import freeze, plain
from tests.space.spaces import printed_under_hash_seeds

SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
MAPS = st.dictionaries(st.text(max_size=4), VALUES, max_size=5)


@given(MAPS)
def test_the_order_of_names_does_not_matter(values):
    one, other = Configuration(values), Configuration(dict(reversed(values.items())))
    assert one == other and hash(one) == hash(other) and one.hash == other.hash


@given(MAPS)
def test_plain_and_freeze_are_inverse(values):
    frozen = freeze(values)
    assert freeze(plain(frozen)) == frozen
    assert pickle.loads(pickle.dumps(Configuration(values))) == values


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0.0, False), ("1", 1), ((1,), 1), ("a", "b")]
)
def test_different_values_hash_differently(one, other):
    assert Configuration({"x": one}).hash != Configuration({"x": other}).hash
    assert Configuration({"x": one}) != Configuration({"x": other})


def test_numpy_values_become_plain_ones():
    given = {
        "a": np.int64(3),
        "b": np.float64(0.5),
        "c": np.bool_(True),
        "d": np.str_("x"),
        "e": [np.int32(1)],
    }
    frozen = Configuration(given)
    assert [type(value) for value in frozen.values()] == [int, float, bool, str, tuple]
    assert frozen == {"a": 3, "b": 0.5, "c": True, "d": "x", "e": (1,)}


def test_it_compares_with_anything_and_equals_only_mappings():
    configuration = Configuration({"x": 1})
    assert configuration == {"x": 1}
    assert configuration != {"x": None}
    assert configuration != {"x": object()}
    assert configuration != [("x", 1)]


def test_it_cannot_be_changed():
    with pytest.raises(TypeError):
        Configuration({"x": 1})["x"] = 2
    for value in (object(), np.float32):
        with pytest.raises(TypeError, match="cannot be set to"):
            Configuration({"x": value})
    inner = {"embed": "cpu"}
    outer = Configuration({"place": inner})
    inner["embed"] = "gpu"
    assert outer["place"] == FrozenMap({"embed": "cpu"})


def test_every_process_computes_the_same_hash():
    program = (
        "from autotune.space import Configuration as C, Space, OrderedValues, Choice;"
        "print(C({'b': 1.5, 'a': ('x', True), 'p': {'e': 'cpu', 'd': 'gpu'}}).hash);"
        "print(Space([OrderedValues('t', (1, 2)), Choice('c', ('r', 's'))], ['t < 2', 't > 0']).hash)"
    )
    (printed,) = printed_under_hash_seeds(program)
    assert (
        printed.split()[0] == Configuration({"a": ["x", True], "b": 1.5, "p": {"d": "gpu", "e": "cpu"}}).hash
    )


def test_the_hash_is_what_stores_on_disk_hold():
    """A change of this value would make every stored configuration unknown."""
    assert Configuration({"tile": 4, "layout": "row"}).hash == "fa6bc5f7466b03ba"
