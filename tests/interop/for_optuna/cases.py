"""A kernel to be searched by Optuna, and studies of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from autotune.interop.optuna import AutotuneSampler
from autotune.space.knobs import (
    Choice,
    IntegerRange,
    OrderedValues,
)
from autotune.space.space import Space

TILES = [8, 16, 32, 64, 128]
RULE = "tile_m * tile_n <= 4096"
SPACE = Space(
    [
        OrderedValues("tile_m", tuple(TILES), default=16),
        OrderedValues("tile_n", tuple(TILES), default=16),
        IntegerRange("depth", 1, 6),
        Choice("layout", ("row", "column")),
    ],
    constraints=[RULE],
)


def kernel(trial: optuna.Trial) -> float:
    m, n = trial.suggest_categorical("tile_m", TILES), trial.suggest_categorical("tile_n", TILES)
    depth, layout = trial.suggest_int("depth", 1, 6), trial.suggest_categorical("layout", ["row", "column"])
    return cost({"tile_m": m, "tile_n": n, "depth": depth, "layout": layout})


def cost(c: Mapping[str, Any]) -> float:
    """Best at 32 x 128, depth 4, column."""
    off = abs(c["tile_m"] - 32) / 32 + abs(c["tile_n"] - 128) / 128 + abs(c["depth"] - 4) / 4
    return float(1.0 + off + 0.5 * (c["layout"] == "row"))


def allowed(params: Mapping[str, Any]) -> bool:
    return bool(params["tile_m"] * params["tile_n"] <= 4096)


def study(
    objective: Callable[[optuna.Trial], Any] = kernel, trials: int = 20, **sampler: Any
) -> optuna.Study:
    found = optuna.create_study(sampler=AutotuneSampler(**{"seed": 0, **sampler}))
    found.optimize(objective, n_trials=trials)
    return found


def tried(found: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in found.trials]


def different(found: optuna.Study) -> int:
    return len({tuple(sorted(params.items())) for params in tried(found)})


def mean_best(make: Callable[[int], optuna.samplers.BaseSampler]) -> float:
    def infeasible_ones_fail(trial: optuna.Trial) -> float:
        value = kernel(trial)
        if not allowed(trial.params):
            raise RuntimeError
        return value

    best = []
    for seed in range(10):
        found = optuna.create_study(sampler=make(seed))
        found.optimize(infeasible_ones_fail, n_trials=30, catch=(RuntimeError,))
        best.append(found.best_value)
    return sum(best) / len(best)


def stored(folder: Path, strategy: str = "") -> optuna.storages.BaseStorage | str:
    """A storage that outlives its object: a database once, where it matters that it is one; it is slow."""
    if strategy == "random":
        return f"sqlite:///{folder / 'study.db'}"
    return JournalStorage(JournalFileBackend(str(folder / "study.log")))


def resumes_the_same(
    objective: Callable[[optuna.Trial], Any], folder: Path, trials: int = 14, **sampler: Any
) -> None:
    whole = study(objective, trials=trials, **sampler)
    for begin, end in ((0, 5), (5, 9), (9, trials)):
        part = optuna.create_study(
            study_name="s",
            storage=stored(folder, sampler.get("strategy", "")),
            load_if_exists=True,
            sampler=AutotuneSampler(**{"seed": 0, **sampler}),
        )
        part.optimize(objective, n_trials=end - begin)
    assert tried(part) == tried(whole)
