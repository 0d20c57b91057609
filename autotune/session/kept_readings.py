"""What contenders are read in rounds is written down while it goes: a finale of trainings takes an hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from autotune.measure.clocks import monotonic
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Outcome
from autotune.session.contender import Contender
from autotune.space.configuration import Configuration
from autotune.store.records import NewTrial
from autotune.store.store import Store

EVERY_SECONDS = 1.0
"""Short rounds are written together: a transaction takes some milliseconds."""


@dataclass(frozen=True)
class Place:
    """Where trials are written: ids of the study, the session and the segment."""

    study: int
    session: int
    segment: int


class KeptReadings:
    """The trials of contenders, of their own purpose: nothing measured is lost."""

    def __init__(
        self,
        store: Store,
        place: Place,
        contenders: Sequence[Contender],
        knew: int,
        said: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Write the trials down, before any of them is read. ``said`` stands in the reason of each, beside
        its label.
        """
        self._store = store
        self._contenders = contenders
        new = [
            NewTrial(
                configuration=c.configuration or Configuration({}),
                purpose=c.purpose,
                strategy="finale",
                reason={"kind": "re-measurement", "label": c.label}
                | ({"baseline": asdict(c.what)} if isinstance(c.what, Baseline) else {})
                | dict(said),
                ask=-1,
                knew=knew,
            )
            for c in contenders
        ]
        written = store.propose(place.study, place.session, place.segment, new)
        self._trials = [trial.id for trial in written if trial is not None]
        self._kept = [0] * len(contenders)
        self._at = monotonic()

    def keep(self) -> None:
        """Write down what was read since the last time, if that is some while ago."""
        if monotonic() - self._at < EVERY_SECONDS:
            return
        read = zip(self._trials, self._kept, self._contenders, strict=True)
        self._store.keep_readings([(trial, kept, c.readings[kept:]) for trial, kept, c in read])
        self._kept = [len(c.readings) for c in self._contenders]
        self._at = monotonic()

    def finish(self, outcomes: Mapping[str, Outcome], environment_hash: str = "") -> None:
        """Write down what each came to, by its label."""
        for trial, kept, contender in zip(self._trials, self._kept, self._contenders, strict=True):
            outcome = outcomes[contender.label]
            rest = replace(outcome, readings=outcome.readings[kept:])
            self._store.finish(trial, rest, environment_hash)
