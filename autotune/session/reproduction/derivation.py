"""Deriving the proposals of a stored study again: a new strategy is told the same, asked, and compared.

A strategy is a pure function of the problem, the seed and what it was told. The store has all three: the
settings of each session, and for each ask how much of the study was known (:class:`NewAsk`). Sessions are
derived one by one, however many ran at once: each had its own strategy, which was told the others' trials
from the store.

The measurements are taken as given, and so are retries of lost trials, early stopping, the finale and
configurations that the user named while a session ran, since no strategy decides on them.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError
from autotune.errors import Problem as Fault
from autotune.search.contract import Problem, Proposal, Strategy
from autotune.search.registry import make_strategy
from autotune.session.observing import observe_record
from autotune.session.opening.recorded_space import recorded_space
from autotune.session.opening.sources import recorded_sources
from autotune.session.reproduction.doubts import doubts
from autotune.space.configuration import Configuration, plain
from autotune.space.first_tries import first_tries
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.store.documents import decode, encode
from autotune.store.records import (
    NO_ASK,
    NO_ROOM,
    AskRecord,
    ResultRecord,
    SessionRecord,
    StudyRecord,
    TrialRecord,
)
from autotune.store.store import Store

TOLERANCE = 1e-6
"""By how much a number in a reason may differ, relatively or absolutely: other machines round differently."""


@dataclass(frozen=True)
class Departure:
    """A proposal that does not follow from the record."""

    trial: int
    """Its number; if the departure is not of a single trial, that of the nearest trial of its ask."""
    session: int
    ask: int
    message: str
    """What is wrong, as the predicate of a sentence about the trial."""
    proposed: Mapping[str, Any] | None
    """``{"configuration": ..., "reason": ...}`` as recorded."""
    follows: Mapping[str, Any] | None
    """The same as derived; ``None`` if nothing follows."""


@dataclass(frozen=True)
class Derivation:
    """The result of deriving a study again."""

    study: StudyRecord
    trials: int
    """How many search trials the study has."""
    compared: int
    """How many of them were derived again, including the one that departs."""
    unrecorded: int
    """How many were written by an older autotune, which did not record what the strategy knew."""
    sessions: int
    asks: int
    most_in_flight: int
    """The most trials that had been proposed and had no result yet when a strategy was asked."""
    departure: Departure | None
    """The first departure, by the trial's number; ``None`` if all proposals follow."""
    causes: tuple[str, ...] = ()
    """Possible causes of the departure, the likeliest first."""

    @property
    def follows(self) -> bool:
        return self.departure is None

    def to_document(self) -> dict[str, Any]:
        departure = self.departure
        return {
            "study": self.study.name,
            "study_id": self.study.id,
            "follows": self.follows,
            "trials": self.trials,
            "compared": self.compared,
            "unrecorded": self.unrecorded,
            "sessions": self.sessions,
            "asks": self.asks,
            "most_in_flight": self.most_in_flight,
            "departure": None if departure is None else vars(departure),
            "causes": list(self.causes),
        }


def derive(store: Store, study: StudyRecord) -> Derivation:
    """Derive every proposal of the study again and compare it with the record. Only reads the store.

    Raises :class:`InputError` if the record is not sufficient: an older autotune wrote it, or the recording
    that the study replays is gone.
    """
    asks = store.asks(study.id)  # before the trials, so that all of theirs are there
    trials = {trial.number: trial for trial in store.trials(study.id, purpose="search")}
    recorded = {number for ask in asks for number in ask.written}
    if trials and not asks:
        raise InputError(
            Fault(
                f"study {study.label} does not say what its strategy knew when it proposed",
                expected="a study that was searched by autotune 0.1.0 or later, with a store of schema 0003",
                hint="trials of further searches of it can be derived; those before are taken as given",
            )
        )
    known = Known(trials, store.results_from(study.id, 0)[1])
    departures: list[Departure] = []
    for session in store.sessions(study.id):
        own = [ask for ask in asks if ask.session_id == session.id]
        if own and (found := _first_departure(own, _strategy(store, study, session), known)):
            departures.append(found)
    first = min(departures, key=lambda departure: departure.trial, default=None)
    causes: tuple[str, ...] = ()
    if first is not None:
        causes = doubts(store, study, list(trials.values()), first.session, first.trial)
    compared = sorted(recorded)
    if first is not None:
        compared = [number for number in compared if number <= first.trial]
    return Derivation(
        study=study,
        trials=len(trials),
        compared=len(compared),
        unrecorded=len([t for t in trials.values() if t.ask != NO_ASK and t.number not in recorded]),
        sessions=len({ask.session_id for ask in asks}),
        asks=len(asks),
        most_in_flight=max((known.in_flight(ask) + len(ask.written) for ask in asks), default=0),
        departure=first,
        causes=causes,
    )


