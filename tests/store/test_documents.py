"""Documents and contents come back as they were."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.store.documents import GarbledError, clean, decode, decode_metrics, encode, pack, unpack

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_documents_come_back(document: object) -> None:
    text = encode(document)
    assert text.isascii()
    assert "\0" not in text
    assert decode(text) == document


def test_nan_comes_back() -> None:
    assert math.isnan(decode(encode({"a": math.nan}))["a"])


@given(st.binary(max_size=2000) | st.binary(min_size=1, max_size=4).map(lambda b: b * 500))
def test_contents_come_back(content: bytes) -> None:
    encoding, stored = pack(content)
    assert unpack(encoding, stored) == content
    assert len(stored) <= len(content)


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_can_be_stored(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned


def test_what_json_refuses_is_written_in_other_words() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert decode(encode({"a": nested, "b": 1}))["b"] == 1
    assert decode(encode({"a": 10**5000, "b": 1}))["b"] == 1
    circle: dict[object, object] = {1: "one"}
    circle["self"] = circle
    assert decode(encode(circle))["1"] == "one"


@given(JSON)
def test_what_stands_beside_a_key_that_json_refuses_comes_back(document: object) -> None:
    assert decode(encode({(1, 2): document})) == {"(1, 2)": document}


@pytest.mark.parametrize(
    "value", [{3, 1, 2}, frozenset({3, 1, 2}), (1, 2, 3), np.array([1, 2, 3]), [1, np.int64(2), 3]]
)
def test_collections_of_other_kinds_become_lists(value: object) -> None:
    assert decode(encode({"a": value})) == {"a": [1, 2, 3]}
    assert decode(encode({None: 0, (): value})) == {"None": 0, "()": [1, 2, 3]}


@pytest.mark.parametrize("text", ["", '{"a":', '{"a";1}', "[" * 100_000])
def test_what_was_never_encoded_is_garbled(text: str) -> None:
    with pytest.raises(GarbledError, match="damaged"):
        decode(text)


@pytest.mark.parametrize("text", ["[1]", '{"time":{"vclue":1.0}}', '{"time":3}'])
def test_what_is_no_metric_is_garbled(text: str) -> None:
    with pytest.raises(GarbledError):
        decode_metrics(text)


def test_contents_that_were_altered_are_garbled() -> None:
    encoding, stored = pack(b"kernel" * 200)
    with pytest.raises(GarbledError):
        unpack(encoding, stored[:8] + b"\xff" * (len(stored) - 8))
