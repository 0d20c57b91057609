"""A search as the benchmarks on several devices make it: in this process, whose ranks are kept all along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.space.spec import StudySpec

Knobs = Mapping[str, Any]

FINALISTS = 3
"""So many of the best of a search are measured again."""


def make_objective(spec: StudySpec, folder: Path) -> Any:
    """The objective of a space, in this process."""
    from autotune.measure.loading.load import load_objective
    from autotune.measure.objective import Context
    from autotune.provenance.device import device_facts

    return load_objective(spec.objective, Context(spec.workload, device_facts(), folder))


def best_of(
    spec: StudySpec, objective: Any, store: Path, strategy: str, trials: int, seed: int
) -> tuple[list[Knobs], dict[str, int]]:
    """The best by time of a search that goes on in ``store``, and how many trials ended how."""
    from autotune.session.api import open_session
    from autotune.status import Status
    from autotune.store.store import Store

    spec = replace(
        spec,
        search=replace(spec.search, strategy=strategy, seed=seed, transfer=False),
        budget=replace(spec.budget, trials=trials),
    )
    with Store.open(str(store)) as opened:
        result = open_session(spec, opened, objective=objective).run()
    good = [trial for trial in result.trials if trial.status is Status.OK]
    good.sort(key=lambda trial: trial.metrics["time"].value)
    counts = {str(status): count for status, count in result.statuses.items()}
    return [dict(trial.configuration) for trial in good[:FINALISTS]], counts


def links_of(lines: Iterable[Mapping[str, Any]]) -> str:
    """On which links all of it was measured, as ``network`` of each line has it."""
    shaped = all(line["network"].get("network") == "shaped" for line in lines)
    return "on links of the test bed" if shaped else "NOT on links as asked: over the loopback interface"
