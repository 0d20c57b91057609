"""Where the time of a search went: what the measuring device did, and the work beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.report.evidence import Evidence
from autotune.report.evidence_frame import PHASES

if TYPE_CHECKING:
    import pandas as pd

Spans = list[tuple[float, float]]
Floats = NDArray[np.float64]

ON_DEVICE = {
    "starting": "before the first trial: the machine is examined, workers start, earlier trials are read",
    "check": "answers verified on the device",
    "warmup": "calls before readings count",
    "measure": "readings",
    "handling": "the rest of a trial's time on the device: loading, sending, writing down, and waiting to be"
    " collected while the search chose what to try next",
    "waiting for prepare": "the device idle while the next configuration was being prepared",
    "tuner": "the device idle until the next configuration was proposed",
    "idle": "the device idle for other reasons: waiting for its turn, a worker started anew",
    "finale": "the finalists and the default measured again, and the verdict",
    "ending": "after the last trial: trials in flight are given up, workers end",
    "unaccounted": "no trial says what happened then",
}
"""The parts of a session's time and what they mean; each second counts for one of them."""

BEFORE = {
    "loading": "a worker starts and loads the objective; --time does not count it",
}
"""What came on top of the sessions' time."""

BESIDE = {
    "prepare": "compiling and other preparation, overlapped with measuring: the sum over all workers",
    "check ahead": "answers verified while the device measured something else",
}


def spend(evidence: Evidence) -> pd.DataFrame:
    """A row for each part: ``part``, ``seconds``, ``share`` (of the wall clock), ``where``, ``meaning``.

    The rows whose ``where`` is ``device`` count each second of each session once, so they add up to the
    wall clock; with several measuring lanes they are means over the lanes. In those with ``beside``, the
    work overlapped with that and took no time of its own; those with ``before`` came on top. ``attrs``:
    ``wall`` (seconds of all sessions together), ``lanes``, ``busy`` (the share of the time in which the
    device had a trial), ``trials``, and ``replayed``: then no device was used, and the times in the recording
    are not counted.
    """
    import pandas as pd

    own, replayed = evidence.trials, evidence.study.replayed
    device = _on_device(evidence)
    totals = device.totals
    rows = [
        (part, totals[part], "device", meaning) for part, meaning in ON_DEVICE.items() if totals[part] > 0
    ]
    loading = sum(float(session.settings.get("starting", 0.0)) for session in evidence.sessions)
    if loading:
        rows.insert(0, ("loading", loading, "before", BEFORE["loading"]))
    ahead = own[own["check_began"].notna()]
    for part, beside in (("prepare", own["prepare"].sum()), ("check ahead", ahead["check"].sum())):
        if beside and not replayed:
            rows.append((part, float(beside), "beside", BESIDE[part]))
    wall = device.wall
    frame = pd.DataFrame(rows, columns=["part", "seconds", "where", "meaning"])
    frame.insert(2, "share", frame["seconds"] / wall if wall > 0 else np.nan)
    busy = sum(totals[part] for part in ("check", "warmup", "measure", "handling"))
    frame.attrs |= {"wall": wall, "lanes": device.lanes, "busy": busy / wall if wall > 0 else 0.0}
    frame.attrs |= {"trials": len(own), "study": evidence.study.label, "replayed": replayed}
    return frame


@dataclass(frozen=True)
class _OnDevice:
    """What the measuring device did in all sessions."""

    totals: Mapping[str, float]
    """Seconds of each part of :data:`ON_DEVICE`."""
    wall: float
    lanes: int
    """The largest number of lanes in a session."""


