"""Configurations that compile to the same code: the first is measured, the others share what came of it.

::

    prepared ─▶ nobody had this code     ─▶ measured, and remembered when it ends
                one is at it now         ─▶ waits for it
                one was measured with it ─▶ ends at once, with its metrics

Knobs often leave no trace in the machine code: a prefetch of a loop that is unrolled away, stages of a
pipeline that has one step. To measure those again would only tell the strategy noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from autotune.measure.outcome import CODE, SAME_CODE_AS, Outcome
from autotune.status import Status
from autotune.store.records import TrialRecord

T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    """What came of the trial of this number, for all that have the same code."""

    number: int
    outcome: Outcome

    def shared(self, preparation: Outcome) -> Outcome:
        """The outcome of another trial with the same code: no reading, and only preparing cost it."""
        first = self.outcome
        why = f"same code as trial {self.number}"
        return replace(
            preparation,
            status=first.status,
            metrics=first.metrics,
            readings=(),
            message=why if first.status is Status.OK else f"{why}: {first.message}",
            phase=first.phase,
            exit_code=first.exit_code,
            signal=first.signal,
            peak_memory=first.peak_memory,
            facts={**preparation.facts, SAME_CODE_AS: self.number},
        )


class SameCode(Generic[T]):
    """Remembers by its code what was measured, and who waits for whom. ``T`` is what waits."""

    def __init__(self, known: Mapping[str, Known] | None = None) -> None:
        self._known = dict(known or {})
        self._waiting: dict[str, list[T]] = {}
        """Who waits, by the code that is being measured."""

    def known(self, preparation: Outcome) -> Known | None:
        """What was measured of this code."""
        return self._known.get(code_of(preparation))

    def waits(self, preparation: Outcome, trial: T) -> bool:
        """Whether another trial is at this code; then ``trial`` is kept here until that one ends."""
        code = code_of(preparation)
        if not code:
            return False
        if code in self._waiting:
            self._waiting[code].append(trial)
            return True
        self._waiting[code] = []
        return False

    def ended(self, number: int, outcome: Outcome) -> list[T]:
        """A trial has ended: remember it, and give back who waited for it."""
        code = code_of(outcome)
        if code and outcome.status.finished:
            self._known[code] = Known(number, outcome)
        return self._waiting.pop(code, [])

    def release(self) -> list[T]:
        """Who waits for those that are given up."""
        left = [trial for waiting in self._waiting.values() for trial in waiting]
        self._waiting.clear()
        return left


def known_codes(trials: Iterable[TrialRecord], segment_id: int) -> dict[str, Known]:
    """What was measured of each code while the objective's source was as it is in this segment."""
    return {
        code: Known(trial.number, _outcome(trial))
        for trial in trials
        if trial.segment_id == segment_id and trial.status.finished
        if (code := code_of(trial)) and SAME_CODE_AS not in trial.facts
    }


def _outcome(trial: TrialRecord) -> Outcome:
    return Outcome(
        trial.status,
        trial.metrics,
        message=trial.message,
        phase=trial.phase,
        exit_code=trial.exit_code,
        signal=trial.signal,
        peak_memory=trial.peak_memory,
    )


def code_of(outcome: Outcome | TrialRecord) -> str:
    """The fingerprint of what the trial ran; empty where the objective gives none."""
    code = outcome.facts.get(CODE, "")
    return code if isinstance(code, str) else ""
