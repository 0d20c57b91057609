"""The ready kernels for a GPU: first whether each of them runs at all, then each tuned for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import replace
from threading import Event
from typing import Any

from autotune.space.configuration import Value
from benchmarks.gpu_plan import Findings, Part, told
from benchmarks.gpu_search import Bench, search, space

KERNELS: Mapping[str, Mapping[str, Value]] = {
    "triton-gemm": {},
    "triton-softmax": {},
    "triton-layer-norm": {},
    "triton-attention": {},
    "triton-reduction": {},
    "cuda-gemm": {},
    "cuda-convolution": {},
    "cuda-stencil": {},
    "cuda-nms": {},
}
"""Each ready space, with what its workload has instead of the space's own."""

TINY: Mapping[str, Mapping[str, Value]] = {
    "triton-gemm": {"m": 33, "n": 50, "k": 40, "interpret": True},
    "triton-softmax": {"rows": 5, "columns": 130, "interpret": True},
    "triton-layer-norm": {"rows": 5, "columns": 130, "dtype": "float32", "interpret": True},
    "triton-attention": {"batch": 1, "heads": 1, "length": 40, "head_dim": 16, "interpret": True},
    "triton-reduction": {"rows": 33, "columns": 20, "interpret": True},
    "cuda-gemm": {"m": 33, "n": 20, "k": 17, "device": "cpu"},
    "cuda-convolution": {"height": 20, "width": 33, "filter_height": 3, "filter_width": 5, "device": "cpu"},
    "cuda-stencil": {"height": 33, "width": 20, "steps": 3, "device": "cpu"},
    "cuda-nms": {"boxes": 60, "device": "cpu"},
}
"""The same of a dry run: sizes that an interpreter gets through."""

TUNED = tuple(name for name in KERNELS if name != "triton-gemm")
"""The Triton product has a comparison of its own."""

AT_ONCE = 3
"""Smoke checks beside one another. Their times are rough: they only show that there are some."""

ENDING_SECONDS = 5.0
"""How long smoke checks that were told to end are waited for: what comes next has the GPU to itself."""

DEFEND = 0.5
"""Of a kernel's time, what its re-measurement is left: most of that is starting processes, and warming up in
each of eight rounds."""

FINALISTS = 2
"""Beside the default and one or two of the vendor's. Each costs a process, and a part of each round."""


def workload(bench: Bench, name: str) -> Mapping[str, Value]:
    return TINY[name] if bench.dry else KERNELS[name]


def smoke_part(
    bench: Bench,
    names: Sequence[str],
    weight: float,
    learnt: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> Part:
    """Each kernel's default built, checked and read: what does not work here shows in the first minute.

    ``learnt`` is given what was found of each kernel.
    """

    def run(seconds: float, found: Findings) -> None:
        kernels: dict[str, Any] = {}
        found["kernels"] = kernels
        over = Event()
        pool = ThreadPoolExecutor(1 if bench.dry else AT_ONCE)
        begun = [pool.submit(lambda name: (name, smoke(bench, name, seconds, over)), n) for n in names]
        try:
            for one in as_completed(begun):
                name, smoked = one.result()
                kernels[name] = smoked
        finally:
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            # In the order of the list, whichever was done first.
            found["kernels"] = {name: kernels[name] for name in names if name in kernels}
            learnt(found["kernels"])
            wait(begun, ENDING_SECONDS)

    return Part("smoke check", weight, run)


def smoke(bench: Bench, name: str, seconds: float, over: Event) -> dict[str, Any]:
    """The default of one kernel: its status, about its time, and how long all of it took.

    It ends soon after ``over`` is set, in whatever state.
    """
    began = time.monotonic()
    try:
        spec = space(bench, name, workload(bench, name))
        found = search(bench, spec, seconds, trials=1, over=over)
        trial = found.result.trials[0]
    except Exception as error:  # noqa: BLE001 - one kernel does not keep the others from being looked at
        return {"status": "error", "message": told(error), "took": time.monotonic() - began}
    estimate = trial.metrics.get("time")
    return {
        "status": str(trial.status),
        "message": trial.message,
        "time": estimate.value if estimate else None,
        "error": trial.metrics["error"].value if "error" in trial.metrics else None,
        "phases": {phase: round(seconds, 3) for phase, seconds in trial.phases.items()},
        "timing": trial.facts.get("timing"),
        "resources": trial.facts.get("resources"),
        "took": time.monotonic() - began,
    }


def tune_part(bench: Bench, name: str, weight: float) -> Part:
    """One kernel searched, its finalists measured again beside default and vendor."""

    def run(seconds: float, found: Findings) -> None:
        spec = space(bench, name, workload(bench, name))
        spec = replace(spec, measure=replace(spec.measure, finalists=FINALISTS))
        searched = search(bench, spec, seconds, defend=DEFEND * seconds)
        found |= {"workload": dict(spec.workload), **searched.to_document()}

    return Part(f"tune {name}", weight, run, least=bench.least(45.0))
