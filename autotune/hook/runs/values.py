"""Values on their way into a training script and out of it."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

_FLAGS = ("bool", "bool_")
"""The names of the types of flags, in Python and in numpy 1 and 2."""

FLOATS = ("float16", "float32", "longdouble", "bfloat16")
"""The names of numpy's types of numbers that are no Python floats, as ``float64`` is."""

_EXACT = 1 << 53
"""Each whole number up to here is one that a ``float`` can be."""

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def like(value: Any, default: T) -> T:
    """``value`` in the type of ``default``, if both are plain: with a default of 32, 64.0 becomes 64.

    A value that cannot be converted without loss stays as it is. So does every text: a choice ``'16'`` is a
    text.
    """
    found: Any = value
    if isinstance(default, bool):
        found = bool(value) if isinstance(value, (bool, int)) and value in (0, 1) else value
    elif isinstance(default, int) and isinstance(value, float) and value.is_integer():
        found = int(value)
    elif isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        found = float(value) if abs(value) <= _EXACT else value
    elif isinstance(default, tuple) and isinstance(value, list):
        found = tuple(value)
    result: T = found
    return result


def thawed(value: Any) -> Any:
    """A value of a recipe, which is read-only, as a search gives it: made of lists and dictionaries."""
    if isinstance(value, dict):
        return {name: thawed(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thawed(item) for item in value]
    return value


def read(text: str, default: Any, name: str) -> Any:
    """A text of the command line in the type of ``default``.

    Lists and mappings are written as JSON. With a default of ``None``, the text is read as JSON if it is
    valid, and otherwise stays a text. Raises ``ValueError``, which names the knob, if the text has no such
    form.
    """
    try:
        if isinstance(default, bool):
            return _WORDS[text.strip().lower()]
        if isinstance(default, int):
            return int(text) if "." not in text and "e" not in text.lower() else _whole(float(text))
        if isinstance(default, float):
            return float(text)
        if isinstance(default, (list, tuple, dict)):
            return _collection(text, default)
    except (KeyError, ValueError, RecursionError):  # nested deeper than JSON can be read
        expected = next(said for kind, said in _EXPECTED if isinstance(default, kind))
        raise ValueError(
            f"the knob {name!r} cannot be {text!r:.300}: expected {expected}, as its default {default!r} is"
        ) from None
    if default is None:
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


_EXPECTED: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),  # before the whole numbers, since it is one
    (int, "a whole number"),
    (float, "a number"),
    ((list, tuple), 'a list in JSON, such as ["a", "b"],'),
    (dict, 'a mapping in JSON, such as {"a": 1},'),
)


def _collection(text: str, default: Any) -> Any:
    import json

    found = json.loads(text)
    if not isinstance(found, dict if isinstance(default, dict) else list):
        raise ValueError(text)
    return like(found, default)


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(number)
    return int(number)


def as_number(name: str, value: Any) -> float:
    """The metric as a number; waits for the device of a tensor. A flag stays a ``bool``.

    Raises ``TypeError`` for a value that is no number, and for a name that is no text.
    """
    if not isinstance(name, str):
        raise TypeError(f"a metric is named by a text, not by {name!r:.80}")
    if isinstance(value, (str, bytes)):  # float would take '0.3'
        raise TypeError(f"the metric {name!r} must be a number, not the text {value!r:.80}")
    if type(value).__name__ in _FLAGS:  # a goal must not be a flag, which the search checks; a bound may be
        return bool(value)
    try:
        # A loss that is still part of a graph: PyTorch warns of turning one into a number.
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        what = f"{value!r:.80}: {error}"
        if shape := tuple(getattr(value, "shape", ())):  # of an array, rather than the first of its numbers
            what = f"{type(value).__name__} of shape {shape}: report its mean, or another single number"
        raise TypeError(f"the metric {name!r} must be a number, not {what}") from None
