"""Values on their way into a training script: in the same form whoever chose them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.hook.runs.values import like, read
from autotune.measure.commands.run_protocol import VARIABLE
from tests.hook.listening import Search

KNOBS = """\
autotune: 1
name: train
command: [echo]
metrics: {loss: {goal: minimize}}
knobs:
  order: {permutation: [i, j]}
  pair: {permutation: [i, j]}
  place: {assign: [embed, head], to: [cpu, gpu]}
  mesh: {choices: [[[1], 8], [2, 4]]}
"""

DEFAULTS: dict[str, Any] = {
    "order": ["i", "j"],
    "pair": ("i", "j"),
    "place": {"embed": "cpu", "head": "cpu"},
    "mesh": None,
}

FOUND = {
    "order": ["i", "j"],
    "pair": ["i", "j"],
    "place": {"embed": "cpu", "head": "cpu"},
    "mesh": [[1], 8],
}


def test_a_recipe_gives_lists_and_mappings_in_the_form_that_the_search_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    """A script that has worked in its search meets nothing that is new to it afterwards."""
    search(**FOUND)
    with autotune.run("train") as run:
        searched = {name: run.knob(name, default=default) for name, default in DEFAULTS.items()}
    monkeypatch.delenv(VARIABLE)
    monkeypatch.chdir(tmp_path)
    space = tmp_path / "space.yaml"
    space.write_text(KNOBS)
    with autotune.ask_tell(space, store=tmp_path / "found.db") as session:
        session.tell(session.ask(1)[0], loss=1.0)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "found.db"))
    with autotune.run("train", recipes=True) as run:
        known = {name: run.knob(name, default=default) for name, default in DEFAULTS.items()}
    assert run.source == "recipe"
    assert known == searched == FOUND | {"pair": ("i", "j")}
    assert {name: type(value) for name, value in known.items()} == {
        "order": list,
        "pair": tuple,
        "place": dict,
        "mesh": list,
    }


@pytest.mark.parametrize("value", [3, (1 << 53) + 1, -(10**400)], ids=["exact", "long", "huge"])
def test_a_whole_number_becomes_a_float_if_nothing_is_lost(value: int) -> None:
    """The longest had ended the script in an OverflowError."""
    found = like(value, 1.0)
    assert found == value and isinstance(found, float) == (value == 3)


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ('["b", "a"]', ["a", "b"], ["b", "a"]),
        ('["b", "a"]', ("a", "b"), ("b", "a")),
        ('{"a": 2}', {"a": 1}, {"a": 2}),
        ("[1, 2]", None, [1, 2]),
        ("b,a", None, "b,a"),
    ],
)
def test_lists_and_mappings_are_read_as_json(text: str, default: Any, expected: Any) -> None:
    found = read(text, default, "order")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["b,a", "5", '{"a": 1}', "[" * 100_000])
@pytest.mark.parametrize("default", [["a", "b"], ("a", "b")])
def test_what_is_no_list_is_refused_where_the_default_is_one(text: str, default: Any) -> None:
    """A text in its place would be taken for a list of its letters."""
    with pytest.raises(ValueError, match=r"the knob 'order' cannot be .*: expected a list in JSON, such as"):
        read(text, default, "order")


def test_what_is_no_mapping_is_refused_where_the_default_is_one() -> None:
    with pytest.raises(ValueError, match=r"expected a mapping in JSON, such as \{"):
        read("[1]", {"a": 1}, "place")
