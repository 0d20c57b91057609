"""Where in a space file a value stands, for problems that are found after the file was read."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.errors import Location
from autotune.space.reading.yaml_nodes import YamlMap, compose


def place_of(text: str, file: str, keys: Sequence[str]) -> Location:
    """The place of the value under nested ``keys`` in a file that is valid YAML.

    Where one of the keys is missing, the place of the mapping that lacks it.
    """
    node, _ = compose(text, file)
    for key in keys:
        entries = [entry for entry in node if entry.key == key] if isinstance(node, YamlMap) else []
        if not entries:
            break
        node = entries[0].value
    return node.where