def _on_device(evidence: Evidence) -> _OnDevice:
    own, everything = evidence.trials, evidence.all_trials
    defended = set(everything.loc[everything["purpose"] != "search", "session"])
    totals = dict.fromkeys(ON_DEVICE, 0.0)
    wall, most_lanes = 0.0, 1
    for session in evidence.sessions:
        trials = own[own["session"] == session.id]
        ended = evidence.end_of(session)
        seconds = ended - session.started_at
        wall += seconds
        lanes = _lanes(trials)
        most_lanes = max(most_lanes, len(lanes))
        after = "finale" if session.id in defended else "ending"
        if trials.empty and session.id in defended:
            totals["finale"] += seconds
            continue
        for lane in lanes or [trials.iloc[:0]]:
            for part, amount in _lane(session.started_at, ended, lane, trials, after).items():
                totals[part] += amount / max(len(lanes), 1)
    if not evidence.study.replayed:
        _without_timeline(own, totals)
    return _OnDevice(totals, wall, most_lanes)


def _lanes(trials: pd.DataFrame) -> list[pd.DataFrame]:
    there = trials[trials["measure_began"].notna()]
    return [group.sort_values("measure_began") for _, group in there.groupby("lane")]


def _lane(
    began: float, ended: float, lane: pd.DataFrame, trials: pd.DataFrame, after: str
) -> dict[str, float]:
    """The time of one measuring lane in a session by part; ``after`` is the part after its last trial."""
    totals = dict.fromkeys(ON_DEVICE, 0.0)
    if lane.empty:
        totals["unaccounted"] = max(ended - began, 0.0)
        return totals
    ready = trials[trials["prepare_began"].notna()]
    ahead = trials[trials["check_began"].notna()]
    preparing = merged(
        [
            *zip(ready["prepare_began"], ready["prepare_ended"], strict=True),
            *zip(ahead["check_began"], ahead["check_ended"], strict=True),
        ]
    )
    starts, stops = lane["measure_began"].to_numpy(), lane["measure_ended"].to_numpy()
    lengths = np.maximum(stops - starts, 0.0)
    for part in ("warmup", "measure"):
        totals[part] = float(lane[part].sum())
    totals["check"] = float(lane.loc[lane["check_began"].isna(), "check"].sum())
    inside = totals["check"] + totals["warmup"] + totals["measure"]
    totals["handling"] = max(float(lengths.sum()) - inside, 0.0)
    totals["starting"] = max(float(starts[0]) - began, 0.0)
    totals[after] = max(ended - float(stops.max()), 0.0)
    proposed = lane["proposed"].to_numpy()[1:]
    free, until = np.maximum.accumulate(stops)[:-1], starts[1:]
    until = np.maximum(until, free)
    thought = np.clip(proposed - free, 0.0, until - free)
    waited = covered(preparing, until) - covered(preparing, free + thought)
    totals["tuner"] = float(thought.sum())
    totals["waiting for prepare"] = float(waited.sum())
    totals["idle"] = float((until - free - thought - waited).sum())
    return totals


def _without_timeline(own: pd.DataFrame, totals: dict[str, float]) -> None:
    """Count the phases of trials that have no timeline, taking their seconds from what is unaccounted for."""
    blind = own[own["measure_began"].isna()]
    for part in PHASES:
        if part != "prepare":
            known = min(float(blind[part].sum()), totals["unaccounted"])
            totals[part] += known
            totals["unaccounted"] -= known


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """The spans in order, with those that overlap merged."""
    merged: Spans = []
    for began, ended in sorted(spans):
        if merged and began <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], ended))
        elif ended > began:
            merged.append((began, ended))
    return merged


def covered(spans: Spans, times: Floats) -> Floats:
    """How many seconds of the ``spans`` (from :func:`merged`) lie before each time."""
    if not spans:
        return np.zeros(len(times))
    began, ended = np.array(spans).T
    before = np.concatenate([[0.0], np.cumsum(ended - began)])
    place = np.searchsorted(began, times, side="right")
    last = np.where(place > 0, np.maximum(ended[np.maximum(place - 1, 0)] - times, 0.0), 0.0)
    return np.asarray(before[place] - last)
