"""How long a trial takes to its end, by when its last run reported. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autotune.measure.outcome import Report


@dataclass(frozen=True)
class Pace:
    """The first and the last report of a run, which began after step ``done``: 0, or that of a checkpoint."""

    first: Report
    last: Report
    done: int = 0

    @classmethod
    def begun(cls, report: Report, stood: int) -> Pace:
        """That of a run whose first report this is; its trial had been paused after step ``stood``."""
        return cls(report, report, stood if report.step > stood else 0)

    def heard(self, report: Report) -> Pace:
        return replace(self, last=report)

    def seconds_to(self, end: int) -> float:
        """About how long another run of the trial takes to step ``end``.

        It goes on from a checkpoint if the last one did, and otherwise from the first step. Of a run with a
        single report, what it took to begin counts with its steps.
        """
        steps = self.last.step - self.first.step
        if steps > 0:
            pace = (self.last.at - self.first.at) / steps
        else:
            pace = self.last.at / max(self.last.step - self.done, 1)
        start = max(self.first.at - pace * (self.first.step - self.done), 0.0)
        begin = self.last.step if self.done else 0
        return start + pace * (end - begin)
