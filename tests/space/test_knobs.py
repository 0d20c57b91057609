"""Every kind of knob keeps what the contract of Knob promises."""

import math
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.space import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    FrozenMap,
    IntegerRange,
    OrderedValues,
    Permutation,
    Rule,
    Space,
)
from autotune.space.configuration import plain

NUMBERS = st.integers(-50, 50) | st.floats(-50, 50).map(lambda x: round(x, 3) + 0.0)
SCALES = st.sampled_from(["linear", "log"])


@st.composite
def integer_ranges(draw):
    scale = draw(st.sampled_from(["linear", "log", "log2"]))
    if scale == "log2":
        low, high = sorted((draw(st.integers(0, 20)), draw(st.integers(0, 20))))
        return IntegerRange("knob", 2**low, 2**high, scale="log2")
    low = draw(st.integers(1 if scale == "log" else -1000, 1000))
    return IntegerRange("knob", low, low + draw(st.integers(0, 500)), draw(st.integers(1, 7)), scale)


@st.composite
def float_ranges(draw, steps=True):
    scale = draw(SCALES)
    low = draw(st.floats(1e-6, 10) if scale == "log" else st.floats(-1e6, 1e6))
    high = low + draw(st.floats(1e-3, 1e3))
    step = draw(st.none() | st.sampled_from([0.1, 0.25, 0.03, 7.0])) if steps else None
    assume(step is None or (high - low) / step < 5000)
    return FloatRange("knob", low, high, step, scale)


LISTED = st.lists(NUMBERS | st.text(max_size=4), min_size=1, max_size=8, unique=True)
DISCRETE = st.one_of(
    LISTED.map(lambda values: OrderedValues("knob", values)),
    LISTED.map(lambda values: Choice("knob", values)),
    st.just(Flag("knob")),
    integer_ranges(),
    st.lists(st.text(max_size=3), min_size=1, max_size=5, unique=True).map(
        lambda items: Permutation("knob", items)
    ),
    st.builds(
        lambda items, options: Assignment("knob", items, options),
        st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True),
        LISTED,
    ),
    float_ranges().filter(lambda knob: knob.cardinality is not None),
)
ANY = DISCRETE | float_ranges(steps=False)
SEEDS = st.integers(0, 2**32)


@given(DISCRETE, SEEDS)
def test_split_and_join_are_inverse(knob, seed):
    value = knob.sample(np.random.default_rng(seed))
    indices = knob.split(value)
    assert len(indices) == len(knob.cells)
    assert all(0 <= index < len(cell.values) for index, cell in zip(indices, knob.cells, strict=True))
    assert knob.join(indices) == value and type(knob.join(indices)) is type(value)
    if knob.distinct:
        assert len(set(indices)) == len(indices)


@given(DISCRETE)
def test_the_cardinality_counts_the_cells(knob):
    sizes = [len(cell.values) for cell in knob.cells]
    expected = math.factorial(sizes[0]) if knob.distinct else math.prod(sizes)
    assert knob.cardinality == expected


@given(ANY, SEEDS)
def test_canonical_is_idempotent_and_survives_json(knob, seed):
    value = knob.sample(np.random.default_rng(seed))
    assert knob.canonical(value) == value and type(knob.canonical(value)) is type(value)
    assert knob.canonical(plain(value)) == value
    assert value in knob and knob.default in knob
    assert knob.canonical(knob.default) == knob.default


@given(ANY, SEEDS)
def test_an_ordered_knob_has_positions_from_0_to_1_and_no_other_has_any(knob, seed):
    rng = np.random.default_rng(seed)
    one, other = knob.sample(rng), knob.sample(rng)
    if not knob.ordered:
        with pytest.raises(ValueError, match="the values of 'knob' have no order"):
            knob.position(one)
        return
    assert 0.0 <= knob.position(one) <= 1.0
    if knob.cardinality is not None:
        assert (knob.position(one) == knob.position(other)) == (one == other)


