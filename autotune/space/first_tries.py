"""Which of the configurations that a study wants tried first its space has, on this machine and workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.errors import InputError
from autotune.space.configuration import Configuration, Value
from autotune.space.feasible_set.configurations import Configurations


def first_tries(space: Configurations, first: Sequence[Mapping[str, Value]]) -> tuple[Configuration, ...]:
    """Those that are feasible, in their order, with the defaults of what they leave out."""
    return tuple(made for values in first if isinstance(made := _made(space, values, ""), Configuration))


def passed_over(space: Configurations, first: Sequence[Mapping[str, Value]]) -> list[str]:
    """Why the others are not tried, a sentence each."""
    made = (_made(space, values, f"search.first[{place}]") for place, values in enumerate(first))
    return [f"{why}: it is not tried" for why in made if isinstance(why, str)]


def _made(space: Configurations, values: Mapping[str, Value], title: str) -> Configuration | str:
    """The configuration, or why there is none."""
    try:
        configuration = space.configuration(values)
    except InputError as error:
        return f"{title}: {error.problems[0].message}"
    for problem in space.refusals(configuration, title):
        return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return configuration
