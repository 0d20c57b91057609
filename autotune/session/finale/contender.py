"""Who is measured again in a finale, a replay or a verification, with the readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.measure.objective import Baseline
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.session.execution.executor import Entrant
from autotune.space.configuration import Configuration
from autotune.store.records import Purpose

DEFAULT = "the default"


@dataclass
class Contender:
    """A configuration of the space or a baseline, and what was read of it."""

    label: str
    what: Configuration | Baseline
    entrant: Entrant | None = None
    finalist: bool = False
    """Whether it is one of the best trials of the search."""
    entering: float = 0.0
    """Seconds from its start until it could be read; the mean over all contenders, which start together."""
    checked: Mapping[str, Estimate] = field(default_factory=dict)
    """The metrics that its check returned."""
    failure: Outcome | None = None
    readings: list[Reading] = field(default_factory=list)

    @property
    def configuration(self) -> Configuration | None:
        return self.what if isinstance(self.what, Configuration) else None

    def values(self, metric: str) -> list[float]:
        return [r.value for r in self.readings if r.metric == metric and not r.discarded]

    @property
    def rounds(self) -> int:
        """In how many rounds it was read."""
        return int(self.readings[-1].context["round"]) + 1 if self.readings else 0

    @property
    def purpose(self) -> Purpose:
        """The purpose of the trial that keeps its readings."""
        if self.configuration is None:
            return "baseline"
        return "default" if self.label == DEFAULT else "final"
