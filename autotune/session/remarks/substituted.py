"""Whether objectives of several processes lacked links or devices that their workload asks for."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.measure.facts import MISSING, NETWORK, NOT_SHAPED


def say_substituted(trials: Mapping[int, Mapping[str, object]]) -> str:
    """What to tell the user if trials, facts by number, had other links or devices; else empty."""
    for number, facts in sorted(trials.items()):
        missing = facts.get(MISSING, ())
        devices = list(map(str, missing)) if isinstance(missing, (list, tuple)) else []
        links = [f"no links ({facts[NOT_SHAPED]})"] if NOT_SHAPED in facts else []
        if NETWORK in facts and (links or devices):
            return (
                f"trial {number} did not have the devices and links that the workload asks for:"
                f" {'; '.join([*links, *devices])}. Results hold for those that it had;"
                " autotune doctor says what is needed"
            )
    return ""
