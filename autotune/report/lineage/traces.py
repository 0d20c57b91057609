"""Tracing a number back to its origin: readings, machine, code, and the proposals that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotune.provenance.document import part_of
from autotune.report.evidence import Evidence, Place, opened
from autotune.report.knob_views import say_configuration, say_value_of
from autotune.report.pages.origin import flat
from autotune.report.words.story import reasons_of, tell
from autotune.store.records import TrialRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

MOST_ANCESTORS = 30
"""How many trials are traced back."""

READING = ("trial", "purpose", "metric", "value", "at", "discarded")


def winner_number(evidence: Evidence) -> int:
    """The number of the trial that the study's answer is based on.

    It is a search trial; for a workload that was held out, which has no search, one of the finale; if nothing
    succeeded, the first trial. Raises ``ValueError`` if there is no trial.
    """
    from autotune.space.configuration import Configuration

    own, every = evidence.succeeded, evidence.all_trials
    if evidence.verdict is not None:
        digest = Configuration(evidence.verdict["configuration"]).hash
        won = own[own["hash"] == digest]
        own = own if won.empty else won
        every = every[every["hash"] == digest]
    if not own.empty:
        return int(own.loc[(evidence.sign * own["value"]).sort_values(kind="stable").index[0], "trial"])
    if every.empty:
        raise ValueError(f"{evidence.study.label} has no trial yet")
    return int(every["trial"].min())


def readings_behind(place: Place, evidence: Evidence, number: int) -> pd.DataFrame:
    """A row for each reading of the trial's configuration, from the search and from all re-measurements.

    Columns: ``trial``, ``purpose``, ``metric``, ``value``, ``at`` (seconds since the trial's first reading),
    ``discarded``, and the sampled state of the machine.
    """
    import pandas as pd

    own = evidence.all_trials
    digest = own.loc[own["trial"] == number, "hash"].iloc[0]
    same = own[own["hash"] == digest].set_index("id")
    with opened(place) as store:
        found = store.readings_in([int(trial_id) for trial_id in same.index])
    rows = [
        {
            "trial": same.loc[trial_id, "trial"],
            "purpose": same.loc[trial_id, "purpose"],
            "metric": reading.metric,
            "value": reading.value,
            "at": reading.at,
            "discarded": reading.discarded,
            **reading.context,
        }
        for trial_id, readings in found
        for reading in readings
    ]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=READING).astype({"value": float})


def machine_behind(evidence: Evidence) -> pd.DataFrame:
    """A row for each fact of the environment that the study began in: ``what`` and ``which``."""
    import pandas as pd

    return pd.DataFrame(list(flat(evidence.environment)), columns=["what", "which"])


def code_behind(evidence: Evidence) -> pd.DataFrame:
    """A row for each file of the objective's frozen source: ``file``, ``bytes``, ``sha256``, ``kept``.

    ``attrs``: ``commit``, ``dirty``, ``source_hash``.
    """
    import pandas as pd

    document = evidence.segment.document if evidence.segment else {}
    files = [one for one in document.get("files") or [] if isinstance(one, Mapping)]
    frame = pd.DataFrame(
        [(one.get("name"), one.get("bytes"), one.get("sha256"), one.get("kept")) for one in files],
        columns=["file", "bytes", "sha256", "kept"],
    )
    head = part_of(document, "repository", "head")
    frame.attrs |= {"commit": head.get("commit"), "dirty": head.get("dirty")}
    frame.attrs["source_hash"] = document.get("source_hash")
    return frame


def proposals_behind(place: Place, evidence: Evidence, number: int) -> pd.DataFrame:
    """A row for each proposal: of trial ``number``, of those that it was made from, and so on back.

    Columns: ``trial``, ``proposed_by``, ``because``, ``expected`` (the prediction, beside the measurement),
    ``knew`` (how many results were known then), ``value`` and ``configuration``.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    with opened(place) as store:
        waiting, seen = [number], set()
        while waiting and len(rows) < MOST_ANCESTORS:
            at = waiting.pop(0)
            [trial] = store.numbered(evidence.study.id, [at])
            seen.add(at)
            row, parents = _proposal(store, evidence, trial)
            rows.append(row)
            waiting += [parent for parent in parents if parent not in seen and parent not in waiting]
    return pd.DataFrame(rows)


def _proposal(store: Store, evidence: Evidence, trial: TrialRecord) -> tuple[dict[str, Any], list[int]]:
    reasons = reasons_of(store, evidence.study, trial)
    metric = evidence.metric.name
    row = {
        "trial": trial.number,
        "proposed_by": trial.strategy,
        "because": "; ".join(reasons.because),
        "expected": "; ".join(one.say() for one in reasons.expected),
        "knew": trial.knew,
        "value": trial.metrics[metric].value if metric in trial.metrics else float("nan"),
        "configuration": say_configuration(trial.configuration),
    }
    return row, list(reasons.numbers.values())


def known_then(place: Place, evidence: Evidence, number: int) -> pd.DataFrame:
    """A row for each of the known results nearest to a trial when it was proposed, the nearest first.

    Columns: ``trial``, ``distance`` (0 for the same, 1 for the largest possible), ``value``, ``differs``.
    ``attrs``: ``results`` (how many were known), ``incumbent`` (the number of the best then, or ``None``).
    """
    import pandas as pd

    metric = evidence.metric.name
    with opened(place) as store:
        [trial] = store.numbered(evidence.study.id, [number])
        knowledge = tell(store, trial).knew
    near = knowledge.neighbours if knowledge else ()
    rows = [
        {
            "trial": one.trial.number,
            "distance": one.distance,
            "value": one.trial.metrics[metric].value if metric in one.trial.metrics else float("nan"),
            "differs": ", ".join(
                f"{name}: {say_value_of(there)} there, {say_value_of(here)} here"
                for name, (there, here) in one.differs.items()
            ),
        }
        for one in near
    ]
    frame = pd.DataFrame(rows, columns=["trial", "distance", "value", "differs"])
    incumbent = knowledge.incumbent if knowledge else None
    frame.attrs |= {"results": knowledge.results if knowledge else 0}
    frame.attrs["incumbent"] = None if incumbent is None else incumbent.number
    return frame
