"""What differs between two documents, in words."""

from __future__ import annotations

from autotune.provenance.document import differences, part_of


def test_a_text_that_is_empty_is_seen() -> None:
    said = [str(one) for one in differences({"a": "", "b": "x", "c": 1}, {"b": " ", "c": None})]
    assert said == ['a: "" -> nothing', 'b: x -> " "', "c: 1 -> nothing"]


def test_a_list_that_has_grown_is_told_of_as_a_whole() -> None:
    said = [str(one) for one in differences({"cores": [0], "x": [1, 2]}, {"cores": [0, 1], "x": [1, 3]})]
    assert said == ["cores: [0] -> [0, 1]", "x.1: 2 -> 3"]


def test_a_part_that_is_missing_or_no_mapping_is_empty() -> None:
    document = {"machine": {"processor": {"name": "x"}}, "gpus": None, "host": "y"}
    assert part_of(document, "machine", "processor") == {"name": "x"}
    assert part_of(document) == document
    assert [part_of(document, name, "deeper") for name in ("gpus", "host", "nowhere")] == [{}, {}, {}]
