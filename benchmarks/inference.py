"""A model's answers: milliseconds a batch, run as a search says, beside eager PyTorch and ``torch.compile``.

    python -m benchmarks.inference --time 180 --out benchmarks/results/inference.md

Each row is a search of ``model-inference``, and its winner as the interleaved re-measurement has it. A study
that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from autotune.provenance.device import device_facts
from autotune.session.result import Comparison, Result
from autotune.space.configuration import Value
from autotune.space.reading.reader import read_spec
from benchmarks.publishing import machine, software
from benchmarks.running import run_as_command
from benchmarks.searched_rows import Searched, interval, over, ratio, row, searched_rows, workload_rows

SPACE = Path(__file__).parents[1] / "searchspaces" / "model-inference.yaml"
WORKLOADS: Mapping[str, Mapping[str, Value]] = {
    "convolutional, weights fixed": {},
    "convolutional, weights change": {"weights": "change"},
    "transformer, weights fixed": {"model": "transformer", "width": 64, "layers": 2},
}


def _line(name: str, result: Result) -> str:
    time, made = result.metrics["time"], result.metrics["compile_seconds"].value
    return row(
        result,
        name,
        interval(time, ".2f", 1e3),
        ratio(result.speedup),
        over(result, "torch-compile"),
        over(result, "max-autotune"),
        f"{made:.1f}",
        _calls(made, time.value, result.speedup),
    )


def _calls(made: float, time: float, speedup: Comparison | None) -> str:
    """So many calls win back what making it took."""
    if speedup is None or not speedup.low or speedup.low <= 1:
        return "-"
    return f"{made / (time * (speedup.estimate - 1)):,.0f}"


def _about() -> tuple[str, ...]:
    workload = read_spec(SPACE, device=device_facts()).workload
    return (
        f"{software('torch', 'numpy')}; {machine()}, of which one measures and others compile;"
        f" batches of {workload['batch']}; strategy auto, seed 0.",
        "Speed-ups with 95 % intervals, from the interleaved re-measurement, over the default of the space"
        " (eager), over `torch.compile` as it comes and with `max-autotune`. *Compile*: seconds until the"
        " winner's first answer. *Calls*: so many win them back over the default.",
    )


if __name__ == "__main__":
    columns = "model | ms a batch | over the default | torch.compile | max-autotune | compile | calls"
    searched = Searched(
        "Answers of a model", _about, columns, partial(workload_rows, SPACE, WORKLOADS, _line)
    )
    run_as_command(lambda: searched_rows(__file__, __doc__, 180, searched))
