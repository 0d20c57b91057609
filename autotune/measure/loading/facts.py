"""Whether an objective knows all facts of its workload.

Where the name of a fact is misspelt, the objective would use its default: another workload would be measured
than the one that is recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from autotune.errors import InputError, Problem, nearest


def require_known(names: Iterable[str], known: Collection[str], where: str = "workload") -> None:
    """Raises :class:`InputError` for each of ``names`` that is not ``known``, with the nearest that is."""
    expected = f"one of {', '.join(known)}"
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            Problem(f"unknown fact {name!r} in {where}", None, expected, nearest(name, known))
            for name in unknown
        )
