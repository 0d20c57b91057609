"""Places in JSON texts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.hook.recipes.json_place import place_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any) -> list[tuple[str | int, ...]]:
    """Of every value in a document."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    )
    return [(), *((name, *rest) for name, inner in members for rest in paths(inner))]


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 1, 3]))
def test_the_value_stands_at_its_place(document: Any, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    for path in paths(document):
        line, column = place_of(text, path)
        rest = "\n".join([text.split("\n")[line - 1][column - 1 :], *text.split("\n")[line:]])
        value = document
        for step in path:
            value = value[step]
        assert json.JSONDecoder().raw_decode(rest)[0] == value


def test_a_path_that_leads_nowhere_ends_where_it_still_led() -> None:
    text = '{"a": [1, {"b": 2}]}'
    assert place_of(text, ("a", 1, "c")) == (1, 11)
    assert place_of(text, ("a", 7)) == (1, 7)
    assert place_of(text, ("a", "b")) == (1, 7)
    assert place_of('{"a": 1, "a": 2}', ("a",)) == (1, 15)
