"""What a store knows of a kernel: the winners of its studies, as recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.hook.case import Case, plain
from autotune.hook.recipes import Recipe
from autotune.hook.search import DEVICE, TYPES
from autotune.session.result import load_result
from autotune.store.address import read_address
from autotune.store.store import Store


def stored_recipes(kernel: str, key: Sequence[str], url: str | None) -> tuple[Recipe, ...]:
    """One recipe for each study of the kernel that has a winner, the newest first; none without a store.

    Raises :class:`autotune.errors.AutotuneError` where there is a store that cannot be read.
    """
    file = read_address(url).file
    if file is not None and not file.exists():
        return ()
    found = []
    with Store.open(url, readonly=True) as store:
        for study in reversed(store.studies(kernel)):
            case = _case(study.workload, key)
            if case is None or study.replayed:
                continue
            result = load_result(store, study)
            if result.best is not None:
                configuration = {name: plain(value) for name, value in result.best.items()}
                device = str(study.workload[DEVICE])
                found.append(Recipe(kernel, device, case, configuration, study=study.label))
    return tuple(found)


def _case(workload: Mapping[str, Any], key: Sequence[str]) -> Case | None:
    """The case that a study is of; ``None`` where it is none of a kernel with this key."""
    types = workload.get(TYPES)
    if DEVICE not in workload or not isinstance(types, Mapping) or any(name not in workload for name in key):
        return None
    return Case({name: plain(workload[name]) for name in key}, {n: str(t) for n, t in types.items()})
