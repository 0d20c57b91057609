"""The configurations of ``search.first`` that a space allows here, and why it does not allow the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.errors import InputError
from autotune.space.configuration import Configuration, Value
from autotune.space.feasible_set.configurations import Configurations


def first_tries(space: Configurations, first: Sequence[Mapping[str, Value]]) -> tuple[Configuration, ...]:
    """The feasible ones among ``first``, in the same order; a knob that is left out has its default."""
    return tuple(made for values in first if isinstance(made := _made(space, values, ""), Configuration))


def passed_over(space: Configurations, first: Sequence[Mapping[str, Value]]) -> list[str]:
    """For each of the others, a sentence that says why it is not tried."""
    made = (_made(space, values, f"search.first[{place}]") for place, values in enumerate(first))
    return [f"{why}: it is not tried" for why in made if isinstance(why, str)]


def _made(space: Configurations, values: Mapping[str, Value], title: str) -> Configuration | str:
    """The configuration, or why it is not feasible."""
    try:
        configuration = space.configuration(values)
    except InputError as error:
        return f"{title}: {error.problems[0].message}"
    for problem in space.refusals(configuration, title):
        return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return configuration
