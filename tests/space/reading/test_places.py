"""Where something stands in a space file that was read before."""

from __future__ import annotations

import pytest

from autotune.space.reading.places import place_of

TEXT = """autotune: 1
search:
  strategy: evolution
  options: {population: 12}
"""


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (("search", "options"), "s.yaml:4:12"),
        (("search", "seed"), "s.yaml:3:3"),
        (("autotune", "options"), "s.yaml:1:11"),
        ((), "s.yaml:1:1"),
    ],
)
def test_a_value_is_found_by_its_keys_or_what_it_would_be_in(keys: tuple[str, ...], place: str) -> None:
    assert str(place_of(TEXT, "s.yaml", keys)) == place
