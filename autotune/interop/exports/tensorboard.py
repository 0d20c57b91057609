"""A study written for TensorBoard: a folder of event files, with the knobs as hyper-parameters.

One run a trial, in a folder of its own below the given one, so that the HParams page lists and compares them;
what a trial reported while it ran are its scalars. How a trial ended is the hyper-parameter
``autotune.status``. Trials without a result are left out.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem
from autotune.measure.outcome import Report
from autotune.space.configuration import Value, plain
from autotune.space.knobs.values import is_number
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

STATUS = "autotune.status"


def export_study(store: Store, study: StudyRecord, folder: Path) -> int:
    """Write a study below ``folder``; how many trials.

    Raises :class:`InputError` where TensorBoard is not installed or the folder has something in it, and
    ``OSError`` where it cannot be written: then, as after an interrupt, nothing is left.
    """
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise InputError(Problem("this needs TensorBoard", hint="pip install tensorboard")) from None
    if folder.exists() and any(folder.iterdir()):
        raise InputError(Problem(f"{folder} is not empty", hint="choose a new folder, one for each export"))
    trials = [t for t in store.trials(study.id, purpose="search") if t.status.finished]
    reports: defaultdict[int, list[Report]] = defaultdict(list)
    for record in store.reports(study.id):
        reports[record.trial_id].append(record.report)
    metrics = [str(metric["name"]) for metric in study.metrics]
    tried = [_hparams(trial) for trial in trials]
    kinds = kinds_of(tried)
    whole = Path(os.path.realpath(folder))  # where a link leads
    draft = whole.with_name(f".part-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _write(EventFileWriter, draft, [(0.0, 0, _experiment(tried, kinds, metrics))])
        for trial in trials:
            began, ended = trial.started_at or trial.proposed_at, trial.finished_at or trial.proposed_at
            events = [(began, 0, _session_start(trial, kinds, began))]
            events += [(ended, step, one) for step, one in _scalars(trial, metrics, reports[trial.id])]
            events.append((ended, 0, _session_end(trial, ended)))
            _write(EventFileWriter, draft / f"trial-{trial.number:05}", events)
        draft.replace(whole)  # in the place of the empty folder, where there is one
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return len(trials)


def _write(writer_class: Any, folder: Path, events: Sequence[tuple[float, int, Any]]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event

    folder.mkdir(parents=True, exist_ok=True)
    with closing(writer_class(str(folder))) as writer:
        for at, step, summary in events:
            writer.add_event(Event(wall_time=at, step=step, summary=summary))


def _plugin(tag: str, **data: Any) -> Any:
    """A summary that is for the HParams page alone."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata, plugin_data_pb2

    said = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(**data))
    value = Summary.Value(tag=getattr(metadata, tag), metadata=said, tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])


def _session_start(trial: TrialRecord, kinds: Mapping[str, int], at: float) -> Any:
    from tensorboard.plugins.hparams import plugin_data_pb2

    info = plugin_data_pb2.SessionStartInfo(start_time_secs=at, group_name=f"trial {trial.number}")
    for name, value in _hparams(trial).items():
        _fill(info.hparams[name], value, kinds[name])
    return _plugin("SESSION_START_INFO_TAG", session_start_info=info)


def _session_end(trial: TrialRecord, at: float) -> Any:
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2

    status = api_pb2.STATUS_FAILURE if trial.status.failed else api_pb2.STATUS_SUCCESS
    info = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=at)
    return _plugin("SESSION_END_INFO_TAG", session_end_info=info)


def _fill(place: Any, value: bool | float | str, kind: int) -> None:
    """A value of protobuf's ``Value``. One of a knob of several kinds is a text: the page sorts them."""
    from tensorboard.plugins.hparams import api_pb2

    if kind == api_pb2.DATA_TYPE_BOOL:
        place.bool_value = value
    elif kind == api_pb2.DATA_TYPE_FLOAT64:
        place.number_value = value
    else:
        place.string_value = value if isinstance(value, str) else json.dumps(value)


def _experiment(tried: Sequence[Mapping[str, Any]], kinds: Mapping[str, int], metrics: Sequence[str]) -> Any:
    """What the page shows: each hyper-parameter with the values that were tried, and the metrics."""
    from tensorboard.plugins.hparams import api_pb2

    infos = []
    for name, kind in kinds.items():
        seen = {(type(own[name]), own[name]): None for own in tried if name in own}
        info = api_pb2.HParamInfo(name=name, type=kind)
        if info.type != api_pb2.DATA_TYPE_FLOAT64 or len(seen) <= 50:
            for _, value in seen:
                _fill(info.domain_discrete.values.add(), value, kind)
        infos.append(info)
    shown = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=metric)) for metric in metrics]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=shown)
    return _plugin("EXPERIMENT_TAG", experiment=experiment)


def kinds_of(tried: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The type of each hyper-parameter, which all its values have."""
    values: defaultdict[str, list[Any]] = defaultdict(list)
    for own in tried:
        for name, value in own.items():
            values[name].append(value)
    return {name: _type(found) for name, found in values.items()}


def _type(values: Sequence[Any]) -> int:
    from tensorboard.plugins.hparams import api_pb2

    if all(isinstance(value, bool) for value in values):
        return int(api_pb2.DATA_TYPE_BOOL)
    if all(map(is_number, values)):
        return int(api_pb2.DATA_TYPE_FLOAT64)
    return int(api_pb2.DATA_TYPE_STRING)


def _hparams(trial: TrialRecord) -> Mapping[str, bool | float | str]:
    """Numbers, flags and texts as they are; permutations and assignments as JSON text."""
    return {STATUS: str(trial.status), **{name: _plain(value) for name, value in trial.configuration.items()}}


def _plain(value: Value) -> bool | float | str:
    if isinstance(value, (bool, str)):
        return value
    return float(value) if isinstance(value, (int, float)) else json.dumps(plain(value))


def _scalars(
    trial: TrialRecord, metrics: Sequence[str], reports: Sequence[Report]
) -> Iterator[tuple[int, Any]]:
    """The curve of each metric; last, or alone, what the trial came to."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    def scalar(name: str, value: float) -> Any:
        return Summary(value=[Summary.Value(tag=name, simple_value=value)])

    for report in reports:
        for name, value in report.metrics.items():
            if math.isfinite(value):
                yield report.step, scalar(name, value)
    last = max((report.step for report in reports), default=0)
    for name in metrics:
        if name in trial.metrics and math.isfinite(trial.metrics[name].value):
            yield last, scalar(name, trial.metrics[name].value)
