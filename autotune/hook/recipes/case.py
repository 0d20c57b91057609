"""What a configuration is for: a workload, or for a kernel its key and the types of its tensors. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import InputError, Problem
from autotune.likeness import apart

Plain = bool | int | float | str

DEVICE = "device_name"
TYPES = "tensor_types"
"""Facts that the workload of a kernel's study has besides the key."""


@dataclass(frozen=True)
class Case:
    """What a configuration is chosen by."""

    values: Mapping[str, Any]
    """The facts of the workload; for a kernel, the arguments that the key names."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The element type of each tensor argument of a kernel, by the argument's name: ``float16``."""

    @classmethod
    def of(cls, key: Sequence[str], arguments: Mapping[str, Any]) -> Case:
        """The case of a call with these arguments.

        Raises :class:`InputError` for a key that is missing or that is a tensor.
        """
        problems = [
            Problem(f"the key {name!r} is not among the arguments of the call")
            for name in key
            if name not in arguments
        ]
        values = {}
        for name in key:
            if name in arguments:
                try:
                    values[name] = as_plain(arguments[name])
                except TypeError:
                    message = f"the key {name!r} is a {type(arguments[name]).__name__}"
                    hint = "the types of tensors count without being named"
                    problems.append(Problem(message, None, "a number, a flag or a text", hint))
        if problems:
            raise InputError(problems)
        types = {name: type_name(value) for name, value in arguments.items() if is_tensor(value)}
        return cls(values, types)

    def distance(self, other: Case) -> float | None:
        """How far apart the numbers are (:mod:`autotune.likeness`).

        ``None`` if a type, a flag or a text differs: what is best for one then says nothing about the other.
        """
        return apart(self.values, other.values) if self.types == other.types else None


def as_plain(value: Any) -> Plain:
    """A value of a key in a form that JSON has; raises ``TypeError`` if there is none."""
    value = getattr(value, "value", value)  # a triton constexpr
    if isinstance(value, (bool, int, float, str)):
        return value
    if value is None or type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    if hasattr(value, "item") and getattr(value, "shape", None) == () and not is_tensor(value):
        found = value.item()
        if type(found) is not type(value):  # item() of numpy's longdouble returns a longdouble
            return as_plain(found)
    raise TypeError(type(value).__name__)


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor as kernels take them: with a type and a place in memory."""
    return hasattr(value, "dtype") and hasattr(value, "data_ptr")


def type_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