@given(ANY, SEEDS)
def test_neighbours_are_other_values_and_mutual(knob, seed):
    value = knob.sample(np.random.default_rng(seed))
    near = knob.neighbours(value)
    assert len({repr(plain(other)) for other in near}) == len(near)
    for other in near:
        assert other in knob and other != value
        back = knob.neighbours(other)
        if knob.cardinality is None:
            places = [knob.position(v) for v in back]
            ends = abs(knob.position(other) - 0.5) > 0.5 - 1e-6 or not places
            assert ends or min(abs(place - knob.position(value)) for place in places) < 1e-6
        else:
            assert value in back
    if knob.cardinality is not None and knob.cardinality > 1:
        assert near


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["order", "place"])
@given(seed=SEEDS)
@settings(max_examples=5)
def test_neighbours_drawn_are_neighbours_and_in_time_all_of_them(count, kind, seed):
    items = tuple(f"i{place}" for place in range(count))
    knob = Permutation("k", items) if kind == "order" else Assignment("k", items, ("a", "b", "c"))
    rng = np.random.default_rng(seed)
    here = knob.sample(rng)
    near = knob.neighbours(here)
    assert knob.steps == len(near)
    drawn = knob.stepped(np.array(knob.split(here)), 40 * max(len(near), 1), rng)
    assert {knob.join(row) for row in drawn.tolist()} == set(near)


@given(ANY, SEEDS)
def test_distance_is_a_metric_from_0_to_1(knob, seed):
    rng = np.random.default_rng(seed)
    one, two, three = (knob.sample(rng) for _ in range(3))
    assert knob.distance(one, one) == 0
    assert 0 <= knob.distance(one, two) <= 1
    assert knob.distance(one, two) == pytest.approx(knob.distance(two, one))
    assert knob.distance(one, three) <= knob.distance(one, two) + knob.distance(two, three) + 1e-9
    if knob.cardinality is not None:
        assert (knob.distance(one, two) == 0) == (one == two)


