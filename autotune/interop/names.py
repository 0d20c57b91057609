"""Names of other tools' parameters as names of knobs, so that rules can speak of them."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.errors import InputError, Problem
from autotune.space.syntax import check_name


def knob_name(name: str) -> str:
    """``name`` with what no knob's name may hold made ``_``: ``model/lr`` becomes ``model_lr``.

    A word of the rule language gets a ``_`` at its end: ``max`` becomes ``max_``.
    """
    legal = "".join(c if f"_{c}".isidentifier() else "_" for c in name)
    if not legal or not legal.isidentifier():
        legal = f"_{legal}"
    try:
        check_name(legal)
    except ValueError:
        return f"{legal}_"
    return legal


def knob_names(names: Iterable[str]) -> dict[str, str]:
    """The knob's name of each; :class:`InputError` where two of them come to the same."""
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        legal = found[name] = knob_name(name)
        if taken.setdefault(legal, name) != name:
            message = f"the parameters {taken[legal]!r} and {name!r} are both called {legal!r} in rules"
            raise InputError(Problem(message, hint="rename one of them"))
    return found
