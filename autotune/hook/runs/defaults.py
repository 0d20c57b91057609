"""A script that asks for a knob twice with different defaults, of which a search can set only one value."""

from __future__ import annotations

from autotune.hook.runs.link import warn


def say_that_they_differ(name: str, first: object, other: object, said: set[str]) -> None:
    """Warn if the defaults ``first`` and ``other`` of the knob differ; once for each name, kept in ``said``.

    A script with two defaults for one knob runs, without a search, what is no configuration of its space.
    So a speed-up over "the default" would be relative to something that never runs.
    """
    if name in said or _alike(first, other):
        return
    said.add(name)
    warn(
        f"the knob {name!r} is asked for with the defaults {first!r:.60} and {other!r:.60}:"
        " under a search both have the same value; ask once, or with the same default"
    )


def _alike(one: object, other: object) -> bool:
    """Whether two defaults are equal; also true if that cannot be decided, as for arrays."""
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):
        return True
