"""Names of other tools' parameters as names of knobs, so that rules can speak of them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping

from autotune.space.language.syntax import check_name


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
    """The knob's name of each, another one for each.

    Where several come to the same, one that needed no change keeps it, or else the first of them; the
    others get ``_2``, ``_3``. One that comes later changes none that was there, unless it needs no change.
    """
    wanted = {name: knob_name(name) for name in names}
    found = {name: legal for name, legal in wanted.items() if name == legal}
    taken = set(found)
    for name, legal in wanted.items():
        if name not in found:
            numbered = (f"{legal}_{number}" for number in itertools.count(2))
            found[name] = next(free for free in itertools.chain([legal], numbered) if free not in taken)
            taken.add(found[name])
    return {name: found[name] for name in wanted}


def doubtful(names: Mapping[str, str], spoken: Collection[str]) -> list[str]:
    """What to say where rules speak of one of several parameters that come to the same, and of no other.

    ``names`` are those of :func:`knob_names`, ``spoken`` the names in all rules.
    """
    said = []
    for name, called in names.items():
        others = {
            other: its
            for other, its in names.items()
            if other != name and knob_name(other) == knob_name(name)
        }
        if called in spoken and called == knob_name(name) and others and not {*others.values()} & {*spoken}:
            also = ", ".join(f"{other!r} is {its!r}" for other, its in others.items())
            said.append(f"{called!r} in the constraints is the parameter {name!r}; {also}")
    return said