@given(ANY)
def test_a_knob_can_be_copied_and_pickled(knob):
    assert replace(knob, name="other").name == "other"
    assert pickle.loads(pickle.dumps(knob)) == knob
    conditional = replace(knob, when="b == 1")
    assert conditional.when is not None and conditional.when.text == "b == 1" and not conditional.when.vacuous
    assert pickle.loads(pickle.dumps(conditional)) == conditional
    assert conditional.to_document()["when"] == "b == 1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OrderedValues("k", ()), "values must not be empty"),
        (lambda: OrderedValues("k", (1, 2, 1.0)), "1.0 is there twice"),
        (lambda: OrderedValues("k", "abc"), "values must be a list"),
        (lambda: OrderedValues("k", ((1, 2), (3, 4))), r"must be numbers or texts, but one is \[1, 2\]"),
        (lambda: OrderedValues("k", (1, None)), "cannot be set to None"),
        (lambda: Choice("k", (np.float32, np.float64)), r"cannot be set to <class 'numpy.float32'> \(type\)"),
        (lambda: Choice("k", (np.array([1, 2]),)), r"cannot be set to array\(\[1, 2\]\)"),
        (lambda: Flag("k", when=lambda layout: layout == "row"), "when must be a rule such as"),
        (lambda: OrderedValues("k", (1, math.inf)), "must be finite"),
        (lambda: OrderedValues("k", (1, 10**400)), "must be finite"),
        (lambda: FloatRange("k", 0, 10**400), "high must be a finite number"),
        (lambda: OrderedValues("k", (1, 2), default=3), "default is not possible: 3 is not a value of 'k'"),
        (lambda: Choice("k", {"a": 1}), "choices must be a list"),
        (lambda: Flag("k", default=1), "expected true or false"),
        (lambda: IntegerRange("k", 2, 1), "low must not be above high"),
        (lambda: IntegerRange("k", 1, 2.5), "high must be an integer"),
        (lambda: IntegerRange("k", True, 2), "low must be an integer"),
        (lambda: IntegerRange("k", 1, 8, 0), "step must be 1 or more"),
        (lambda: IntegerRange("k", 0, 8, scale="log"), "needs low above 0"),
        (lambda: IntegerRange("k", 3, 8, scale="log2"), "low must be a power of two"),
        (lambda: IntegerRange("k", 1, 9, scale="log2"), "high must be a power of two"),
        (lambda: IntegerRange("k", 1, 8, 2, "log2"), "takes no step"),
        (lambda: IntegerRange("k", 1, 8, scale="log10"), "expected linear, log or log2"),
        (lambda: IntegerRange("k", 0, 2**60), "within 2\\^53"),
        (lambda: FloatRange("k", 0, 1, scale="log"), "needs low above 0"),
        (lambda: FloatRange("k", 0, math.nan), "high must be a finite number"),
        (lambda: FloatRange("k", -1.7e308, 1.7e308), "wider than the largest float"),
        (lambda: FloatRange("k", 0, 1, step=-1), "step must be above 0"),
        (lambda: FloatRange("k", 0, 1, step=1e-9), "leave it out"),
        (lambda: Permutation("k", ["i", "i"]), "'i' is there twice"),
        (lambda: Permutation("k", ["i", "j"], default=["i", "i"]), "'i', 'j' in some order"),
        (lambda: Assignment("k", [1, 2], ["a"]), "items must be texts"),
        (lambda: Assignment("k", ["e"], []), "options must not be empty"),
        (lambda: Assignment("k", ["e"], ["a"], default={"f": "a"}), "a map of 'e'"),
        (lambda: FloatRange("k", 1e17, 1e17 + 64, 1.0), "a step of 1.0 is too small here"),
        (lambda: Flag("min"), "a function of the rule language"),
        (lambda: Flag("device"), "a name of the rule language"),
        (lambda: Flag("and"), "a reserved word of the rule language"),
        (lambda: Flag("2x"), "cannot name a knob"),
        (lambda: Flag(""), "cannot name a knob"),
    ],
)
def test_what_makes_no_knob_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_of_many_knobs_the_wrong_one_is_named():
    with pytest.raises(ValueError, match=r"^knob 'tile': low must not be above high, but 2 > 1$"):
        [IntegerRange("unroll", 1, 8), IntegerRange("tile", 2, 1)]


@pytest.mark.parametrize(
    ("knob", "given", "canonical"),
    [
        (OrderedValues("k", (1, 2.5, "x")), 1.0, 1),
        (OrderedValues("k", (1, 2.5, "x")), np.float64(2.5), 2.5),
        (IntegerRange("k", 1, 9), 4.0, 4),
        (IntegerRange("k", 1, 9), np.int32(4), 4),
        (FloatRange("k", 0, 9), 4, 4.0),
        (FloatRange("k", -1, 1), -0.0, 0.0),
        (FloatRange("k", 0, 1, step=0.1), 0.1 + 0.2, 0.3),
        (Flag("k"), np.bool_(False), False),
        (Choice("k", ((16, 16), (32, 8))), [32, 8], (32, 8)),
        (Permutation("k", ["i", "j", "k"]), ["k", "i", "j"], ("k", "i", "j")),
        (Assignment("k", ["a", "b"], [0, 1]), {"b": 1, "a": 0.0}, FrozenMap({"a": 0, "b": 1})),
    ],
)
def test_values_have_one_canonical_form(knob, given, canonical):
    found = knob.canonical(given)
    assert found == canonical and type(found) is type(canonical)
    assert repr(found) == repr(canonical)


