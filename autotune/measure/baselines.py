"""The baselines that an objective names, checked: plain texts, each with a name of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from autotune.errors import InputError, Problem
from autotune.measure.objective import Baseline, Objective
from autotune.measure.phases.raised import describe

_OURS = re.compile(r"the default|trial \d+")
"""The names that a finale gives to configurations."""


def baselines_of(objective: Objective) -> tuple[Baseline, ...]:
    """The baselines of ``objective``; :class:`InputError` where making them fails or a name is ambiguous."""
    title = f"{type(objective).__name__}.baselines()"
    try:
        found = tuple(
            Baseline(str(b.name), str(b.description), {str(k): str(v) for k, v in b.environment.items()})
            for b in objective.baselines()
        )
    except Exception as error:
        raise InputError(Problem(f"{title} failed: {describe(error)}")) from error
    if problems := [Problem(f"{title}: {what}", expected=expected) for what, expected in _wrong(found)]:
        raise InputError(problems)
    return found


def _wrong(found: Sequence[Baseline]) -> Iterator[tuple[str, str]]:
    """What is wrong, and what was expected."""
    for name, count in Counter(baseline.name for baseline in found).items():
        if count > 1:
            yield f"{count} baselines are called {name!r}", "a name of its own for each"
        if _OURS.fullmatch(name):
            yield f"a baseline cannot be called {name!r}", "a name that no configuration has in a finale"
    for baseline in found:
        for key, value in baseline.environment.items():
            if not key or "=" in key or "\0" in key + value:
                what = f"the environment of the baseline {baseline.name!r} has {key!r}: {value!r:.60}"
                yield what, "a name without '=', and no NUL in either"
