"""Two defaults of one knob: without a search two values, under one a single value for both."""

from __future__ import annotations

from autotune.hook.runs.link import warn


def say_that_they_differ(name: str, first: object, other: object, said: set[str]) -> None:
    """Warn where ``name`` was asked for with other defaults; once, by what was ``said``.

    What a script does by itself is then no configuration of its space: the answer of a search, a speed-up
    over the default, would be one over something that never ran.
    """
    if name in said or _alike(first, other):
        return
    said.add(name)
    warn(
        f"the knob {name!r} is asked for with the defaults {first!r:.60} and {other!r:.60}:"
        " under a search both have the same value; ask once, or with the same default"
    )


def _alike(one: object, other: object) -> bool:
    """Whether they are the same; also where nobody can tell, as of arrays."""
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):
        return True