@pytest.mark.parametrize(
    ("knob", "given"),
    [
        (OrderedValues("k", (0, 1)), True),
        (OrderedValues("k", (0, 1)), "1"),
        (OrderedValues("k", (0, 1)), [0]),
        (IntegerRange("k", 1, 9, 2), 2),
        (IntegerRange("k", 1, 9), 2.5),
        (IntegerRange("k", 1, 9), 10),
        (IntegerRange("k", 1, 9), True),
        (IntegerRange("k", 1, 9), math.inf),
        (IntegerRange("k", 1, 9), "5"),
        (FloatRange("k", 0, 1), math.nan),
        (FloatRange("k", 0, 1), 1.0000001),
        (FloatRange("k", 0, 1, step=0.1), 0.15),
        (Flag("k"), 1),
        (Flag("k"), "true"),
        (Choice("k", ("a", "b")), None),
        (Choice("k", ("a", "b")), object()),
        (Permutation("k", ["i", "j"]), "ij"),
        (Permutation("k", ["i", "j"]), ("i",)),
        (Permutation("k", ["i", "j"]), ("i", "j", "j")),
        (Permutation("k", ["i", "j"]), (["i"], "j")),
        (Assignment("k", ["a"], [0, 1]), {"a": 2}),
        (Assignment("k", ["a"], [0, 1]), {"a": 0, "b": 0}),
        (Assignment("k", ["a"], [0, 1]), [0]),
    ],
)
def test_other_values_are_refused_with_what_was_expected(knob, given):
    assert given not in knob
    with pytest.raises(ValueError, match="is not a value of 'k': expected"):
        knob.canonical(given)


def test_defaults_that_are_left_out():
    assert OrderedValues("k", (4, 2)).default == 4
    assert IntegerRange("k", 3, 9).default == 3
    assert FloatRange("k", 1, 9).default == 1.0
    assert Choice("k", ["b", "a"]).default == "b"
    assert Flag("k").default is True
    assert Permutation("k", ["j", "i"]).default == ("j", "i")
    assert Assignment("k", ["a", "b"], ["x", "y"]).default == {"a": "x", "b": "x"}


def test_one_and_true_are_told_apart_inside_lists():
    knob = Choice("k", ((1, 0), (True, False)))
    assert knob.split((True, False)) == (1,) and knob.canonical([1.0, 0]) == (1, 0)
    space = Space([Permutation("k", (1, True))], rows=[{"k": (1, True)}, {"k": (True, 1)}])
    assert len(space.feasible) == 2


def test_the_values_of_ranges():
    assert list(IntegerRange("k", 1, 32, scale="log2").cells[0].values) == [1, 2, 4, 8, 16, 32]
    assert list(IntegerRange("k", -3, 5, 3).cells[0].values) == [-3, 0, 3]
    assert FloatRange("k", 0, 1, step=0.1).cells[0].values == tuple(n / 10 for n in range(11))
    assert FloatRange("k", 0, 0.95, step=0.1).cells[0].values == tuple(n / 10 for n in range(10))
    assert FloatRange("k", 0, 1).cells == () and FloatRange("k", 0, 1).cardinality is None
    assert IntegerRange("k", 0, 10**15).cells[0].values[-1] == 10**15  # a range, not a list
    with pytest.raises(ValueError, match="continuous"):
        FloatRange("k", 0, 1).split(0.5)


@pytest.mark.parametrize("parts", [3, 7, 11, 49, 101])
def test_a_step_that_decimals_cannot_say_reaches_the_end_of_the_range(parts: int) -> None:
    """11 times 0.09090909090909091 is a little more than 1, and 3 times a third a little less."""
    knob = FloatRange("k", 0, 1, step=1 / parts)
    (cell,) = knob.cells
    assert cell.values == pytest.approx([n / parts for n in range(parts + 1)], abs=1e-12)
    assert cell.values[-1] == 1.0
    assert [knob.canonical(n / parts) for n in range(parts + 1)] == list(cell.values)


def test_a_cell_is_called_as_a_rule_calls_it():
    assert [cell.name for cell in Permutation("order", ["i", "j"]).cells] == ["order[0]", "order[1]"]
    assert [c.name for c in Assignment("place", ["a", "it's"], [0]).cells] == ["place['a']", 'place["it\'s"]']


