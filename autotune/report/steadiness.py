"""Readings over time, with the state of the machine at each: clocks, temperature, waiting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.measure.outcome import Reading
from autotune.measure.readings import measures_itself, share_of
from autotune.report.evidence import Evidence, Place, opened

if TYPE_CHECKING:
    import pandas as pd

MOST_TRIALS = 400
"""How many search trials are used, taken evenly over the study."""
MOST_REPLICATES = 100
"""How many replicates are used: the latest."""
MOST_READINGS = 200_000
"""About how many readings are fetched, of search trials and again of replicates; if trials have tens of
thousands each, fewer trials are used."""
FEWEST_TRIALS = 10
"""At least so many trials are used, however many readings they have."""

CONTEXT = {
    "sm_clock_mhz": "GPU clock, MHz",
    "temperature_c": "GPU temperature, °C",
    "power_watts": "GPU power, W",
    "frequency_mhz": "CPU clock, MHz",
    "pace_us": "time of a fixed piece of work on the core, µs",
    "own_wait": "share of the time that what was measured waited for a CPU",
    "cpu_stall": "share of the time that tasks waited for a CPU",
    "memory_stall": "share of the time that tasks waited for memory",
    "io_stall": "share of the time that tasks waited for disks",
    "steal": "share of the time taken by the hypervisor",
}
"""Entries of a reading's context on the state of the machine, with their titles. Waits, stalls and steal
are recorded in seconds during the reading, and are converted to shares of it."""

SHARES = ("own_wait", "cpu_stall", "memory_stall", "io_stall", "steal")


def steadiness(place: Place, evidence: Evidence) -> pd.DataFrame:
    """A row for each reading of the first goal, in the order of time; of a long study, of some trials only.

    Columns: ``trial``, ``id``, ``purpose``, ``at`` (seconds since the study's first reading), ``value``,
    ``ratio`` (to the median of its own trial), ``discarded`` (why it does not count), and those of
    :data:`CONTEXT` that were sampled. ``attrs``: ``noise`` (the median over trials of the median absolute
    deviation, as a part of the median) and ``trials`` (how many were looked at).
    """
    import pandas as pd

    chosen = _chosen(evidence)
    with opened(place) as store:
        found = store.readings_in(chosen["id"].tolist())
    by_id: dict[Any, Any] = chosen.set_index("id").to_dict("index")
    rows: list[dict[str, Any]] = []
    for trial_id, readings in found:
        rows += _rows(trial_id, by_id[trial_id], readings, evidence.metric.name)
    columns = ["trial", "id", "purpose", "at", "value", "ratio", "discarded", *CONTEXT]
    frame = pd.DataFrame(rows, columns=columns)
    # Shares that are 0 in all readings are dropped: the machine may not report them.
    known = {name: frame[name] > 0 if name in SHARES else frame[name].notna() for name in CONTEXT}
    frame = frame.drop(columns=[name for name in CONTEXT if not known[name].any()])
    frame = frame.sort_values("at", kind="stable").reset_index(drop=True)
    if len(frame):
        frame["at"] -= frame["at"].min()
    counted = frame[frame["discarded"] == ""]
    spreads = (counted["ratio"] - 1.0).abs().groupby(counted["id"]).median()
    several = counted.groupby("id").size() > 2
    noise = float(spreads[several].median()) if several.any() else float("nan")
    frame.attrs |= {"noise": noise, "trials": len(found), "metric": evidence.metric.name}
    frame.attrs |= {"study": evidence.study.label, "replayed": evidence.study.replayed}
    return frame


def _chosen(evidence: Evidence) -> pd.DataFrame:
    import pandas as pd

    own = evidence.trials[evidence.trials["metric." + evidence.metric.name].notna()]
    if len(own) > (most := _most(own, evidence.metric.name, MOST_TRIALS)):
        own = own.iloc[np.linspace(0, len(own) - 1, most).round().astype(int)]
    replicates = evidence.all_trials[evidence.all_trials["purpose"] != "search"]
    replicates = replicates.tail(_most(replicates, evidence.metric.name, MOST_REPLICATES))
    return pd.concat([own, replicates])[["id", "trial", "purpose", "measure_began", "proposed", "finished"]]


def _most(trials: pd.DataFrame, metric: str, usually: int) -> int:
    """How many of ``trials`` to use, by how many readings they have on average."""
    each = trials[f"metric.{metric}.n"].mean()
    return min(usually, max(FEWEST_TRIALS, int(MOST_READINGS / each))) if each > 0 else usually


def _rows(
    trial_id: int, trial: dict[str, Any], readings: Iterable[Reading], metric: str
) -> Iterable[dict[str, Any]]:
    own = [reading for reading in readings if reading.metric == metric]
    values = np.array([r.value for r in own if not r.discarded and np.isfinite(r.value)])
    if not len(values):
        return []
    middle = float(np.median(values))
    began = _began(trial, own)
    return [
        {
            "trial": trial["trial"],
            "id": trial_id,
            "purpose": trial["purpose"],
            "at": began + reading.at,
            "value": reading.value,
            "ratio": reading.value / middle if middle and np.isfinite(reading.value) else float("nan"),
            "discarded": reading.discarded,
            **_context(reading),
        }
        for reading in own
    ]


def _began(trial: dict[str, Any], readings: list[Reading]) -> float:
    """When the first reading was taken, in POSIX seconds.

    For a replicate it is computed from its end, which is the end of its finale.
    """
    last = max((r.at for r in readings), default=0.0)
    if trial["purpose"] == "search":
        began = trial["measure_began"]
        return float(began if began == began else trial["proposed"])
    ended = trial["finished"]
    return float(ended) - last if ended == ended and ended is not None else float(trial["proposed"])


def _context(reading: Reading) -> dict[str, float]:
    said, wall = reading.context, reading.context.get("wall", 0.0)
    found = {name: said[name] for name in CONTEXT if name in said and name not in SHARES}
    if wall > 0:
        # Entries that did not change during the reading are not recorded, which share_of takes for 0.
        found |= {name: share_of(said, name) for name in SHARES}
    if "own_wait" not in said and not ("cpu" in said and measures_itself(said)):
        found.pop("own_wait", None)  # unknown, not 0
    return found
