"""What two searches ended with, held against each other alone: whether they agree to 1 %.

The finale cannot tell: its winner is the best of several by the same readings, and a dozen entrants leave
each a dozen readings, of 1 % at a GPU's limit of power. So the best of either search is read on, with new
processes and fresh inputs, until each has some dozens that nobody was chosen by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.kept_readings import KeptReadings
from autotune.session.finale.rounds import MAX_ROUNDS, Rounds
from autotune.session.ledger import Ledger
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.store.records import Place

SECOND = "autotune, other seed"
"""Guests of the finale with this label are the finalists of the second search."""

SECONDS = 18.0
"""Of reading: some thirty rounds, which tell 0.5 %."""

STARTING_SECONDS = 6.0
"""Of two processes that load PyTorch."""

PRECISION = 0.002
"""Sooner they do not end: as the space file asks for, 0.5 % would be enough."""

MOST = 200
"""Rounds."""

Entrants = Mapping[str, Any]
"""By label: ``time``, ``configuration``, ``also`` (whoever else chose it), ``rounds``."""


def rivals(entrants: Entrants) -> tuple[str, str] | None:
    """The entrants that are the best of the first search and of the second; they may be one and the same."""
    first = best_of(entrants, lambda label: label == DEFAULT or label.startswith("trial "))
    other = best_of(entrants, lambda label: label == DEFAULT or label.startswith(SECOND))
    return None if first is None or other is None else (first, other)


def best_of(entrants: Entrants, belongs: Callable[[str], bool]) -> str | None:
    """The fastest entrant with a label that ``belongs``, or that was the same configuration as one."""
    timed = [own for own, one in entrants.items() if one["time"] and any(map(belongs, [own, *one["also"]]))]
    return min(timed, key=lambda label: entrants[label]["time"]["value"], default=None)


def duel(
    spec: StudySpec, executor: Executor, ledger: Ledger, pair: tuple[str, str], entrants: Entrants, dry: bool
) -> Entrants:
    """The two read in turn: what entrants of a race have, by their labels. Each reading is in the store."""
    contenders = [Contender(label, Configuration(entrants[label]["configuration"])) for label in pair]
    study = ledger.study
    place = Place(study.record.id, ledger.session_id, study.segment.id)
    kept = KeptReadings(ledger.store, place, contenders, len(ledger.strategy.told), {"reason": "duel"})
    limits = Rounds(2, 2, 0.0, 2) if dry else Rounds(8, MOST, SECONDS, 8)
    spec = replace(spec, measure=replace(spec.measure, precision=PRECISION))
    _, outcomes = read_again(spec, executor, contenders, limits, MAX_ROUNDS, kept.keep)
    kept.finish(outcomes, ledger.environment_hash)
    goal = spec.goals[0].name
    return {
        c.label: {
            "configuration": entrants[c.label]["configuration"],
            "status": str(outcomes[c.label].status),
            "message": outcomes[c.label].message,
            "rounds": {
                str(int(r.context["round"])): r.value
                for r in c.readings
                if r.metric == goal and not r.discarded
            },
        }
        for c in contenders
    }
