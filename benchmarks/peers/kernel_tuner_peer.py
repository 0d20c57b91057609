"""Kernel Tuner's strategies in its simulation mode (van Werkhoven, FGCS 2019; Willemsen et al., 2024)."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("kernel_tuner",)
MODULES = ("kernel_tuner",)


def search(
    strategy: str, recorded: Mapping[str, Any], seed: int, tries: int
) -> tuple[list[dict[str, Any]], float]:
    """What ``strategy``, with its default options, tries in a recorded space, in order, repeats
    included; and the seconds of processor time that it took.

    ``recorded`` holds ``knobs`` (the values of each), ``rows`` (the values of each configuration) and
    ``times`` (ms; ``None`` for a failure). All rows are feasible to Kernel Tuner, and no others.
    """
    import kernel_tuner
    import numpy
    from constraint import FunctionConstraint

    names = list(recorded["knobs"])
    rows = {tuple(row) for row in recorded["rows"]}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(_cache(recorded)))
        random.seed(seed)
        numpy.random.seed(seed)
        began = time.process_time()
        results, _ = kernel_tuner.tune_kernel(
            "recorded",
            "",
            (1,),
            [],
            recorded["knobs"],
            restrictions=[FunctionConstraint(lambda *values: values in rows)],
            strategy=strategy,
            strategy_options={"max_fevals": tries},
            cache=str(cache),
            simulation_mode=True,
            lang="C",
            quiet=True,
        )
        seconds = time.process_time() - began
    return [{name: result[name] for name in names} for result in results], seconds


def _cache(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The recording as a cache file of Kernel Tuner."""
    names = list(recorded["knobs"])
    return {
        "device_name": "recorded",
        "kernel_name": "recorded",
        "problem_size": [1],
        "tune_params_keys": names,
        "tune_params": recorded["knobs"],
        "objective": "time",
        "cache": {
            ",".join(map(str, row)): _entry(names, row, time)
            for row, time in zip(recorded["rows"], recorded["times"], strict=True)
        },
    }


def _entry(names: Sequence[str], row: Sequence[Any], time: float | None) -> dict[str, Any]:
    measured = {"time": "RuntimeFailedConfig"} if time is None else {"time": time, "times": [time]}
    durations = dict.fromkeys(("compile_time", "verification_time", "benchmark_time", "framework_time"), 0)
    return {**dict(zip(names, row, strict=True)), **measured, **durations, "strategy_time": 0}