@pytest.mark.parametrize(
    "knob",
    [
        OrderedValues("k", (1, 2, 4, 8)),
        Choice("k", ["a", "b", "c", "d"]),
        Flag("k"),
        IntegerRange("k", 1, 4),
        IntegerRange("k", 1, 8, scale="log2"),
        FloatRange("k", 0, 1.5, step=0.5),
        Permutation("k", ["i", "j", "k"]),
        Assignment("k", ["a", "b"], [0, 1]),
    ],
    ids=lambda knob: type(knob).__name__,
)
def test_samples_are_uniform(knob):
    """Chi-square with at most 5 degrees of freedom: 25 is passed by chance once in 7,000 (fixed seed)."""
    rng, n = np.random.default_rng(20), 6000
    counts = Counter(repr(knob.sample(rng)) for _ in range(n))
    assert len(counts) == knob.cardinality
    expected = n / knob.cardinality
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 25


@pytest.mark.parametrize(
    "knob",
    [
        IntegerRange("k", 1, 3, scale="log"),
        FloatRange("k", 1, 3, step=1, scale="log"),
        FloatRange("k", 0.1, 0.39, step=0.1, scale="log"),
        IntegerRange("k", 2, 7, step=2, scale="log"),
    ],
    ids=repr,
)
def test_on_a_log_scale_each_value_owns_what_rounds_to_it(knob):
    """The ends as well. Chi-square with 2 degrees of freedom: 18 is passed by chance once in 8,000."""
    rng, n = np.random.default_rng(20), 6000
    counts = Counter(knob.sample(rng) for _ in range(n))
    expected = dict(zip(sorted(counts), np.diff(np.log([0.5, 1.5, 2.5, 3.5])) / math.log(7) * n, strict=True))
    assert sum((counts[value] - share) ** 2 / share for value, share in expected.items()) < 18


def test_a_log_scale_draws_every_octave_alike():
    rng = np.random.default_rng(1)
    for knob in (IntegerRange("k", 1, 1023, scale="log"), FloatRange("k", 1, 1024, scale="log")):
        octaves = Counter(math.frexp(knob.sample(rng))[1] for _ in range(5000))
        assert len([count for count in octaves.values() if count > 300]) >= 9
        assert knob.position(32) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    "knob",
    [
        FloatRange("k", 5e-324, 1.0, step=0.25, scale="log"),
        FloatRange("k", 0.0, 5e-324),
        FloatRange("k", 1e10, math.nextafter(1e10, 2e10), scale="log"),
        FloatRange("k", 5e-324, 1.7e308, scale="log"),
        FloatRange("k", -8e307, 8e307),
    ],
    ids=lambda knob: f"{knob.low}-{knob.high}",
)
def test_the_narrowest_and_the_widest_ranges_have_positions(knob):
    ends = [knob.low, knob.high]
    assert all(0.0 <= knob.position(end) <= 1.0 for end in ends)
    assert knob.positions(ends).tolist() == [knob.position(end) for end in ends]
    assert knob.sample(np.random.default_rng(0)) in knob
    assert all(near in knob for near in knob.neighbours(knob.low))


def test_the_distance_of_permutations_counts_turned_pairs():
    knob = Permutation("k", ["i", "j", "k"])
    assert knob.distance(("i", "j", "k"), ("k", "j", "i")) == 1
    assert knob.distance(("i", "j", "k"), ("j", "i", "k")) == pytest.approx(1 / 3)


def test_a_condition_may_be_a_text_or_a_rule():
    rule = Rule.parse("b == 1")
    assert Flag("k", when=rule).when == rule.as_condition() == Flag("k", when="b == 1").when
    assert Flag("k").when is None
    with pytest.raises(InputError, match="write =="):
        Flag("k", when="b = 1")
