"""All studies of a store: the progress of each, what it found, what failed, and what runs now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.report.evidence import Place, opened
from autotune.session.answers import load_answer
from autotune.session.result import Result
from autotune.session.searches import gone, searches_of, tried_in
from autotune.space.spec import say_workload
from autotune.status import Status
from autotune.store.records import SessionRecord, StudyRecord, TrialRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("study", "workload", "state", "trials", "of", "succeeded", "failed", "pruned", "in_flight"),
    *("metric", "unit", "goal", "best", "speedup", "low", "high", "against_default"),
    *("replayed", "begun", "ended_by"),
)


def studies(place: Place = None) -> pd.DataFrame:
    """A row for each study, the newest first.

    Columns: ``study`` (its label), ``workload``, ``state`` (``searching``, ``finished``, ``stopped``: its
    last session was not closed, ``empty``), ``trials``, ``of`` (the budget, NaN without one), ``succeeded``,
    ``failed``, ``pruned``, ``in_flight``, ``metric``, ``unit``, ``goal``, ``best``, ``speedup`` with ``low``
    and ``high`` (over the default, as measured again; NaN where it was not), ``against_default`` (in words),
    ``replayed``, ``begun`` (a time in UTC) and ``ended_by``.

    This takes a few short queries for each study, however many trials it has.
    """
    import pandas as pd

    with opened(place) as store:
        rows = [_row(store, study) for study in reversed(store.studies())]
        url = store.url
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame.attrs["store"] = url
    return frame


def _row(store: Store, study: StudyRecord) -> dict[str, Any]:
    result = load_answer(store, study)
    sessions, tried = searches_of(store, study.id), tried_in(store, study.id)
    statuses = result.statuses
    in_flight = len(held(store, study))
    budget = (tried[-1].settings.get("budget") or {}).get("trials") if tried else None
    best = result.metrics.get(result.metric.name)
    speedup = result.speedup
    return {
        "study": study.label,
        "workload": say_workload(study.workload),
        "state": _state(sessions, in_flight),
        "trials": sum(statuses.values()),
        "of": budget if budget else np.nan,
        "succeeded": statuses.get(Status.OK.value, 0),
        "failed": sum(result.failures.values()),
        "pruned": statuses.get(Status.PRUNED.value, 0),
        "in_flight": in_flight,
        "metric": result.metric.name,
        "unit": result.metric.unit,
        "goal": result.metric.goal,
        "best": best.value if best else np.nan,
        "speedup": speedup.estimate if speedup else np.nan,
        "low": speedup.low if speedup else np.nan,
        "high": speedup.high if speedup else np.nan,
        "against_default": _against_default(result),
        "replayed": study.replayed,
        "begun": _utc(study.created_at),
        "ended_by": tried[-1].reason if tried else "",
    }


def _state(sessions: Sequence[SessionRecord], in_flight: int) -> str:
    if not sessions:
        return "empty"
    if in_flight:
        return "searching"
    return "finished" if sessions[-1].finished_at is not None else "stopped"


def _against_default(result: Result) -> str:
    if result.best is None:
        now = " in the space as it is now" if result.statuses.get(Status.OK) else ""
        return f"nothing succeeded{now}"
    if not result.defended:
        return result.undefended
    if result.is_default:
        return "no better"
    return "better" if result.speedup or result.gain else "no default to compare with"


def _utc(at: float) -> Any:
    import pandas as pd

    return pd.Timestamp(at, unit="s", tz="UTC").floor("s")


def outcomes(place: Place = None) -> pd.DataFrame:
    """A row for each study and status: ``study``, ``status``, ``trials``, ``share``, ``failed`` (a flag)."""
    import pandas as pd

    with opened(place) as store:
        found = store.studies()
    rows = [
        (study.label, status, count, count / sum(study.counts.values()), Status(status).failed)
        for study in reversed(found)
        for status, count in study.counts.items()
    ]
    return pd.DataFrame(rows, columns=["study", "status", "trials", "share", "failed"])


def running(place: Place = None) -> pd.DataFrame:
    """A row for each trial that a live search has in flight.

    Columns: ``study``, ``trial``, ``status``, ``worker``, ``seconds`` (since it began) and ``configuration``.
    """
    import time

    import pandas as pd

    from autotune.report.knob_views import say_configuration

    rows = []
    with opened(place) as store:
        for study in store.studies():
            for trial in held(store, study):
                knobs = say_configuration(trial.configuration)
                seconds = time.time() - (trial.started_at or trial.proposed_at)
                rows.append((study.label, trial.number, str(trial.status), trial.worker, seconds, knobs))
    return pd.DataFrame(rows, columns=["study", "trial", "status", "worker", "seconds", "configuration"])


def held(store: Store, study: StudyRecord) -> list[TrialRecord]:
    """The trials that wait or run, without those of a search whose process is gone."""
    held = [status for status in (Status.RUNNING, Status.WAITING) if study.counts.get(status.value)]
    dropped = gone(store.sessions(study.id)) if held else set()
    found = [trial for status in held for trial in store.trials(study.id, "search", status)]
    return [trial for trial in found if trial.session_id not in dropped]


def watch(place: Place = None, seconds: float = 5.0) -> None:
    """In a notebook: show progress and running trials, every ``seconds`` seconds, until nothing runs."""
    import time

    from IPython import display

    from autotune.report.figures_compare import progress_figure

    page: Any = display  # untyped

    while True:
        frame, at_work = studies(place), running(place)
        page.clear_output(wait=True)
        page.display(progress_figure(frame), at_work if len(at_work) else "nothing runs now")
        if at_work.empty:
            return
        time.sleep(seconds)


def comparable(place: Place = None) -> list[str]:
    """The labels of studies to compare: those of the name that has several studies and the most trials.

    If no name has several, the newest studies of two names.
    """
    groups: dict[str, list[StudyRecord]] = {}
    with opened(place) as store:
        for study in store.studies():
            if study.counts:
                groups.setdefault(study.name, []).append(study)
    several = [group for group in groups.values() if len(group) > 1]
    if not several:
        return [group[-1].label for group in groups.values()][-2:]
    most = max(several, key=lambda group: sum(sum(study.counts.values()) for study in group))
    return [study.label for study in most]
