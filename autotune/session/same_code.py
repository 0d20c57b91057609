"""Configurations that compile to the same code: the first is measured, the others share its outcome.

::

    prepared ─▶ new code             ─▶ measured, and remembered when it ends
                being measured now   ─▶ waits for that trial
                measured before      ─▶ ends at once, with that trial's metrics

Knobs often leave no trace in the machine code: a prefetch of a loop that is unrolled away, stages of a
pipeline that has one step. Measuring such code again would only give the strategy noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from autotune.measure.facts import CODE, SAME_CODE_AS
from autotune.measure.outcome import Outcome
from autotune.status import Status
from autotune.store.records import TrialRecord

T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    """The outcome of trial ``number``, which all trials with the same code share."""

    number: int
    outcome: Outcome

    def shared(self, preparation: Outcome) -> Outcome:
        """The outcome of another trial with the same code: without readings, and with its own preparation."""
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
    """Remembers which code was measured and which trials wait for it; ``T`` is the type of these trials."""

    def __init__(self, known: Mapping[str, Known] | None = None) -> None:
        self._known = dict(known or {})
        self._waiting: dict[str, list[T]] = {}
        """By the code that is being measured: the trials that wait for it."""

    def known(self, preparation: Outcome) -> Known | None:
        """The outcome of this code, if it was measured."""
        return self._known.get(code_of(preparation))

    def waits(self, preparation: Outcome, trial: T) -> bool:
        """Whether another trial with this code is being measured; ``trial`` then waits here until it ends."""
        code = code_of(preparation)
        if not code:
            return False
        if code in self._waiting:
            self._waiting[code].append(trial)
            return True
        self._waiting[code] = []
        return False

    def ended(self, number: int, outcome: Outcome) -> list[T]:
        """Remember a trial that has ended; returns the trials that waited for it."""
        code = code_of(outcome)
        if code and outcome.status.finished:
            self._known[code] = Known(number, outcome)
        return self._waiting.pop(code, [])

    def release(self) -> list[T]:
        """All trials that wait; called when the trials that they wait for are given up."""
        left = [trial for waiting in self._waiting.values() for trial in waiting]
        self._waiting.clear()
        return left


def known_codes(trials: Iterable[TrialRecord], segment_id: int) -> dict[str, Known]:
    """By code: what was measured with the objective's source of this segment."""
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
    """The fingerprint of the code that the trial ran; empty if the objective gives none."""
    code = outcome.facts.get(CODE, "")
    return code if isinstance(code, str) else ""
