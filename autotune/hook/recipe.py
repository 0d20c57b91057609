"""``autotune.recipe``: the answer of a study, where it is needed.

::

    best = autotune.recipe("gemm-c", workload={"m": 960, "n": 960, "k": 960})
    run(**best.configuration)
    print(best)                     # how it was chosen, in one line

Answers are cached. Whether a file of recipes or a SQLite store has changed is checked at most once every
:data:`EVERY_SECONDS`; a database server is not asked again before :func:`forget` is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from marshal import dumps
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from autotune.hook.lookup.best import Best

if TYPE_CHECKING:
    from autotune.hook.recipes.places import Signature

EVERY_SECONDS = 0.01
MOST_KEPT = 65_536
"""How many answers are cached; when they are more, all are dropped."""


def recipe(
    name: str,
    workload: Mapping[str, Any] | None = None,
    *,
    recipes: str | Path | None = None,
    store: str | Path | None = None,
) -> Best:
    """The best configuration known for this device and ``workload``, of the study called ``name``.

    That is the recipe of this workload on this device; else that of the nearest workload on this device;
    else that of the nearest workload on another device; else the default of the space. A configuration that
    the space's constraints forbid here is passed over, and so is one of which the store knows that it failed
    for this workload on this device. Of several for one workload, one is preferred
    (:func:`autotune.hook.recipes.preference.preference`).

    ``recipes`` is a file of recipes; default: the files that ``AUTOTUNE_RECIPES`` names, else
    ``recipes.json`` in the current folder and beside the program. Where the files have nothing for this very
    workload and device, the store is asked as well (``store``; default: ``AUTOTUNE_STORE`` or
    ``results/autotune.db``).

    Raises :class:`autotune.errors.InputError` for an unknown name, for a fact of the workload that is unknown
    or of the wrong type, and for a file of recipes that cannot be read.
    """
    try:
        facts = () if workload is None else workload.items()
        key = (name, recipes, store, _SET.get(b"AUTOTUNE_RECIPES"), _SET.get(b"AUTOTUNE_STORE"), *facts)
        best, until, types = _KEPT[key]
        if monotonic() < until and (types is None or types == [*map(type, workload.values())]):  # type: ignore[union-attr]
            return best
    except (KeyError, TypeError, AttributeError):
        pass  # not cached so: it has lists or mappings, or is new, or a bad argument, which _answer reports
    try:
        variables = _SET.get(b"AUTOTUNE_RECIPES"), _SET.get(b"AUTOTUNE_STORE")
        exact = dumps(workload, _WITHOUT_SHARING)  # type: ignore[arg-type]
        best, until, _ = _KEPT[(name, recipes, store, *variables, exact)]
        if monotonic() < until:
            return best
    except (KeyError, TypeError, ValueError):
        pass
    return _answer(name, workload, recipes, store)


def forget() -> None:
    """Look everything up again from now on."""
    _KEPT.clear()
    _SIGNED.clear()


_Key = tuple[Any, ...]

_KEPT: dict[_Key, tuple[Best, float, list[Any] | None]] = {}
"""By question: the answer, the time (monotonic) up to which it is given without a look at the files, and
the types of the workload's facts where these must be compared."""
_SIGNED: dict[_Key, tuple[Signature, tuple[Path, ...]]] = {}
"""By question: the files that the answer was read from, and their signature from before they were read."""
_WITHOUT_SHARING = 2
"""The version of marshal in which equal workloads have the same bytes: later ones say what is shared in
memory."""
_SET: Mapping[bytes, bytes] = getattr(os.environ, "_data", {})
"""The environment variables as bytes: decoding them would take longer than the rest of a cached answer. A
Python that keeps them elsewhere does not notice that one has changed."""


def _answer(
    name: str, workload: Mapping[str, Any] | None, recipes: str | Path | None, store: str | Path | None
) -> Best:
    """The answer to a question that the cache cannot answer at once; it is cached."""
    from autotune.hook.lookup.lookup import look_up
    from autotune.hook.lookup.workload_facts import read_facts
    from autotune.hook.recipes.places import signature

    _check(name, recipes, store)
    facts = read_facts(workload)
    variables = _SET.get(b"AUTOTUNE_RECIPES"), _SET.get(b"AUTOTUNE_STORE")
    types = None
    if any(isinstance(fact, (list, dict)) for fact in facts.values()):
        key: _Key = (name, recipes, store, *variables, _exactly(workload, facts))
    else:
        key = (name, recipes, store, *variables, *facts.items())
        # True == 1 as the key of a dictionary, but they are different facts of a workload.
        if any(fact in (0, 1) for fact in facts.values()):
            types = [*map(type, (workload or {}).values())]
    kept, signed = _KEPT.get(key), _SIGNED.get(key)
    if kept is not None and signed is not None and kept[2] == types and signature(signed[1]) == signed[0]:
        best = kept[0]
    else:
        best, files, before = look_up(name, facts, recipes, store)
        signed = before, files
    if len(_KEPT) >= MOST_KEPT:
        forget()
    _KEPT[key], _SIGNED[key] = (best, monotonic() + EVERY_SECONDS, types), signed
    return best


def _check(name: object, recipes: object, store: object) -> None:
    """Raise :class:`autotune.errors.InputError` for arguments of the wrong type."""
    from autotune.errors import InputError, Problem

    if not isinstance(name, str) or not name.strip():
        message = f"the name of a study or kernel is expected, not {name!r:.80}"
        raise InputError(Problem(message, hint="autotune recipes lists those that are known"))
    for what, place in (("recipes", recipes), ("store", store)):
        if place is not None and not isinstance(place, (str, os.PathLike)):
            raise InputError(Problem(f"{what} is of the type {type(place).__name__}", None, "one file"))


def _exactly(workload: object, facts: Mapping[str, Any]) -> bytes | str:
    """A key for a workload that has lists or mappings, in which ``True``, 1 and 1.0 differ.

    :func:`recipe` finds it at once if the workload is made of Python's own types, of which ``marshal`` tells
    all apart; that of others, such as numpy's numbers, only :func:`_answer` does. ``facts``: its plain form.
    """
    if _is_plain(workload):
        return dumps(workload, _WITHOUT_SHARING)  # type: ignore[arg-type]
    import json

    return json.dumps(facts)


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is dict:
        return all(map(_is_plain, value.values()))  # type: ignore[attr-defined]
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    return kind in (int, float, str, bool)
