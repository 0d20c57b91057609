"""A configuration: a value for each active knob, immutable, with one canonical hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, Union, cast

Value: TypeAlias = Union[bool, int, float, str, tuple["Value", ...], "FrozenMap"]
"""What a knob can be set to: a number, flag or text; a tuple (permutation); a map (assignment)."""


class FrozenMap(Mapping[str, Value]):
    """An immutable, hashable mapping that keeps its order for iteration but not for equality."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Value], known_hash: str | None = None) -> None:
        """``known_hash`` spares the work where the canonical hash of ``items`` is known already."""
        self._items: dict[str, Value] = {
            name: value if type(value) in _PLAIN else freeze(value) for name, value in items.items()
        }
        self._hash = known_hash

    def __getitem__(self, name: str) -> Any:  # a Value; which of its types it is, only the space knows
        return self._items[name]

    # Of Mapping these two would catch an error for each name that is not there: a search asks for many.
    def __contains__(self, name: object) -> bool:
        return name in self._items

    def get(self, name: str, default: Any = None, /) -> Any:
        return self._items.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self.hash == other.hash
        if not isinstance(other, Mapping):
            return NotImplemented
        try:
            return self.hash == FrozenMap(other).hash
        except TypeError:  # it holds what no knob can be set to
            return False

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, Value]]]:
        return type(self), (self._items,)

    @property
    def hash(self) -> str:
        """Canonical hash: 16 hexadecimal digits of SHA-256 over the sorted JSON form.

        ``1``, ``1.0`` and ``True`` hash differently; the order of the names does not matter.
        """
        if self._hash is None:
            text = json.dumps(plain(self), sort_keys=True, separators=(",", ":"))
            self._hash = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({plain(self)})"


class Configuration(FrozenMap):
    """A value for each active knob of a space. Build one with :meth:`Space.configuration`."""

    __slots__ = ()


_PLAIN = frozenset({bool, int, float, str})


def freeze(value: object) -> Value:
    """Turn numpy scalars, lists and dictionaries into the immutable plain values of :data:`Value`."""
    if type(value) in _PLAIN:  # nearly always: worth a test of its own
        return cast(Value, value)
    if isinstance(value, (bool, int, float, str, FrozenMap)):
        return value.item() if hasattr(value, "item") else value  # np.float64 is a float too
    if isinstance(value, Mapping):
        return FrozenMap({str(name): item for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if hasattr(value, "item") and not isinstance(value, type):  # other numpy scalars
        with suppress(ValueError, RuntimeError):  # of an array or a tensor of several
            return freeze(value.item())
    raise TypeError(f"a knob cannot be set to {value!r} ({type(value).__name__})")


def plain(value: Value) -> object:
    """The JSON form of a value: maps become dictionaries, tuples become lists."""
    if isinstance(value, FrozenMap):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value
