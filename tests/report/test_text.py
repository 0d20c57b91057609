"""Text of others does nothing but be read."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.text import last_lines, one_line, shown, side_by_side, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@given(ANY_TEXT)
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown if c not in "\n\t")
    assert not any(
        unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")
        for c in shown
    )
    shown.encode()


@given(ANY_TEXT)
def test_a_line_is_one_line_and_short(text: str) -> None:
    shown = one_line(text, 40)
    assert "\n" not in shown
    assert len(shown) <= 40 * 6 + 4


def test_what_acts_is_written_out() -> None:
    assert visible("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"


def test_plain_text_stays_as_it_is() -> None:
    assert visible("tile_m = 4\n\tβ → 2") == "tile_m = 4\n\tβ → 2"


def test_a_cut_is_said() -> None:
    assert visible("x" * 50, 10) == "x" * 10 + " ... (cut, 40 more characters)"
    assert last_lines("x" * 50, 10).endswith("x" * 10)
    assert "40 characters before this are left out" in last_lines("x" * 50, 10)


def test_ten_megabytes_are_no_trouble() -> None:
    assert len(one_line("ab " * 3_500_000)) < 200
    assert len(last_lines("\x1b" * 10_000_000)) < 20_000


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", '""'),
        (" ", '" "'),
        ("a ", '"a "'),
        ("x\ty", '"x\\ty"'),
        ("two words", "two words"),
        ("\x1b[2J", "\\x1b[2J"),
        (1.5, "1.5"),
    ],
)
def test_blanks_of_a_value_are_seen(value: object, said: str) -> None:
    assert shown(value) == said


def test_two_long_values_are_cut_where_they_can_be_told_apart() -> None:
    same = "-O3 -march=native " * 10
    one, other = side_by_side(f"{same}-ffast-math", f"{same}-fno-math", 60)
    assert one.endswith("-ffast-math") and other.endswith("-fno-math")
    assert len(one) <= 60 and one.startswith("... ")
    assert side_by_side(4, "", 60) == ("4", '""')
    assert [len(text) for text in side_by_side("a" * 99, "b" * 99, 60)] == [60, 60]
    assert side_by_side("a" * 99, "a" * 99, 60)[0] == one_line("a" * 99, 60)


def test_flags_lists_and_assignments_are_no_python() -> None:
    """``{'conv1': 'a', 'conv2': 'b'} -> {...}`` had stood in a diff, cut off before what differed."""
    assert [shown(value) for value in (True, [1, "a b"], {"conv1": "gpu", "conv2": False})] == [
        "true",
        "1, a b",
        "conv1: gpu, conv2: false",
    ]
    links = [{"bandwidth": 1e9, "latency": 0.1}, {"bandwidth": 1e8}]
    assert shown(links) == "{bandwidth: 1000000000.0, latency: 0.1}, {bandwidth: 100000000.0}"
    assert shown({"link": {"up": 1, "down": 2}, "ranks": [0, 1]}) == "link: {up: 1, down: 2}, ranks: [0, 1]"
    places = {f"layer{i}": "cpu" for i in range(20)}
    assert side_by_side(places, places | {"layer17": "gpu"}) == ("layer17: cpu", "layer17: gpu")
    assert side_by_side({"a": 1}, {"b": 1}) == ("a: 1, b: (none)", "a: (none), b: 1")
    assert side_by_side({"a": 1}, None) == ("a: 1", "(none)")


def test_values_that_are_written_alike_are_told_apart() -> None:
    """A choice of 1 and "1" had stood as ``a: 1 -> 1`` in a diff."""
    assert side_by_side(1, "1") == ("1", '"1"')
    assert side_by_side(["true", 2], [True, 2]) == ('["true", 2]', "[true, 2]")
    assert side_by_side({"same": 4, "flag": 1}, {"same": 4, "flag": True}) == ("flag: 1", "flag: true")
    assert side_by_side("1", "1") == ("1", "1")
