"""The facts of a workload, from what a caller passes to the plain form that stores and recipes have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune.errors import InputError, Problem
from autotune.hook.recipes.case import Plain, as_plain

_EXPECTED = "a number, a flag, a text, or a list or a mapping of these"


def read_facts(workload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The facts of ``workload``, with plain numbers instead of numpy's, and lists instead of tuples.

    Raises :class:`InputError` that names every value of an unsuitable type.
    """
    if workload is None:
        return {}
    if not isinstance(workload, Mapping):
        message = f"the workload is of the type {type(workload).__name__}"
        raise InputError(Problem(message, None, "facts by their names: {'m': 960, 'n': 960}"))
    problems: list[Problem] = []
    facts = _read_group(workload, "", problems)
    if problems:
        raise InputError(problems)
    return facts


def _read_group(group: Mapping[Any, Any], above: str, problems: list[Problem]) -> dict[str, Any]:
    found = {}
    for name, value in group.items():
        if isinstance(name, str):
            found[name] = _read(value, f"{above}{name}", problems)
        else:
            problems.append(Problem(f"a fact of the workload is named {name!r:.80}", None, "a text"))
    return found


def _read(value: Any, name: str, problems: list[Problem]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_read(one, name, problems) for one in value]
    if isinstance(value, Mapping):
        return _read_group(value, f"{name}.", problems)
    try:
        found = _scalar(value)
        if isinstance(found, int):
            float(found)
    except OverflowError:
        problems.append(Problem(f"{name!r} of the workload is too large", None, "a number up to 1.8e308"))
    except (TypeError, ValueError):
        kind = "None" if value is None else f"of the type {type(value).__name__}"
        is_array = hasattr(value, "tolist") and not isinstance(value, type)
        hint = "its method tolist() makes a list of it" if is_array else ""
        problems.append(Problem(f"{name!r} of the workload is {kind}", None, _EXPECTED, hint))
    else:
        return found
    return None


def _scalar(value: Any) -> Plain:
    """A single value as a plain one; raises ``TypeError`` if it has no plain form."""
    if value is None:
        raise TypeError("None")
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of torch, too
        value = value.item()
    return as_plain(value)
