"""``triton.autotune`` over a list of configurations of triton-gemm, in a process of its own.

    python -m benchmarks.gpu_triton_autotune < request.json > answer.json

The request has the ``workload`` and the list ``rows`` of configurations, none of which splits k: what
``triton.autotune`` tunes is one kernel. The answer has the ``seconds`` of its first call, in which it
compiles and times all of the list, and the ``row`` that it chose. Loading PyTorch and Triton, making the
inputs and the context on the GPU lie before that and are in ``started``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.space.configuration import Configuration, Value, plain

ROOT = Path(__file__).parents[1]
SPACE = ROOT / "searchspaces" / "triton-gemm.yaml"


class PeerError(Exception):
    """``triton.autotune`` did not come to an answer; the text says why."""


def ask(workload: Mapping[str, Value], rows: Sequence[Configuration], seconds: float) -> dict[str, Any]:
    """Run it, for at most so many seconds, with an empty compile cache. Raises :class:`PeerError`."""
    request = json.dumps({"workload": dict(workload), "rows": [plain(row) for row in rows]})
    with tempfile.TemporaryDirectory(prefix="triton-autotune-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.gpu_triton_autotune"],
                input=request,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                cwd=ROOT,
                env={**os.environ, "TRITON_CACHE_DIR": folder},
            )
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"not done with {len(rows)} configurations after {seconds:.0f} s") from error
    if done.returncode:
        raise PeerError(f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise PeerError(f"no answer: {(done.stdout + done.stderr).strip()[-500:]}") from error
    return answer


def main() -> None:
    began = time.perf_counter()
    request = json.load(sys.stdin)
    import torch
    import triton

    gemm, inputs, outputs = _problem(request["workload"])
    launches = [gemm.launches(Configuration(row))[0] for row in request["rows"]]
    configs = [
        triton.Config(dict(launch.constants), num_warps=launch.warps, num_stages=launch.stages)
        for launch in launches
    ]
    on_gpu = gemm.device.type == "cuda"
    # The interpreter has no device whose events could be asked.
    timing = {} if on_gpu else {"do_bench": _by_the_host}
    tuned = triton.autotune(configs=configs, key=["m", "n", "k"], **timing)(launches[0].kernel)
    tensors = {**inputs, **outputs}
    values = [tensors[v] if isinstance(v, str) else v for v in launches[0].arguments.values()]
    m, n = gemm.m, gemm.n
    if on_gpu:
        triton.runtime.driver.active.get_benchmarker()  # the driver's own start is not tuning
        torch.cuda.synchronize()
    start = time.perf_counter()
    tuned[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]), 1)](*values)
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    timed = [_median(tuned.configs_timings.get(config)) for config in configs]
    chosen = next(i for i, config in enumerate(configs) if config is tuned.best_config)
    answer = {
        "seconds": seconds,
        "started": start - began,
        "row": request["rows"][chosen],
        "failed": sum(value is None for value in timed),
        "milliseconds": timed,
        "versions": {"torch": torch.__version__, "triton": triton.__version__},
    }
    print(json.dumps(answer))


def _problem(workload: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The objective, with inputs and outputs of it."""
    import numpy as np
    import torch

    from autotune.measure.loading.load import load_objective
    from autotune.measure.objective import Context
    from autotune.provenance.device import device_facts
    from autotune.space.reading.reader import read_spec

    facts = device_facts("h200") if workload.get("interpret") else device_facts()
    spec = read_spec(SPACE, device=facts, workload=workload)
    gemm: Any = load_objective(
        spec.objective, Context(spec.workload, device_facts(), Path(tempfile.gettempdir()))
    )
    outputs = {
        name: torch.empty(shape, dtype=dtype, device=gemm.device)
        for name, (shape, dtype) in gemm.outputs().items()
    }
    return gemm, gemm.make_inputs(np.random.default_rng(0)), outputs


def _by_the_host(call: Any, quantiles: Sequence[float]) -> list[float]:
    start = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)


def _median(timing: Any) -> float | None:
    """Milliseconds; ``None`` where the configuration could not be run."""
    value = timing[0] if isinstance(timing, (list, tuple)) else timing
    return float(value) if value is not None and value != float("inf") else None


if __name__ == "__main__":
    main()
