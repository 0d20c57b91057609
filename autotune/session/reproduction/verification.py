"""Does a result still hold? Its configuration and the default are measured again, here and now, interleaved.

They are measured in several *runs*, each with processes of its own, in which the two are read in rounds. So
what differs from process to process is known, and not taken for a change. The comparison with the recorded
result is in :mod:`autotune.session.reproduction.agreement`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError
from autotune.measure.kernels.compile_cache import cache_folder
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.session.execution.choosing import make_executor
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.kept_readings import KeptReadings
from autotune.session.finale.rounds import MAX_ROUNDS, Rounds
from autotune.session.reproduction.agreement import UNMEASURABLE, Claim, Run, Verification, compared
from autotune.session.searches import VERIFIED
from autotune.space.configuration import FrozenMap, plain
from autotune.space.reading.reader import parse_family, parse_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import Place, SegmentRecord, StudyRecord
from autotune.store.store import Store

RUNS, TRAINING_RUNS = 5, 3
"""In how many processes each is read at first; the second is for trainings."""

FINALE = MAX_ROUNDS
"""The number of seeds that the finale may have used: rounds of a verification use later ones."""

Keep = Callable[[Run], None]
"""Called with each run, to write it down."""


def verify(spec: StudySpec, claim: Claim, keep: Keep | None = None, runs: int | None = None) -> Verification:
    """Measure the configuration of ``claim`` and the default of ``spec`` again, and compare.

    ``runs`` is the number of processes; ``None`` means as many as suit the objective. If it cannot be
    measured, nothing is raised: the verdict says so.
    """
    try:
        executor = make_executor(spec, compiled=cache_folder())
        with closing(executor), executor.aside():
            return replace(measure_again(spec, claim, executor, keep, runs), remark=executor.remark)
    except AutotuneError as error:
        return Verification(UNMEASURABLE, str(error))


def measure_again(
    spec: StudySpec, claim: Claim, executor: Executor, keep: Keep | None = None, runs: int | None = None
) -> Verification:
    """As :func:`verify`, with a given executor.

    If ``runs`` is ``None`` and the runs cannot tell at one pace of the machine, as many again are made,
    which count for the spread of runs. This is done once only: checking after each run would find
    differences by chance.
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
    """Make ``wanted`` runs; only one for a recorded failure, and none after a run that fails.

    ``before`` is the number of rounds in the finale and in earlier runs, whose seeds are used up. Runs of a
    training with the same seed would agree, and their spread would say nothing.
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
    """The default, if it is feasible and another configuration, and then the configuration itself."""
    own = Contender(claim.label, claim.configuration)
    default = spec.space.feasible_default()
    if default is None or default == claim.configuration or claim.status.failed:
        return [own]
    return [Contender(DEFAULT, default), own]


# -- studies of a store ---------------------------------------------------------------------------------


def spec_for(text: str, path: Path, workload: Mapping[str, Any]) -> StudySpec:
    """The study that a space file describes for a workload, on this device. ``text`` is the text of the file,
    ``path`` its path.

    Raises :class:`InputError` if the text cannot be read, or does not have such a workload.
    """
    facts = device_facts()
    for spec in parse_family(text, path, facts).specs:
        if plain(spec.workload) == plain(FrozenMap(workload)):
            return spec
    return parse_spec(text, path, facts, FrozenMap(workload))


class Keeper:
    """Writes runs to a study, in a session of their own and without a verdict: the study's answer stays.

    ``said`` is added to the reason of each trial that it writes. If the store fails, the readings are not
    kept, but the verification goes on; :attr:`kept` says which it was. It has to be closed.
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
        """Where the readings are kept, or why they are not."""
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
