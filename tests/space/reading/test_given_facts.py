"""Facts of a workload that the shell hands on are read as a space file has them."""

from __future__ import annotations

import pytest

from autotune.errors import InputError
from autotune.space.configuration import plain
from autotune.space.reading.given_facts import given_beside, read_given_facts


def test_values_are_those_of_a_space_file() -> None:
    written = ("m=512", "lr=1.0e-3", "dtype=bfloat16", "fused=true", "shape=[2, 3]", "plan={a: 1}", "x=a=b")
    assert {name: value for name, value in read_given_facts(written).items() if name != "plan"} == {
        "m": 512,
        "lr": 1e-3,
        "dtype": "bfloat16",
        "fused": True,
        "shape": (2, 3),
        "x": "a=b",
    }
    assert dict(read_given_facts(["plan={a: 1}"])["plan"]) == {"a": 1}  # type: ignore[call-overload]
    assert read_given_facts(()) == {}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("m", "--workload is 'm'"),
        ("=3", "--workload is '=3'"),
        ("m=", "--workload is 'm='"),
        ("m=[1, 2", "the file ends inside brackets"),
        ("m=null", "--workload is empty"),
        ("m={a: 1, a: 2}", "'a'"),
    ],
)
def test_what_is_no_fact_is_refused(written: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        read_given_facts(["n=1", written])
    assert says in str(error.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as error:
        read_given_facts(["m", "n=1", "n=2", "k="])
    assert [problem.message for problem in error.value.problems] == [
        "--workload is 'm'",
        "--workload gives n twice",
        "--workload is 'k='",
    ]


def test_what_was_given_is_written_as_it_is_read() -> None:
    text = "workload: {m: 4, lr: 1.0e-3, dtype: float32, on: true, no: a, shape: [1, 2], link: {rate: 1}}\n"
    own = {
        "m": 4,
        "lr": 1e-3,
        "dtype": "float32",
        "on": True,
        "no": "a",
        "shape": [1, 2],
        "link": {"rate": 1},
    }
    assert given_beside(text, own) == []
    other = {
        "m": 8,
        "lr": 1e-7,
        "dtype": "true",
        "on": False,
        "no": "b c: d",
        "shape": [],
        "link": {"rate": 2.5},
    }
    written = given_beside(text, other)
    assert {name: plain(value) for name, value in read_given_facts(written).items()} == other
    assert given_beside(text, {**own, "dtype": "bfloat16"}) == ["dtype=bfloat16"], "as one would type it"
    for no_file in ("knobs: {}\n", "- 1\n", "", "[", "a\x07b"):
        assert given_beside(no_file, {"m": 8}) == []
