"""Writing down the readings of contenders while a finale runs, which takes an hour for trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType

from autotune.measure.clocks import monotonic
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Outcome
from autotune.session.finale.contender import Contender
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewTrial, Place, Purpose, TrialRecord
from autotune.store.store import LEASE_SECONDS, Store

EVERY_SECONDS = 1.0
"""Seconds between two writes, so that short rounds are written together: a transaction takes milliseconds."""


def take_up(store: Store, place: Place, contenders: Sequence[Contender]) -> int:
    """Give ``contenders`` their readings of a finale that was cut short; returns how many there are.

    These are the readings of all complete rounds and of the one that was begun. Readings without a round,
    which a lost process had begun, are left out. So are runs of fresh processes, which are for a winner
    that has to be found first.
    """
    cut = _cut_short(store, place, contenders)
    if not cut:
        return 0
    read = {
        label: [r for r in store.readings(trial.id) if "round" in r.context and "process" not in r.context]
        for label, trial in cut.items()
    }
    begun = min(readings[-1].context["round"] + 1 if readings else 0 for readings in read.values())
    for contender in contenders:
        for reading in read[contender.label]:
            if reading.context["round"] <= begun:
                counted = "" if reading.discarded == Status.LOST else reading.discarded
                context = {**reading.context, "kept_of": cut[contender.label].number}
                contender.readings.append(replace(reading, discarded=counted, context=context))
    return sum(len(contender.readings) for contender in contenders)


def _cut_short(store: Store, place: Place, contenders: Sequence[Contender]) -> dict[str, TrialRecord]:
    """The trials, by label, of the last finale if it was cut short.

    Empty if it did not have exactly these contenders, or if the source or the environment has changed.
    """
    purposes: tuple[Purpose, ...] = ("default", "final", "baseline")
    lost = [t for p in purposes for t in store.trials(place.study, purpose=p, status=Status.LOST)]
    if not lost:
        return {}
    last = max(trial.session_id for trial in lost)
    verdicts = store.verdicts(place.study)
    if verdicts and verdicts[-1].session_id >= last:
        return {}
    environments = {session.id: session.environment_hash for session in store.sessions(place.study)}
    if environments[last] != environments[place.session]:
        return {}
    cut = {str(t.reason["label"]): t for t in lost if t.session_id == last and t.segment_id == place.segment}
    asked = {contender.label: contender.configuration or Configuration({}) for contender in contenders}
    same = {label: trial.configuration for label, trial in cut.items()} == asked
    return cut if same else {}


class KeptReadings:
    """Keeps the readings of contenders in the store, as trials with a purpose of their own."""

    def __init__(
        self,
        store: Store,
        place: Place,
        contenders: Sequence[Contender],
        knew: int,
        said: Mapping[str, object] = MappingProxyType({}),
        longest_silence: float = 0.0,
    ) -> None:
        """Write the trials to the store before any is read. ``said`` is added to the reason of each.

        ``longest_silence``: the seconds that may pass between two calls of :meth:`keep`. The leases of the
        trials last for so much longer than usual: else a search that cannot see this process would take them
        for lost during a long reading, and go on with a finale that is still under way.
        """
        self._store = store
        self._lease_seconds = LEASE_SECONDS + longest_silence
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
        written = store.propose(place, new, lease_seconds=self._lease_seconds)
        self._trials = [trial.id for trial in written if trial is not None]
        self._kept = [0] * len(contenders)
        self._at = monotonic()

    def keep(self) -> None:
        """Write the new readings to the store, if the last time was :data:`EVERY_SECONDS` ago."""
        if monotonic() - self._at < EVERY_SECONDS:
            return
        read = zip(self._trials, self._kept, self._contenders, strict=True)
        new = [(trial, kept, c.readings[kept:]) for trial, kept, c in read]
        self._store.keep_readings(new, self._lease_seconds)
        self._kept = [len(c.readings) for c in self._contenders]
        self._at = monotonic()

    def finish(self, outcomes: Mapping[str, Outcome], environment_hash: str) -> None:
        """Write the outcomes, given by label, to the store, and in which environment they were measured."""
        for trial, kept, contender in zip(self._trials, self._kept, self._contenders, strict=True):
            outcome = outcomes[contender.label]
            rest = replace(outcome, readings=outcome.readings[kept:])
            self._store.finish(trial, rest, environment_hash)
