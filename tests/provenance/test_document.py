"""What differs between two documents, in words."""

from __future__ import annotations

from autotune.provenance.document import differences


def test_a_text_that_is_empty_is_seen() -> None:
    said = [str(one) for one in differences({"a": "", "b": "x", "c": 1}, {"b": " ", "c": None})]
    assert said == ['a: "" -> nothing', 'b: x -> " "', "c: 1 -> nothing"]
