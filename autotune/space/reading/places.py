"""Where in a space file a value stands, for problems that are found after the file was read."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.errors import Location
from autotune.space.reading.yaml_nodes import compose, value_at


def place_of(text: str, file: str, keys: Sequence[str]) -> Location:
    """The place of the value under nested ``keys`` in a file that is valid YAML.

    Where one of the keys is missing, the place of the mapping that lacks it.
    """
    node, _ = compose(text, file)
    for key in keys:
        inner = value_at(node, key)
        if inner is None:
            break
        node = inner
    return node.where
