"""Which configurations a store knows to fail for a workload on this device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.hook.recipes.case import DEVICE, TYPES, Case
from autotune.hook.recipes.this_device import device_of
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.databases.opening import EmptyStoreError
from autotune.store.records import StudyRecord
from autotune.store.store import Store


@dataclass(frozen=True)
class Failures:
    """How configurations failed for one workload on this device."""

    found: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By the hashes of the configuration and of the objective's source: ``crashed in wl#3:12``."""

    def of(self, configuration: Mapping[str, Any], source: str = "") -> str:
        """How it failed; empty if it is not known to fail with the objective's source of hash ``source``.

        With another source it may work. An empty ``source`` means any.
        """
        digest = Configuration(configuration).hash
        known = {own: said for (one, own), said in self.found.items() if one == digest}
        return known.get(source, "") if source else next(iter(known.values()), "")


def failures_in(url: str | None, name: str, case: Case, devices: Sequence[str]) -> Failures:
    """What always failed for ``case`` in the studies called ``name`` on these devices.

    Raises :class:`autotune.errors.AutotuneError` if there is a store and it cannot be read.
    """
    try:
        with Store.open(url, readonly=True) as store:
            own = [study for study in store.studies(name) if _is_for(store, study, case, devices)]
            ended = [one for study in own for one in _ended(store, study)]
    except EmptyStoreError:
        return Failures()
    worked = {key for key, status, _ in ended if status is Status.OK}
    return Failures({key: said for key, status, said in ended if status.failed and key not in worked})


def _is_for(store: Store, study: StudyRecord, case: Case, devices: Sequence[str]) -> bool:
    values = {fact: value for fact, value in study.workload.items() if fact not in (DEVICE, TYPES)}
    if study.replayed or case.distance(Case(values, study.workload.get(TYPES) or {})) != 0.0:
        return False
    if named := study.workload.get(DEVICE):
        return named in devices
    on_gpu = bool((study.document.get("measure") or {}).get("gpus"))
    return device_of(store.environment(study.environment_hash), on_gpu) in devices


def _ended(store: Store, study: StudyRecord) -> Iterator[tuple[tuple[str, str], Status, str]]:
    sources: dict[int, str] = {}
    for trial in store.brief_trials(study.id):
        if trial.segment_id not in sources:
            frozen = store.segment(trial.segment_id).document
            sources[trial.segment_id] = str(frozen.get("source_hash", ""))
        said = f"{trial.status} in {study.label}:{trial.number}"
        yield (trial.hash, sources[trial.segment_id]), Status(trial.status), said
