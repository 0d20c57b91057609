"""Where in a space file something stands, for whoever finds fault with it after it was read."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.errors import Location
from autotune.space.reading.yaml_nodes import YamlMap, compose


def place_of(text: str, file: str, keys: Sequence[str]) -> Location:
    """Of the value under these keys in a file that could be read; of the last that is there, else."""
    node, _ = compose(text, file)
    for key in keys:
        entries = [entry for entry in node if entry.key == key] if isinstance(node, YamlMap) else []
        if not entries:
            break
        node = entries[0].value
    return node.where
