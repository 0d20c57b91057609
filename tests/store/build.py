"""Studies, trials and outcomes for the tests of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewStudy, NewTrial, Place, Purpose, StudyRecord, TrialRecord
from autotune.store.store import Store


class Clock:
    """Time that stands still until it is told to go on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def new_study(name: str = "gemm", **changed: Any) -> NewStudy:
    fields: dict[str, Any] = {
        "name": name,
        "key": "key0",
        "spec_text": "autotune: 1\nname: gemm\n",
        "document": {"identity": {"machine": "m"}, "space": {"knobs": []}},
        "space_hash": "space0",
        "objective": "python gemm.py:Gemm",
        "workload": {"m": 960, "dtype": "float32"},
        "metrics": [{"name": "time", "goal": "minimize", "unit": "s"}],
        "machine_key": "machine0",
        "environment_hash": "environment0",
    }
    return NewStudy(**(fields | changed))


@dataclass
class Bench:
    """A study with a session and a segment, ready for trials."""

    store: Store
    study: StudyRecord
    session: int
    segment: int

    @property
    def place(self) -> Place:
        return Place(self.study.id, self.session, self.segment)

    def propose(self, *tiles: int, purpose: Purpose = "search") -> list[TrialRecord | None]:
        new = [new_trial(tile, purpose) for tile in tiles]
        return self.store.propose(self.place, new)

    def trial(self, tile: int, purpose: Purpose = "search") -> TrialRecord:
        [trial] = self.propose(tile, purpose=purpose)
        assert trial is not None
        return trial


def bench(store: Store, name: str = "gemm") -> Bench:
    study = store.create_study(new_study(name))
    session = store.open_session(study.id, {"seed": 0}, "environment0", 4711, "host0")
    segment = store.open_segment(study.id, {"commit": "c0"}, {"gemm.c": b"int main;"}, "the study begins")
    return Bench(store, study, session, segment.id)


def results(store: Store, study_id: int) -> list[TrialRecord]:
    """The trials that have a result, in the order of finishing."""
    return sorted((t for t in store.trials(study_id) if t.told is not None), key=lambda t: t.told or 0)


def configuration(tile: int) -> Configuration:
    return Configuration({"tile": tile, "layout": "row", "order": ("i", "j"), "place": {"embed": 0}})


def new_trial(tile: int, purpose: Purpose = "search") -> NewTrial:
    reason = {"strategy": "random", "kind": "random", "parent": None}
    return NewTrial(configuration(tile), purpose, "random", reason, ask=3, knew=2)


def outcome(status: Status = Status.OK, value: float = 0.5, n: int = 3, **changed: Any) -> Outcome:
    metrics = {"time": Estimate(value, value * 0.9, value * 1.1, n, 0.01)} if status is Status.OK else {}
    readings = tuple(Reading("time", value + i / 1000, i * 0.1, "", {"pressure": 0.25}) for i in range(n))
    fields: dict[str, Any] = {
        "status": status,
        "metrics": metrics,
        "readings": readings,
        "phases": {"prepare": 0.25, "measure": 0.5},
        "message": "" if status is Status.OK else f"it ended as {status}",
        "worker": "worker-1",
    }
    return Outcome(**(fields | changed))
