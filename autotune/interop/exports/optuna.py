"""A study written into an Optuna storage, so that Optuna's own plots and optuna-dashboard open it.

Numbers stay numbers: a range is an integer or float distribution with its scale and step (Optuna takes no
step on a logarithmic scale: of a float the scale is kept, of an integer the step). Powers of two, ordered
values, choices and flags are categories, a permutation is a category of its text, and an assignment one
category an item. Where a space has changed since, a distribution is as wide as what was tried. Optuna knows
no kinds of failure: they are all ``FAIL``, and ``autotune.status`` says which. Trials without a result are
left out.
"""

from __future__ import annotations

import json
import math
import signal
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from autotune.errors import InputError, Problem
from autotune.interop.exports.failing import cannot_write, undone_on_failure
from autotune.interop.for_optuna.trials import STATUS_ATTR
from autotune.interop.foreign_databases import refuse_store
from autotune.space.configuration import FrozenMap, Value, plain
from autotune.space.from_document import space_from_document
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import is_number
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

Curves = Mapping[int, Mapping[int, float]]
"""The first goal after each step, by the trial's id."""


def address_of(where: str) -> str:
    """``where`` as Optuna's tools take it: a database's URL, or the path of a journal."""
    return where if "://" in where or where.endswith(".log") else f"sqlite:///{Path(where)}"


