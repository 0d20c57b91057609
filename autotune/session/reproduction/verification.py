"""Does a result still hold? Its configuration and the default measured again, here and now, interleaved.

It is measured in several *runs*, each with processes of its own, in which the two are read in rounds: so what
differs from process to process is seen and not taken for a change. What is held against what then is the
business of :mod:`autotune.session.reproduction.agreement`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, InputError
from autotune.measure.kernels.compile_cache import cache_folder
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.session.execution.choosing import make_executor
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.kept_readings import KeptReadings, Place
from autotune.session.finale.rounds import MAX_ROUNDS, Rounds
from autotune.session.reproduction.agreement import UNMEASURABLE, Claim, Run, Verification, compared
from autotune.session.searches import VERIFIED
from autotune.space.configuration import FrozenMap, plain
from autotune.space.reading.reader import parse_family, parse_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, StudyRecord
from autotune.store.store import Store

RUNS, TRAINING_RUNS = 5, 3
"""In how many processes each is read at first; the second where a reading is a whole training."""

FINALE = MAX_ROUNDS
"""The rounds of the finale that made the claim: what is measured again has other random numbers."""

Keep = Callable[[Run], None]
"""Takes what a run measured, to write it down."""


def verify(spec: StudySpec, claim: Claim, keep: Keep | None = None, runs: int | None = None) -> Verification:
    """Measure the configuration of ``claim`` and the default of ``spec`` again, and compare.

    ``runs``: in how many processes; ``None``: as many as suit the objective. Raises nothing for what cannot
    be measured: that is an answer.
    """
    try:
        executor = make_executor(spec, compiled=cache_folder())
        with closing(executor), executor.aside():
            return replace(measure_again(spec, claim, executor, keep, runs), remark=executor.remark)
    except InputError as error:
        return Verification(UNMEASURABLE, str(error))


def measure_again(
    spec: StudySpec, claim: Claim, executor: Executor, keep: Keep | None = None, runs: int | None = None
) -> Verification:
    """The same with an executor that is there.

    Where as many runs as suit the objective cannot tell at one pace of the machine, as many again are made,
    which count for the spread of runs there. Once: who looked after each would find differences by chance.
    """
    if claim.configuration not in spec.space:
        return Verification(UNMEASURABLE, "the space does not allow the configuration here")
    wanted = _suitable(spec) if runs is None else runs
    made = list(_measured(spec, claim, executor, keep, wanted, FINALE))
    found = compared(spec, claim, made)
    if found.verdict == "cannot be told" and found.slower is not None and runs is None:
        made += _measured(spec, claim, executor, keep, wanted, FINALE + sum(run.rounds for run in made))
        found = compared(spec, claim, made)
    return found


def _measured(
    spec: StudySpec, claim: Claim, executor: Executor, keep: Keep | None, wanted: int, before: int
) -> Iterator[Run]:
    """As many runs as are wanted; a single one of a recorded failure, and none after a run that fails.

    ``before``: the rounds of the finale and of earlier runs, whose seeds are used up. Runs with the same seed
    would agree wherever chance decides, in a training, and their spread would say nothing.
    """
    for _ in range(1 if claim.status.failed else wanted):
        contenders = _contenders(spec, claim)
        limits = Rounds.of(spec).split(wanted)
        rounds, outcomes = read_again(spec, executor, contenders, limits, before, run=before)
        before += rounds
        run = Run(contenders, outcomes, rounds)
        if keep is not None:
            keep(run)
        yield run
        if outcomes[claim.label].status is not Status.OK:
            break


def _suitable(spec: StudySpec) -> int:
    return RUNS if spec.search.early_stopping is None else TRAINING_RUNS


def _contenders(spec: StudySpec, claim: Claim) -> list[Contender]:
    """The default, where there is one, and last the configuration, which may be the default itself."""
    own = Contender(claim.label, claim.configuration)
    default = spec.space.feasible_default()
    if default is None or default == claim.configuration or claim.status.failed:
        return [own]
    return [Contender(DEFAULT, default), own]


# -- studies of a store ---------------------------------------------------------------------------------


def spec_for(text: str, path: Path, workload: Mapping[str, Any]) -> StudySpec:
    """What a space file searches for a workload, on this device. ``text`` is the file's, ``path`` its place.

    Raises :class:`InputError` where the text cannot be read, or knows no such workload.
    """
    facts = device_facts()
    for spec in parse_family(text, path, facts).specs:
        if plain(spec.workload) == plain(FrozenMap(workload)):
            return spec
    return parse_spec(text, path, facts, FrozenMap(workload))


class Keeper:
    """Writes runs to a study, in a session of their own. Without a verdict: the study's answer stays.

    ``said`` stands beside the label in the reason of each trial that it writes. A store that fails costs the
    keeping, not the answer: :attr:`kept` says which it was. Close it in the end.
    """

    def __init__(
        self,
        url: str | None,
        study: StudyRecord,
        segment: SegmentRecord,
        environment: Environment,
        said: Mapping[str, object] | None = None,
    ) -> None:
        self._url, self._study, self._segment = url, study, segment
        self._environment = environment
        self._said = {} if said is None else said
        self._store: Store | None = None
        self._session = 0
        self._runs = 0
        self._failure = ""

    @property
    def kept(self) -> str:
        """Where the readings are, or why they are nowhere."""
        if self._failure:
            return f"not kept: {self._failure}"
        return f"kept as trials of {self._study.label}" if self._runs else "none were taken"

    def __call__(self, run: Run) -> None:
        if self._failure:
            return
        try:
            if self._store is None:
                self._store = self._begin(run)
            place = Place(self._study.id, self._session, self._segment.id)
            said = {**self._said, "run": self._runs}
            kept = KeptReadings(self._store, place, run.contenders, 0, said)
            kept.finish(run.outcomes, self._environment.hash)
            self._runs += 1
        except AutotuneError as error:
            self._failure = str(error)

    def _begin(self, run: Run) -> Store:
        store = Store.open(self._url)
        try:
            settings = {VERIFIED: [c.label for c in run.contenders]}
            own = (self._environment.hash, os.getpid(), socket.gethostname())
            described = self._environment.to_document()
            self._session = store.open_session(self._study.id, settings, *own, described)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        if self._store is None:
            return
        try:
            self._store.close_session(self._session, "verified")
        except AutotuneError as error:
            self._failure = self._failure or str(error)
        finally:
            self._store.close()