class Known:
    """The study's search trials in the order in which a strategy was told of them."""

    def __init__(self, trials: Mapping[int, TrialRecord], results: Sequence[ResultRecord]) -> None:
        self.trials = trials
        self.hashes = {trial.hash for trial in trials.values()}
        self._numbers = sorted(trials)
        self._results = results
        self._places = [result.told for result in results]
        self._ends = [result.told for result in results if not result.paused]

    def proposed(self, first: int, past: int, space: Space) -> Iterator[Configuration]:
        """The configurations of the trials from number ``first`` to ``past - 1`` that are in ``space``."""
        for number in range(first, past):
            trial = self.trials.get(number)
            if trial is not None and trial.configuration in space:
                yield trial.configuration

    def told(self, first: int, past: int, space: Space) -> Iterator[ResultRecord]:
        """The results at the places ``first`` to ``past - 1``, including those of paused trials."""
        for result in self._results[bisect_left(self._places, first) : bisect_left(self._places, past)]:
            if result.configuration in space:
                yield result

    def in_flight(self, ask: AskRecord) -> int:
        """How many trials had been proposed and had not ended at that ask."""
        return bisect_left(self._numbers, ask.trials_known) - bisect_left(self._ends, ask.results_known)


def _strategy(store: Store, study: StudyRecord, session: SessionRecord) -> Strategy:
    """A session's strategy as it was made, before it was told of any trial."""
    try:
        search, budget = session.settings["search"], session.settings["budget"]
        part = session.settings.get("part", False)
        space = recorded_space(store, study, session)
        problem = Problem(
            space=space,
            metrics=tuple(MetricSpec(**metric) for metric in study.metrics),
            budget=None if part else budget["trials"],
            options=search["options"],
            sources=recorded_sources(store, session.settings),
            seconds=None if part else budget["time"],
            memory=session.settings["measure"]["memory"],
            first=first_tries(space, search.get("first", ())),
            judged=early["metric"] if (early := search.get("early_stopping")) else "",
        )
        return make_strategy(search["strategy"], problem, search["seed"])
    except (KeyError, TypeError) as error:  # an archive that was not written by autotune
        raise InputError(
            f"search {session.id} of {study.label} does not record its settings: {error}"
        ) from error


def _first_departure(asks: Sequence[AskRecord], strategy: Strategy, known: Known) -> Departure | None:
    """Ask ``strategy`` as it was asked, up to the first answer that differs from the record."""
    trials_known = results_known = 0
    for ask in asks:
        strategy.reserve(known.proposed(trials_known, ask.trials_known, strategy.space))
        told = known.told(results_known, ask.results_known, strategy.space)
        strategy.tell([observe_record(trial) for trial in told])
        trials_known, results_known = ask.trials_known, ask.results_known
        strategy.asks = ask.number
        found = _compared(ask, strategy.ask(ask.wanted), known)
        if found is not None:
            return found
    return None


def _compared(ask: AskRecord, derived: Sequence[Proposal], known: Known) -> Departure | None:
    """The first proposal of one ask that differs from the record; ``None`` if none does."""
    nearest = ask.written[0] if ask.written else ask.trials_known
    for place, number in enumerate(ask.trials):
        follows = derived[place] if place < len(derived) else None
        if number == NO_ROOM:
            continue
        if number is None:
            if follows is None or follows.configuration.hash not in known.hashes:
                message = "recorded as tried by another search already, but what follows was not"
                return _departure(ask, nearest, message, None, follows)
            continue
        nearest = number
        trial = known.trials.get(number)
        if message := _difference(trial, follows):
            return _departure(ask, number, message, trial, follows)
    if len(derived) > len(ask.trials):
        message = f"one of {len(ask.trials)} recorded proposals of its ask, but {len(derived)} follow"
        return _departure(ask, nearest, message, None, derived[len(ask.trials)])
    return None


def _difference(trial: TrialRecord | None, follows: Proposal | None) -> str:
    """How a recorded trial differs from the proposal that follows; empty if it does not."""
    if trial is None:
        return "its row is missing"
    if follows is None:
        return "nothing more follows"
    if Configuration(dict(trial.configuration)).hash != follows.configuration.hash:
        return "another configuration follows"
    derived = decode(encode(dict(follows.reason)))
    both = {**trial.reason, **derived}
    names = [name for name in both if not _alike(trial.reason.get(name), derived.get(name))]
    return f"another reason follows: {', '.join(names)}" if names else ""


def _alike(one: object, other: object) -> bool:
    """Whether two JSON values are the same, except for the rounding of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        same = math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return same or (math.isnan(one) and math.isnan(other))
    return one == other


def _departure(
    ask: AskRecord, number: int, message: str, trial: TrialRecord | None, follows: Proposal | None
) -> Departure:
    return Departure(
        trial=number,
        session=ask.session_id,
        ask=ask.number,
        message=message,
        proposed=None if trial is None else _document(trial),
        follows=None if follows is None else _document(follows),
    )


def _document(proposal: Proposal | TrialRecord) -> Mapping[str, Any]:
    configuration = plain(proposal.configuration)
    document: Mapping[str, Any] = json.loads(
        encode({"configuration": configuration, "reason": dict(proposal.reason)})
    )
    return document
