"""Texts with placeholders: found, filled, and lone braces refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.space.placeholders import PlaceholderError, fill, fill_arguments, fill_lines, lone, names


def test_names_with_their_offsets() -> None:
    assert names("a {x} {{y}} {workload.z}") == [("x", 2), ("workload.z", 12)]


def test_fill() -> None:
    assert fill("{x}-{{x}}-{y}", {"x": "1"}) == "1-{x}-"


def test_a_value_is_not_searched_for_placeholders() -> None:
    assert fill("{x}{y}", {"x": "{y}", "y": "2"}) == "{y}2"


@pytest.mark.parametrize(("text", "offset"), [("a {", 2), ("}", 0), ("{x {y}", 0), ("{{}", 2)])
def test_a_lone_brace_is_refused_where_it_stands(text: str, offset: int) -> None:
    assert lone(text)[0][1] == offset
    with pytest.raises(PlaceholderError):
        names(text)
    with pytest.raises(PlaceholderError):
        fill(text, {"x": "1", "y": "2"})


@given(st.text())
def test_doubled_braces_stand_for_themselves(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert names(doubled) == []
    assert fill(doubled, {}) == text


def test_a_flag_that_is_not_given_is_no_argument() -> None:
    assert fill_arguments(["{x}", "{x}"], {}) == [""]
    texts = ["java", "{gc}", "{a}{b}", "--size={a}", "", "{{}}", "Main"]
    assert fill_arguments(texts, {"gc": "", "a": ""}) == ["java", "--size=", "", "{}", "Main"]
    assert fill_arguments(texts, {"gc": "-G", "b": "2"}) == ["java", "-G", "2", "", "{}", "Main"]


def test_an_option_of_a_knob_that_does_not_exist_is_no_argument() -> None:
    texts = ["gcc", "--param=unroll={u}", "-DT={t},{u}", "a={u}", "-c", "run --u={u}"]
    assert fill_arguments(texts, {"t": "4"}) == ["gcc", "-DT=4,", "a=", "-c", "run --u="]
    assert fill_arguments(texts, {"t": "", "u": ""}) == [
        "gcc",
        "--param=unroll=",
        "-DT=,",
        "a=",
        "-c",
        "run --u=",
    ]


def test_a_line_of_a_file_of_which_no_knob_exists_is_left_out() -> None:
    text = "aof {aof}\nfsync {fsync}\nlimit {fsync} {aof}\nsave {{}}\n\nend {fsync}"
    assert fill_lines(text, {"aof": ""}) == "aof \nlimit  \nsave {}\n\n"
    assert fill_lines(text, {"aof": "no", "fsync": "always"}) == fill(text, {"aof": "no", "fsync": "always"})


def test_an_option_called_as_the_knob_goes_with_it() -> None:
    texts = [
        "bench",
        "--depth",
        "{depth}",
        "-v",
        "{depth}",
        "--max-depth",
        "{max_depth}",
        "--depth",
        "{u}{depth}",
    ]
    assert fill_arguments(texts, {}) == ["bench", "-v", "--depth"]
    given = {"depth": "", "max_depth": "2", "u": "1"}
    assert fill_arguments(texts, given) == ["bench", "-v", "--max-depth", "2", "--depth", "1"]
    assert fill_arguments(["--depth", "{depth}"], {}) == ["--depth"]
