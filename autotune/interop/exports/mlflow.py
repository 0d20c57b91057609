"""A study written to MLflow: an experiment, with a run for each trial.

Knobs are parameters, metrics are metrics (with ``.low`` and ``.high``), what a trial reported are metrics
with steps, and how it ended and why it was tried are tags. MLflow knows runs that failed and runs that
finished: the status in autotune's words is the tag ``autotune.status``. Trials without a result are left out.

While it is written the experiment has another name, and it is deleted where that fails: one that has the
study's name is whole.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError, Problem
from autotune.interop.exports.failing import cannot_write, undone_on_failure
from autotune.interop.foreign_databases import refuse_store
from autotune.measure.outcome import Report
from autotune.space.configuration import Value, plain
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    from mlflow import MlflowClient

MOST_METRICS, MOST_PARAMS = 1000, 100
"""Of one call, as MLflow's servers allow."""
LONGEST_VALUE, LONGEST_TAG, LONGEST_NAME = 6000, 5000, 250
"""Characters of a parameter, of a tag, and of the name of either."""
TRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
"""How often MLflow tries again to reach a server: for minutes, where nobody says otherwise."""
SILENT = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
"""Whether it leaves out to print two lines for each run that it has written to a server."""

Names = Mapping[tuple[str, str], str]
"""Names in MLflow by name of a knob or metric, and what of a metric it is: ``""``, ``.low``, ``.high``, or
``curve.`` before it."""


def address_of(where: str) -> str:
    """``where`` as MLflow takes it: the address of a server or database, or the path of an SQLite file.

    Raises :class:`InputError` for a folder, which MLflow itself no longer writes to.
    """
    if "://" in where:
        return where
    if Path(where).is_dir():
        hint = f"give an SQLite file: {Path(where) / 'mlflow.db'}"
        raise InputError(Problem(f"{where} is a folder", None, "a tracking server, or a database", hint))
    return f"sqlite:///{where}"


def export_study(store: Store, study: StudyRecord, where: str) -> tuple[str, int]:
    """Write a study to the tracking server or database at ``where``: the experiment, and how many runs.

    Raises :class:`InputError` where MLflow is not installed or has the experiment, and :class:`OutputError`
    where it refuses ``where`` or fails on the way: then nothing is left, or the error says what.
    """
    try:
        from alembic.util.exc import CommandError
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise InputError(Problem("this needs MLflow", hint="pip install mlflow")) from None
    trials = [t for t in store.trials(study.id, purpose="search") if t.status.finished]
    reports: defaultdict[int, list[Report]] = defaultdict(list)
    for record in store.reports(study.id):
        reports[record.trial_id].append(record.report)
    address = address_of(where)
    if not address.startswith(("http://", "https://")):
        refuse_store(address)
    params = _told_apart((name, "") for trial in trials for name in trial.configuration)
    metrics = _told_apart(_metric_keys(trials, reports))
    try:
        client = MlflowClient(tracking_uri=address)
        with _environment(TRIES, "2"):  # once it has answered, it is worth the wait
            client.search_experiments(max_results=1)
        if client.get_experiment_by_name(study.label) is not None:
            raise InputError(
                Problem(
                    f"{where} has an experiment {study.label} already", hint="choose another, or rename it"
                )
            )
        draft = f"{study.label} (unfinished {secrets.token_hex(4)})"  # another each time: MLflow keeps names
        experiment = client.create_experiment(draft, tags=_about(store, study))
        undone = undone_on_failure(
            lambda: client.delete_experiment(experiment), (MlflowException,), f"the experiment {draft!r}"
        )
        with undone, _environment(SILENT, "true"):
            for trial in trials:
                _write_run(client, experiment, trial, reports[trial.id], params, metrics)
            client.rename_experiment(experiment, study.label)
    except (MlflowException, SQLAlchemyError, CommandError) as error:  # the last: of another's migrations
        raise cannot_write("MLflow", where, error) from error
    return study.label, len(trials)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """A setting of MLflow's, which has no other place, unless the user has made it."""
    said = os.environ.get(name)
    os.environ.setdefault(name, value)
    try:
        yield
    finally:
        if said is None:
            del os.environ[name]


