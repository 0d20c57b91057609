"""Comparing studies: of other devices, versions or workloads; what transfers, and what got worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.provenance.document import part_of
from autotune.report.evidence import Evidence, Place, load_evidence, opened
from autotune.session.answers import default_in
from autotune.session.families.matrix import family_of, load_matrix
from autotune.space.configuration import Configuration
from autotune.space.spec import say_workload

if TYPE_CHECKING:
    import pandas as pd

LEAST_COMMON = 8
"""How many configurations two studies must share for a correlation."""


def load_all(place: Place, studies: Sequence[str | int]) -> list[Evidence]:
    """Several studies of a store, by name, ``name#id`` or id."""
    with opened(place) as store:
        return [load_evidence(store, study) for study in studies]


def differences_between(evidences: Sequence[Evidence]) -> pd.DataFrame:
    """A row for each study: ``study``, and those facts of machine, software, code and workload that differ.

    ``best`` and ``default`` are the values of the first goal as measured again, or else in the search.
    ``speedup`` with ``low`` and ``high`` is that of the winner over the default.
    """
    import pandas as pd

    facts = pd.DataFrame([_facts(evidence) for evidence in evidences])
    varying = [name for name in facts.columns if facts[name].astype(str).nunique() > 1]
    outcomes = pd.DataFrame([_outcome(evidence) for evidence in evidences])
    labels = pd.DataFrame({"study": [evidence.study.label for evidence in evidences]})
    return pd.concat([labels, facts[varying], outcomes], axis=1)


def _facts(evidence: Evidence) -> dict[str, str]:
    environment, study = evidence.environment, evidence.study
    document = evidence.segment.document if evidence.segment else {}
    settings = evidence.sessions[0].settings if evidence.sessions else {}
    search = part_of(evidence.tried[0].settings, "search") if evidence.tried else {}
    devices = part_of(environment, "gpus").get("devices") or []
    facts = {
        "workload": say_workload(study.workload),
        "processor": str(part_of(environment, "machine", "processor").get("name") or ""),
        "gpus": ", ".join(str(device.get("name")) for device in devices),
        "host": str(part_of(environment, "machine").get("hostname") or ""),
        "kernel": str(part_of(environment, "system").get("kernel") or ""),
        "python": str(part_of(environment, "python").get("version") or ""),
        "engine": str(part_of(settings, "engine").get("version") or ""),
        "strategy": str(search.get("strategy") or ""),
        "seed": str(search.get("seed", "")),
        "commit": str(part_of(document, "repository", "head").get("commit") or "")[:12],
        "source": str(document.get("source_hash") or ""),
    }
    packages, compilers = part_of(environment, "packages"), part_of(environment, "compilers")
    facts |= {name: str(packages.get(name, "")) for name in ("numpy", "torch", "triton")}
    return facts | {name: str(compilers.get(name) or "") for name in ("gcc", "nvcc")}


def _outcome(evidence: Evidence) -> dict[str, Any]:
    best, default = _measured(evidence, "winner"), _measured(evidence, "default")
    speedup = (evidence.verdict or {}).get("speedup") or {}
    return {
        "best": best[0],
        "default": default[0],
        "speedup": speedup.get("estimate", math.nan),
        "low": speedup.get("low", math.nan),
        "high": speedup.get("high", math.nan),
    }


def _measured(evidence: Evidence, who: str) -> tuple[float, float, float]:
    """Value and interval of the winner or the default in the last finale, or else of its search trial."""
    from autotune.report.standing import finale

    again = finale(evidence)
    label = (evidence.verdict or {}).get("label") if who == "winner" else "the default"
    row = again[(again["label"] == label) & again["value"].notna()]
    if len(row):
        return float(row["value"].iloc[0]), float(row["low"].iloc[0]), float(row["high"].iloc[0])
    own = evidence.succeeded
    if who == "default":
        default = default_in(evidence.study)
        own = own[own["kind"] == "default" if default is None else own["hash"] == default.hash]
    if own.empty:
        return math.nan, math.nan, math.nan
    at = _best_row(evidence, own)
    name = f"metric.{evidence.metric.name}"
    return float(at[name]), float(at[f"{name}.low"]), float(at[f"{name}.high"])


def rank_correlations(evidences: Sequence[Evidence]) -> pd.DataFrame:
    """A row for each pair of studies: ``study``, ``other``, ``common`` and ``correlation``.

    ``common`` is the number of configurations that both have measured. ``correlation`` is Spearman's, of
    the first goal over these: 1 if both put them in the same order, so that one study can teach the other.
    NaN if there are fewer than eight, or all have the same value in one study.
    """
    import pandas as pd
    from scipy.stats import spearmanr

    values = [_by_hash(evidence) for evidence in evidences]
    rows = []
    for one in range(len(evidences)):
        for other in range(one + 1, len(evidences)):
            common = sorted(set(values[one]) & set(values[other]))
            found = math.nan
            left, right = ([values[which][digest] for digest in common] for which in (one, other))
            if len(common) >= LEAST_COMMON and len(set(left)) > 1 and len(set(right)) > 1:
                found = float(spearmanr(left, right).statistic)
            rows.append((evidences[one].study.label, evidences[other].study.label, len(common), found))
    return pd.DataFrame(rows, columns=["study", "other", "common", "correlation"])