def export_study(store: Store, study: StudyRecord, where: str) -> tuple[str, int]:
    """Write a study to the storage at ``where``: its name there, and how many trials.

    ``where`` is a database URL as Optuna takes it, the path of an SQLite file, or one that ends in ``.log``
    (Optuna's journal). Raises :class:`InputError` where it has a study of the name, and :class:`OutputError`
    where it cannot be opened or written to: then nothing is left, or the error says what.
    """
    import optuna
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    trials = [t for t in store.trials(study.id, purpose="search") if t.status.finished]
    goals = study.goals
    distributions = distributions_of(study, trials)
    curves = _curves(store, study, goals[0].name)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = _storage(where)
        made = optuna.create_study(
            storage=storage, study_name=study.label, directions=[goal.direction for goal in goals]
        )
    except optuna.exceptions.DuplicatedStudyError:
        hint = "choose another storage, or remove it: optuna delete-study"
        raise InputError(Problem(f"{where} has a study {study.label} already", hint=hint)) from None
    # The latter two: a database of something else, and a file that is no journal.
    except (SQLAlchemyError, ImportError, StorageInternalError, RuntimeError, ValueError) as error:
        raise cannot_write("Optuna", where, error) from error
    failures = SQLAlchemyError, StorageInternalError
    try:  # half of the study would be in the way of the next try
        with undone_on_failure(
            lambda: storage.delete_study(made._study_id), failures, f"the study {study.label!r}"
        ):
            _describe(made, goals, _about(store, study))
            for trial in trials:
                template = frozen(trial, goals, distributions, curves.get(trial.id, {}))
                with _interrupted_afterwards():
                    storage.create_new_trial(made._study_id, template_trial=template)
    except failures as error:
        raise cannot_write("Optuna", where, error) from error
    return study.label, len(trials)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Ctrl-C in the block is heard as it ends.

    One in the midst of a commit leaves the connection with a lock on the database: then what was written
    could not be deleted, and half a study was in the way of the next try.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # where no signal is heard
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _storage(where: str) -> BaseStorage:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy import event

    if "://" not in where and where.endswith(".log"):
        return JournalStorage(JournalFileBackend(where))
    url = address_of(where)
    refuse_store(url)
    storage = RDBStorage(url)
    if storage.engine.dialect.name == "sqlite":
        # Several commits a trial: without this each waits for the disk, though all can be written again.
        storage.engine.dispose()
        event.listen(storage.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF"))
    return storage


def _describe(made: Study, goals: Sequence[MetricSpec], about: Mapping[str, Any]) -> None:
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # names of metrics, since Optuna 3.2
        made.set_metric_names([goal.name for goal in goals])
    for name, value in about.items():
        made.set_user_attr(name, value)


def _about(store: Store, study: StudyRecord) -> dict[str, Any]:
    """What is to be known of the whole study: its workload, objective, and the final comparison."""
    verdicts = store.verdicts(study.id)
    last = verdicts[-1].document if verdicts else {}
    parts = ("configuration", "label", "speedup")
    return {
        "autotune.study": study.label,
        "autotune.objective": study.objective,
        "autotune.workload": json.loads(json.dumps(dict(study.workload), default=str)),
        "autotune.replayed": study.replayed,
        "autotune.verdict": {name: last[name] for name in parts if name in last},
    }


def _curves(store: Store, study: StudyRecord, goal: str) -> Curves:
    curves: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for record in store.reports(study.id):
        if goal in record.report.metrics:
            curves[record.trial_id][record.report.step] = record.report.metrics[goal]
    return curves


# -- trials ---------------------------------------------------------------------------------------------


def frozen(
    trial: TrialRecord,
    goals: Sequence[MetricSpec],
    distributions: Mapping[str, BaseDistribution],
    curve: Mapping[int, float],
) -> FrozenTrial:
    """A finished trial as Optuna has it."""
    from optuna.trial import FrozenTrial, TrialState

    params = {name: _as_listed(value, distributions[name]) for name, value in parameters(trial).items()}
    values = [trial.metrics[goal.name].value for goal in goals if goal.name in trial.metrics]
    values = [value for value in values if not math.isnan(value)]  # which Optuna takes for a failure
    state = {Status.OK: TrialState.COMPLETE, Status.PRUNED: TrialState.PRUNED}.get(
        trial.status, TrialState.FAIL
    )
    if state is TrialState.COMPLETE and len(values) < len(goals):
        state = TrialState.FAIL
    began = trial.started_at or trial.proposed_at
    made = FrozenTrial(
        number=0,  # the storage counts
        state=state,
        value=None,
        values=values if state is TrialState.COMPLETE else None,
        datetime_start=datetime.fromtimestamp(began),
        datetime_complete=datetime.fromtimestamp(trial.finished_at or began),
        params=params,
        distributions={name: distributions[name] for name in params},
        user_attrs=_attributes(trial),
        system_attrs={},
        intermediate_values=dict(curve) or (_read(trial, values) if state is TrialState.PRUNED else {}),
        trial_id=-1,
    )
    made._validate()
    return made


def _read(trial: TrialRecord, values: Sequence[float]) -> dict[int, float]:
    """What a trial had come to when it was stopped, after how many readings: Optuna wants to see that."""
    return {trial.reading_count: values[0]} if values else {}


def _attributes(trial: TrialRecord) -> dict[str, Any]:
    """What Optuna has no place for."""
    said: dict[str, Any] = {
        STATUS_ATTR: str(trial.status),
        "autotune.trial": trial.number,
        "autotune.strategy": trial.strategy,
        "autotune.reason": str(trial.reason.get("kind", "")),
        "autotune.seconds": sum(trial.phases.values()),
        "autotune.hash": trial.hash,
    }
    for name, estimate in trial.metrics.items():
        said[f"metric.{name}"] = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return said | ({"autotune.message": trial.message[:1000]} if trial.message else {})


# -- parameters -----------------------------------------------------------------------------------------


def parameters(trial: TrialRecord) -> dict[str, Any]:
    """The knobs of a trial as Optuna's parameters; those that do not exist in it are left out."""
    return {name: value for knob, own in trial.configuration.items() for name, value in _spread(knob, own)}


def _spread(knob: str, value: Value) -> list[tuple[str, Any]]:
    if isinstance(value, FrozenMap):
        return [(f"{knob}[{item}]", _category(place)) for item, place in value.items()]
    return [(knob, _category(value))]


def _category(value: Value) -> Any:
    """As Optuna's storages can keep it: lists and maps by their text."""
    return json.dumps(plain(value)) if isinstance(value, (tuple, FrozenMap)) else value


def distributions_of(study: StudyRecord, trials: Sequence[TrialRecord]) -> dict[str, BaseDistribution]:
    """A distribution for each parameter: by its knob, and at least as wide as what was tried."""
    tried: defaultdict[str, dict[Any, None]] = defaultdict(dict)
    for trial in trials:
        for name, value in parameters(trial).items():
            tried[name][type(value), value] = None
    try:
        knobs = {knob.name: knob for knob in space_from_document(study.document["space"]).knobs}
    except (InputError, KeyError):
        knobs = {}
    return {
        name: _distribution(knobs.get(name), [value for _, value in seen]) for name, seen in tried.items()
    }


def _distribution(knob: Knob | None, tried: Sequence[Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution

    powers = isinstance(knob, IntegerRange) and knob.scale == "log2"
    if isinstance(knob, (IntegerRange, FloatRange)) and not powers and all(map(is_number, tried)):
        return _range(knob, tried)
    values = knob.cells[0].values if knob is not None and _is_listed(knob) else ()
    listed = [_category(value) for value in values if not isinstance(value, FrozenMap)]
    known = {(type(value), value): None for value in [*listed, *tried]}
    choices = [value for _, value in known]
    if len(set(choices)) < len(choices):
        choices = [json.dumps(value) for value in choices]
    if all(map(is_number, choices)):
        choices.sort()
    return CategoricalDistribution(choices)


def _range(knob: IntegerRange | FloatRange, tried: Sequence[float]) -> BaseDistribution:
    """Of integers where only such were tried; with a float knob's step, where that is what was tried."""
    from optuna.distributions import FloatDistribution, IntDistribution

    low, high = min(knob.low, *tried), max(knob.high, *tried)
    log = knob.scale != "linear" and low > 0
    if isinstance(knob, IntegerRange) and all(isinstance(value, int) for value in tried):
        step = knob.step if all((value - low) % knob.step == 0 for value in tried) else 1
        whole = int(low), int(low + (high - low) // step * step)
        return IntDistribution(*whole, log=log and step == 1, step=step)
    if isinstance(knob, FloatRange) and knob.step is not None and knob.scale == "linear":
        last = cast(float, knob.cells[0].values[-1])
        gridded = FloatDistribution(knob.low, last, step=knob.step)
        if all(gridded._contains(value) for value in tried):
            return gridded
    return FloatDistribution(float(low), float(high), log=log)


def _as_listed(value: Any, distribution: BaseDistribution) -> Any:
    """A value as its distribution has it: Optuna takes ``true`` and 1 for one, so where a knob has both they
    are categories by their text."""
    from optuna.distributions import CategoricalDistribution

    if not isinstance(distribution, CategoricalDistribution):
        return value
    known = any(type(one) is type(value) and one == value for one in distribution.choices)
    return value if known else json.dumps(value)


def _is_listed(knob: Knob) -> bool:
    """Whether a knob is one list of values: no permutation, no assignment."""
    return len(knob.cells) == 1 and not knob.distinct and knob.cells[0].name == knob.name