def _about(store: Store, study: StudyRecord) -> dict[str, str]:
    verdicts = store.verdicts(study.id)
    last = verdicts[-1].document if verdicts else {}
    facts = {
        "autotune.objective": study.objective,
        "autotune.workload": dict(study.workload),
        "autotune.replayed": study.replayed,
        "autotune.verdict": {name: last.get(name) for name in ("configuration", "label", "speedup")},
    }
    return {name: _tag(value) for name, value in facts.items()}


def _write_run(
    client: MlflowClient,
    experiment: str,
    trial: TrialRecord,
    reports: Sequence[Report],
    param_names: Names,
    metric_names: Names,
) -> None:
    from mlflow.entities import Param, RunTag

    began = trial.started_at or trial.proposed_at
    run = client.create_run(
        experiment, start_time=_milliseconds(began), run_name=f"trial {trial.number:05}"
    ).info.run_id
    params = [Param(param_names[name, ""], _param(value)) for name, value in trial.configuration.items()]
    tags = [RunTag(name, _tag(value)) for name, value in _tags(trial).items()]
    client.log_batch(run, tags=tags)
    for at in range(0, len(params), MOST_PARAMS):
        client.log_batch(run, params=params[at : at + MOST_PARAMS])
    ended = _milliseconds(trial.finished_at or began)
    metrics = list(_metrics(trial, reports, ended, metric_names))
    for at in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run, metrics=metrics[at : at + MOST_METRICS])
    state = "FAILED" if trial.status.failed else "KILLED" if trial.status is Status.PRUNED else "FINISHED"
    client.set_terminated(run, state, end_time=ended)


def _metrics(trial: TrialRecord, reports: Sequence[Report], at: int, names: Names) -> Iterator[Any]:
    """Its estimates, then its curves; what is not finite is left out, for databases refuse it."""
    from mlflow.entities import Metric

    for name, estimate in trial.metrics.items():
        for part, value in (("", estimate.value), (".low", estimate.low), (".high", estimate.high)):
            if math.isfinite(value):
                yield Metric(names[name, part], value, at, 0)
    for report in reports:
        for name, value in report.metrics.items():
            if math.isfinite(value):
                yield Metric(names[name, "curve."], value, at, report.step)


def _tags(trial: TrialRecord) -> Mapping[str, Any]:
    return {
        "autotune.status": str(trial.status),
        "autotune.trial": trial.number,
        "autotune.strategy": trial.strategy,
        "autotune.reason": dict(trial.reason),
        "autotune.message": trial.message,
        "autotune.seconds": sum(trial.phases.values()),
        "autotune.hash": trial.hash,
        "autotune.environment": trial.environment_hash,
    }


def _metric_keys(
    trials: Sequence[TrialRecord], reports: Mapping[int, Sequence[Report]]
) -> Iterator[tuple[str, str]]:
    """What the metrics are first: their own names stay, whatever else is written."""
    own = dict.fromkeys(name for trial in trials for name in trial.metrics)
    yield from ((name, part) for part in ("", ".low", ".high") for name in own)
    yield from ((name, "curve.") for many in reports.values() for one in many for name in one.metrics)


def _told_apart(keys: Iterable[tuple[str, str]]) -> Names:
    """A name for each key; of several that come to the same the later ones end with ``_2``, ``_3``."""
    found: dict[tuple[str, str], str] = {}
    taken = set[str]()
    for name, part in dict.fromkeys(keys):
        plain = _name(f"{part}{name}" if part == "curve." else f"{name}{part}")
        numbered = (f"{plain[: LONGEST_NAME - 5]}_{number}" for number in itertools.count(2))
        found[name, part] = next(one for one in itertools.chain([plain], numbered) if one not in taken)
        taken.add(found[name, part])
    return found


def _name(name: str) -> str:
    """MLflow takes letters, digits, ``_ - . /`` and spaces in names of parameters and metrics."""
    kept = "".join(c if c.isalnum() or c in "_-. /" else "_" for c in name)[:LONGEST_NAME]
    return "/".join(part for part in kept.split("/") if part not in ("", ".", "..")) or "_"


def _param(value: Value) -> str:
    simple = plain(value)
    return (simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False))[:LONGEST_VALUE]


def _tag(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))[
        :LONGEST_TAG
    ]


def _milliseconds(at: float) -> int:
    return int(at * 1000)
