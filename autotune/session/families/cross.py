"""The cross measurement of a family: what won for one workload, measured for every workload.

For each workload, the default and the distinct winners of all workloads are read interleaved, as in any
finale, and stored as trials of that workload's study. A configuration that fails for a workload, or that
the constraints forbid there, has no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.session.answers import is_settled, stands
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.finale import remeasure, succeeded
from autotune.session.finale.rounds import ReadingSeconds
from autotune.session.ledger import Ledger
from autotune.session.progress import Progress
from autotune.space.configuration import Configuration, plain
from autotune.space.space import Space
from autotune.store.records import ACROSS, StudyRecord, VerdictRecord
from autotune.store.store import Store


@dataclass(frozen=True)
class Candidate:
    """A configuration that won the search of one workload or of several."""

    configuration: Configuration
    found_by: tuple[int, ...]
    """The ids of these workloads' studies."""

    def to_document(self, *, allowed: bool) -> dict[str, Any]:
        return {
            "hash": self.configuration.hash,
            "configuration": plain(self.configuration),
            "found_by": list(self.found_by),
            "allowed": allowed,
        }


def own_verdict(store: Store, study: StudyRecord) -> VerdictRecord | None:
    """The verdict of the last finale of the study's own search."""
    return next(reversed(_own_verdicts(store, study)), None)


def _own_verdicts(store: Store, study: StudyRecord) -> list[VerdictRecord]:
    return [verdict for verdict in store.verdicts(study.id) if not verdict.across]


def own_winner(store: Store, study: StudyRecord) -> Configuration | None:
    """The winner of the study's own search; ``None`` if there is none, or the space no longer contains it."""
    verdict = own_verdict(store, study)
    if verdict is None or not stands(store, study, verdict):
        return None
    return Configuration(verdict.document["configuration"])


def own_winners(store: Store, study: StudyRecord) -> set[Configuration]:
    """All winners of finales of the study's own search.

    They are not taken from ``found_by`` in cross measurements, which are ids of studies: these change when
    studies are imported into another store.
    """
    won = (verdict.document.get("configuration") for verdict in _own_verdicts(store, study))
    return {Configuration(configuration) for configuration in won if configuration is not None}


def candidates(store: Store, studies: Sequence[StudyRecord]) -> tuple[Candidate, ...]:
    """The distinct winners of the studies, in their order."""
    found: dict[Configuration, list[int]] = {}
    for study in studies:
        winner = own_winner(store, study)
        if winner is not None:
            found.setdefault(winner, []).append(study.id)
    return tuple(Candidate(configuration, tuple(by)) for configuration, by in found.items())


def is_current(store: Store, study: StudyRecord, space: Space, wanted: Sequence[Candidate]) -> bool:
    """Whether the study's last verdict is of a cross measurement that included all of ``wanted``."""
    verdicts = store.verdicts(study.id)
    if not verdicts or not verdicts[-1].across or not is_settled(store, verdicts[-1], space):
        return False
    return {one.configuration.hash for one in wanted} <= set(columns_of(verdicts[-1]))


def columns_of(verdict: VerdictRecord) -> dict[str, dict[str, Any]]:
    """The configurations in a cross measurement, by hash, as :meth:`Candidate.to_document` writes them."""
    return {one["hash"]: one for one in verdict.document.get(ACROSS, ())}


def measure_across(
    executor: Executor, ledger: Ledger, progress: Progress, wanted: Sequence[Candidate]
) -> None:
    """Measure the default and ``wanted`` for the ledger's workload; store the readings and the verdict."""
    spec = ledger.spec
    contenders: list[Contender] = []
    default = spec.space.feasible_default()
    if default is not None:
        contenders.append(Contender(DEFAULT, default))
    allowed = [one for one in wanted if one.configuration in spec.space]
    for one in allowed:
        if one.configuration != default:
            labels = " and ".join(f"#{study}" for study in one.found_by)
            contenders.append(Contender(f"winner of {labels}", one.configuration))
    said = {
        "reason": "measured across workloads",
        ACROSS: [one.to_document(allowed=one in allowed) for one in wanted],
    }
    seconds = ReadingSeconds.of(spec, succeeded(ledger))
    remeasure(executor, ledger, progress, contenders, seconds, said)
