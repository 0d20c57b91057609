"""Why proposals may not follow from a record: the record was edited, or the software is another one."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence

from autotune.measure.rules.statistics import estimates
from autotune.provenance.document import part_of
from autotune.provenance.host.processor import read_processor
from autotune.provenance.host.system import System
from autotune.provenance.software import read_packages
from autotune.session.engine import engine
from autotune.session.opening.sources import SETTING
from autotune.space.configuration import Configuration
from autotune.store.records import Document, SessionRecord, StudyRecord, TrialRecord
from autotune.store.store import Store

NUMERIC = ("numpy", "scipy", "scikit-learn", "scikit-optimize", "optuna", "cmaes", "torch")
"""The packages that strategies compute with."""


def doubts(
    store: Store, study: StudyRecord, trials: Sequence[TrialRecord], session_id: int, number: int
) -> tuple[str, ...]:
    """What is inconsistent in the record up to trial ``number``, then what has changed since that session."""
    earlier = [trial for trial in trials if trial.number <= number]
    session = next(s for s in store.sessions(study.id) if s.id == session_id)
    environment = store.environment(session.environment_hash)
    found = (
        *_missing(store, study, number),
        *(f"the store was edited: {said}" for trial in earlier for said in _inconsistent(store, trial)),
        *_changed_sources(store, session),
        *_changed_code(session.settings.get("engine", {})),
        *_changed_software(environment),
    )
    nothing = "the record is consistent, and the software is the same: please report this"
    return found or (nothing,)


def _missing(store: Store, study: StudyRecord, number: int) -> Iterator[str]:
    # Not every gap counts: numbers that no ask has were of trials measured again, which prune may delete.
    proposed = {named for ask in store.asks(study.id) for named in ask.trials if named is not None}
    there = {trial.number for trial in store.trials(study.id)}
    for gap in sorted(named for named in proposed - there if named <= number):
        yield f"the store was edited: there is no trial {gap}"


def _changed_sources(store: Store, session: SessionRecord) -> Iterator[str]:
    """How the earlier studies that the session learned from are no longer what they were."""
    studies = {study.id: study for study in store.studies()}
    for source in session.settings.get(SETTING) or ():
        study = studies.get(source["study"])
        if study is None:
            yield f"study #{source['study']}, which it learned from, is no longer in the store"
            continue
        count = len(store.results_from(study.id, 0)[1])
        if count < source["trials"]:
            lost = source["trials"] - count
            yield f"the store was edited: {lost} results of {study.label}, which it learned from, are gone"
        for trial in store.trials(study.id, purpose="search"):
            for said in _inconsistent(store, trial, f" of {study.label}"):
                yield f"the store was edited: {said}"


def _inconsistent(store: Store, trial: TrialRecord, of_study: str = "") -> Iterator[str]:
    """How a trial's row contradicts itself or the trial's readings."""
    which = f"trial {trial.number}{of_study}"
    if Configuration(dict(trial.configuration)).hash != trial.hash:
        yield f"the configuration of {which} is not the one that its hash stands for"
    if trial.told is None:
        return
    read = estimates(store.readings(trial.id))
    for name, recorded in trial.metrics.items():
        if name in read and not _alike(read[name].value, recorded.value):
            yield (
                f"{name} of {which} is {recorded.value:.6g}, but the median of its"
                f" {read[name].n} readings is {read[name].value:.6g}"
            )


def _alike(one: float, other: float) -> bool:
    """Whether two values are equal except for rounding; NaN equals NaN, as in a trial that diverged."""
    return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))


def _changed_code(recorded: Document) -> Iterator[str]:
    now = engine()
    if recorded.get("version") != now["version"]:
        yield f"autotune {recorded.get('version', '?')} proposed, and this is {now['version']}"
    elif recorded.get("code") != now["code"]:
        yield "the code of autotune's strategies or spaces has changed since, though its version has not"


def _changed_software(environment: Document) -> Iterator[str]:
    if not environment:
        yield "the environment of the search is not in the store"
        return
    before, now = environment.get("packages") or {}, read_packages()
    for name in NUMERIC:
        if before.get(name) != now.get(name):
            yield f"{name} was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
    python = part_of(environment, "python").get("version")
    if python != platform.python_version():
        yield f"Python was {python} and is {platform.python_version()}"
    processor = part_of(environment, "machine", "processor").get("name")
    if processor != (here := read_processor(System()).name):
        yield f"the processor was {processor} and is {here}, whose linear algebra may round differently"