def _by_hash(evidence: Evidence) -> dict[str, float]:
    """The value of each configuration, lower is better: as measured again, or else in the search.

    A trial that was pruned by its readings counts too: it was read until it was certainly worse.
    """
    own = evidence.all_trials
    own = own[own["value"].notna() & (own["purpose"] != "baseline")]
    return dict(zip(own["hash"], evidence.sign * own["value"], strict=True))


def what_transfers(evidences: Sequence[Evidence]) -> pd.DataFrame:
    """A row for each ordered pair of studies: how good the best configuration of ``study`` is in ``other``.

    ``value`` is its value there, and ``over_best`` how many times worse than the best there (1 is as good);
    NaN if ``other`` never tried it. ``over_default`` is how many times better than the default it is there.
    The ratios are NaN if one of the two values is not positive.
    """
    import pandas as pd

    rows = []
    for one, other in permutations(evidences, 2):
        digest = _best_hash(one)
        there = _by_hash(other)
        value = there.get(digest, math.nan)
        best = min(there.values(), default=math.nan)
        default = _measured(other, "default")[0]
        value, best = other.sign * value, other.sign * best
        worse, gain = _times(value, best, other.sign), _times(default, value, other.sign)
        rows.append((one.study.label, other.study.label, value, worse, gain))
    return pd.DataFrame(rows, columns=["study", "other", "value", "over_best", "over_default"])


def _times(worse: float, better: float, sign: float) -> float:
    """How many times as good ``better`` is: 1 if they are equal, NaN if a value is not positive."""
    if worse == better:
        return 1.0
    if not (worse > 0 and better > 0):
        return math.nan
    return worse / better if sign > 0 else better / worse


def _best_hash(evidence: Evidence) -> str:
    verdict = evidence.verdict
    if verdict is not None:
        return Configuration(verdict["configuration"]).hash
    own = evidence.succeeded
    return "" if own.empty else str(_best_row(evidence, own)["hash"])


def _best_row(evidence: Evidence, own: pd.DataFrame) -> Any:
    return own.iloc[int(np.argmin(evidence.sign * own["value"].to_numpy(dtype=np.float64)))]


def regressions(evidences: Sequence[Evidence]) -> pd.DataFrame:
    """Compare the winner and the default of each study with those of the first of its workload; a row for
    each.

    Columns: ``study``, ``who``, ``value``, ``before`` (in the first), ``ratio`` (above 1 is worse)
    with ``low`` and ``high``, and ``verdict``: ``worse``, ``better``, ``as before`` or ``not measured``. The
    interval is computed from the two stored intervals and does not include how much sessions differ from each
    other, so a small difference is no proof. ``autotune replay`` measures that.
    """
    import pandas as pd

    rows = []
    for evidence in evidences:
        first = next(one for one in evidences if one.study.workload == evidence.study.workload)
        for who in () if first is evidence else ("winner", "default"):
            before, now = _measured(first, who), _measured(evidence, who)
            ratio, low, high = _ratio(before, now, evidence.sign)
            verdict = "as before"
            if low > 1 or high < 1:
                verdict = "worse" if low > 1 else "better"
            known = verdict if math.isfinite(ratio) else "not measured"
            rows.append((evidence.study.label, who, now[0], before[0], ratio, low, high, known))
    columns = ["study", "who", "value", "before", "ratio", "low", "high", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _ratio(
    before: tuple[float, float, float], now: tuple[float, float, float], sign: float
) -> tuple[float, float, float]:
    """How many times worse, with an interval whose half-widths are added in squares, on a log scale."""
    if not (before[0] > 0 and now[0] > 0):
        return math.nan, math.nan, math.nan
    ratio = (now[0] / before[0]) ** sign
    halves = [math.log(high / low) / 2 if 0 < low <= high else math.inf for _, low, high in (before, now)]
    half = math.hypot(*halves)
    spread = math.exp(half) if half < 700 else math.inf
    return ratio, ratio / spread, ratio * spread


def workloads(place: Place, study: str | int | None = None) -> pd.DataFrame:
    """How good the winners of a family are on other workloads; a row for each workload and configuration.

    Columns: ``workload``, ``configuration`` (the studies that it won, or ``default``), ``value``,
    ``over_best`` (1 is the best there), ``status`` and ``held_out``. ``study`` is any study of the family; by
    default the newest family is taken. Empty if there is none.
    """
    import pandas as pd

    columns = ["workload", "configuration", "value", "over_best", "status", "held_out"]
    with opened(place) as store:
        wanted = reversed(store.studies()) if study is None else [store.study(study)]
        family = next((kin for one in wanted if len(kin := family_of(store, one)) > 1), ())
        if len(family) < 2:
            return pd.DataFrame(columns=columns)
        matrix = load_matrix(store, family)
    sign = matrix.metric.sign
    rows = []
    for which, cells in enumerate(matrix.cells):
        known = (cell.value for cell in cells if math.isfinite(cell.value))
        best = min(known, key=lambda value: sign * value, default=math.nan)
        for column, cell in enumerate(cells):
            found = sorted(matrix.found_by[column])
            won = " ".join(f"#{matrix.studies[row].id}" for row in found)
            name = "default" if column == matrix.default else won or f"column {column}"
            over = _times(cell.value, best, sign)
            label = say_workload(matrix.studies[which].workload)
            rows.append((label, name, cell.value, over, cell.status, matrix.held_out[which]))
    return pd.DataFrame(rows, columns=columns)
