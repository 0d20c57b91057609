"""What a word on the command line means: a trial, a study or a recipe."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    from autotune.hook.recipes.recipe import Recipe
    from autotune.store.records import StudyRecord, TrialRecord
    from autotune.store.store import Store

TRIAL = "the trial's id, STUDY:NUMBER, or its number with --study"

MOST_DIGITS = 18
"""The most digits of a trial's number: larger ones do not fit into a database's integers."""

RECIPE = "recipe:"


def is_trial(word: str) -> bool:
    """Whether ``word`` can only mean a trial: a number, or ``STUDY:NUMBER``."""
    return re.fullmatch(r"(.*:)?\d+", word, re.DOTALL) is not None


def find_trial(store: Store, word: str, study: str | None) -> TrialRecord:
    """The trial that ``word`` means: an id, ``STUDY:NUMBER``, or a number in ``study``.

    ``word`` and ``study`` may both name the study if they name the same one. Raises :class:`InputError` if
    there is no such trial.
    """
    name, colon, number = word.rpartition(":")
    if not number.isascii() or not number.isdigit():
        raise InputError(Problem(f"{word!r} is no trial", expected=TRIAL))
    if len(number) > MOST_DIGITS:
        raise InputError(Problem(f"there is no trial with a number of {len(number):,} digits"))
    if not colon and study is None:
        return _by_id(store, int(number))
    names = [said for said in (name if colon else None, study) if said is not None]
    record = _one_study(store, names, word)
    found = store.numbered(record.id, [int(number)])
    if not found:
        raise InputError(f"study {record.label} has no trial {number}")
    return found[0]


def _by_id(store: Store, number: int) -> TrialRecord:
    """The trial of an id. The error says how to name one by its number in a study, which may be meant."""
    try:
        return store.trial(number)
    except InputError as error:
        studies = store.studies()
        newest = studies[-1].label if studies else "STUDY"
        hint = (
            f"a trial's number, as listings show it, goes with its study: {newest}:{number},"
            f" or {number} --study {newest}"
        )
        raise InputError(Problem(str(error), hint=hint)) from error


def _one_study(store: Store, names: list[str], word: str) -> StudyRecord:
    """The study that all of ``names`` mean: a name alone agrees with each study of that name."""
    records = [store.study(name) for name in names]
    exact = [record for name, record in zip(names, records, strict=True) if name != record.name]
    found = (exact or records)[0]
    for name, record in zip(names, records, strict=True):
        if record.id != found.id and name != found.name:
            message = f"{word!r} is a trial of {records[0].label}, and --study says {records[-1].label}"
            hint = "leave --study out, or give the trial's number alone"
            raise InputError(Problem(message, None, TRIAL, hint))
    return found


def find_recipes(word: str, store: str | None) -> tuple[Recipe, ...]:
    """The recipes that ``recipe:NAME`` means in a store.

    Raises :class:`InputError` where there is none.
    """
    from autotune.hook.recipes.preference import preferred
    from autotune.hook.recipes.stored import known_in

    name = word.removeprefix(RECIPE)
    found = tuple(preferred(known_in(store, name).recipes))
    if not found:
        raise InputError(
            Problem(f"the store knows no recipe of {name!r}", hint="autotune recipes lists them")
        )
    return found
