"""Whether trials had fewer cores than threads; then no knob for the number of threads can help."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.measure.facts import READY_THREADS


def say_oversubscribed(trials: Mapping[int, Mapping[str, object]]) -> str:
    """What to tell the user if trials had more threads ready to run than cores; else empty.

    ``trials`` are facts by the trial's number. A trial that was not pinned had all cores, and is ignored.
    """
    found = {n: facts for n, facts in trials.items() if READY_THREADS in facts and _cores(facts)}
    if not found:
        return ""
    first = min(found)
    cores = _cores(found[first])
    others = f" (one of {len(found)} such trials)" if len(found) > 1 else ""
    return (
        f"trial {first}{others} had {found[first][READY_THREADS]} threads ready to run on the"
        f" {cores} {'core' if cores == 1 else 'cores'} that it was measured on, where more threads cannot"
        " help: measure: {cores: N} in the space file gives it N, 0 all"
    )


def _cores(facts: Mapping[str, object]) -> int:
    cores = facts.get("cores")
    return len(cores) if isinstance(cores, list) else 0
