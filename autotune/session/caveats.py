"""Remarks on an answer, or on why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.errors import shorten_middle
from autotune.measure.outcome import Estimate
from autotune.session.finale.contender import DEFAULT
from autotune.session.result import EXHAUSTED
from autotune.session.same_failure import MISTAKEN
from autotune.space.spec import MetricSpec, is_speed
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord, VerdictRecord

MOST_OF_A_MESSAGE = 240
"""The most characters of a trial's message in a remark."""

FINALIST = "trial "
"""How the labels of finalists that are trials of the search begin."""


def nothing_found(statuses: Mapping[str, int], reason: str, changed: bool) -> str:
    """Why there is no answer. ``changed``: the study's space has been changed since it began."""
    if reason == EXHAUSTED and not statuses:
        return "no configuration satisfies the constraints; autotune check says what each removes"
    if reason == MISTAKEN:
        return "all trials failed by the same mistake in the code, or because the same thing is missing"
    ended = any(Status(status).finished for status in statuses)
    if changed and (others := statuses.get(Status.OK, 0)):
        return f"no configuration of the space as it is now succeeded; outside it {others} did"
    return "no configuration succeeded" if ended else "no trial has finished"


def commonest_failure(trials: Sequence[TrialRecord]) -> str:
    """The commonest failure (``3 of 4 ended as crashed, as trial 0: ValueError: never``); else empty.

    Where nothing failed, it is why trials were stopped early, all while they waited for others of their
    bracket, or lost: on a device that is always too hot, all are.
    """
    failed = [trial for trial in trials if trial.status.failed]
    failed = failed or [trial for trial in trials if trial.status in (Status.PRUNED, Status.LOST)]
    if not failed:
        return ""
    status, count = Counter(trial.status for trial in failed).most_common(1)[0]
    first = next((t for t in failed if t.status is status and t.message.strip()), None)
    said = f"{count} of {len(trials)} ended as {status}"
    if first is None:
        return said
    return f"{said}, as trial {first.number}: {shorten_middle(first.message, MOST_OF_A_MESSAGE)}"


def fallen(verdicts: Sequence[VerdictRecord]) -> str:
    """Why the last finale has no winner: which finalist failed, or that each has only one reading.

    Empty if it has a winner, or there was no finale.
    """
    document = verdicts[-1].document if verdicts else {}
    if not document or document.get("configuration") is not None:
        return ""
    failed = {label: one for label, one in document.get("outcomes", {}).items() if one[0] != Status.OK}
    finalists = [label for label in failed if label.startswith(FINALIST)]
    finalists += [DEFAULT] if DEFAULT in failed else []  # which may have been the only one
    label = finalists[0] if finalists else ""
    status, message = failed.get(label, ("", ""))
    why = f": {label} ended as {status}{_in_brackets(message)}" if label else ""
    return f"{document.get('remark', '')}{why}"


def fell(verdict: Mapping[str, Any]) -> str:
    """Who failed in a finale that has a winner nevertheless: finalists, the default; empty if none did."""
    outcomes = verdict.get("outcomes", {})
    finalists = {label: one for label, one in outcomes.items() if label.startswith(FINALIST)}
    failed = [label for label, one in finalists.items() if one[0] != Status.OK]
    said = []
    if len(failed) == 1:
        said.append(_fell(f"{failed[0]}, a finalist,", *outcomes[failed[0]]))
    elif failed:
        status, message = outcomes[failed[0]]
        why = f"{failed[0]} as {status}{_in_brackets(message)}"
        said.append(f"{len(failed)} of {len(finalists)} finalists failed when measured again: {why}")
    if outcomes.get(DEFAULT, (Status.OK, ""))[0] != Status.OK:
        said.append(_fell(DEFAULT, *outcomes[DEFAULT]))
    return "; ".join(said)


def _fell(who: str, status: str, message: str) -> str:
    return f"{who} ended as {status} when it was measured again{_in_brackets(message)}"


def _in_brackets(message: str) -> str:
    return f" ({shorten_middle(message, MOST_OF_A_MESSAGE)})" if message else ""


def say_further_finales(verdicts: Sequence[Mapping[str, Any]], confidence: float) -> str:
    """What to tell the user of the last of a study's ``verdicts``, if it is a win after others; else empty.

    ``confidence`` is that of verdicts that do not say their own. A finale is wrong on either side of its
    interval equally often. However they hang together, one of several says that there is a gain where there
    is none at most as often as all of them together (Boole).
    """
    compared = [one for one in verdicts if one.get("speedup") or one.get("gain")]
    if len(compared) < 2 or compared[-1] is not verdicts[-1] or compared[-1].get("is_default"):
        return ""
    chance = min(sum((1.0 - one.get("confidence", confidence)) / 2.0 for one in compared), 1.0)
    return (
        f"the finalists of this study were measured again {len(compared)} times, and each time was another"
        f" chance of luck: of studies without any gain, up to {100 * chance:.3g} % would show one by now"
    )


def unchecked(study: StudyRecord, measured: Mapping[str, Estimate]) -> str:
    """Which bounds were not checked because the best configuration, of which ``measured`` is all that is
    known, reported no value: a misspelt name must not go unnoticed."""
    bounded = [
        m["name"] for m in study.metrics if m.get("at_most") is not None or m.get("at_least") is not None
    ]
    missing = [name for name in bounded if name not in measured]
    if not missing:
        return ""
    return f"no run of this configuration reported {', '.join(missing)}, so its bound was not checked"


def noiseless(metric: MetricSpec, read: Sequence[Estimate]) -> str:
    """A remark on a speed of which all readings are the same; ``read``: what the finale says of the winner
    and the default."""
    if not read or not is_speed(metric.goal, metric.unit):
        return ""
    if any(one.n < 3 or one.low != one.high for one in read):
        return ""
    return (
        f"each reading of {metric.name} was the same, as no clock reads: it is computed, or rounded too far"
    )


def doubtful(study: StudyRecord, measured: Mapping[str, Estimate]) -> str:
    """Which bounds may be violated: they lie inside the interval of the readings."""
    said = []
    for metric in study.metrics:
        found, at_most, at_least = measured.get(metric["name"]), metric.get("at_most"), metric.get("at_least")
        within_most = found is not None and at_most is not None and found.value <= at_most < found.high
        within_least = found is not None and at_least is not None and found.low < at_least <= found.value
        if found is not None and (within_most or within_least):
            said.append(
                f"{metric['name']} may be past its bound of {at_most if within_most else at_least:g}:"
                f" {found.n} readings place it between {found.low:.4g} and {found.high:.4g}"
            )
    return "; ".join(said)
