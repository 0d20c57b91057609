"""How far the best configurations of one GPU can be known from recordings of another: a bound for transfer.

    python -m benchmarks.optimum_elsewhere --spaces DIR --out benchmarks/results/optimum_elsewhere.md

For each recording, and each other recording of the kernel (the names are alike up to the first ``-``): how
many configurations are within 5 % of the optimum, and where the best placed of these stands there. Where
that is behind hundreds of others, no search can be told of it by that GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Recording
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish
from benchmarks.recorded_spaces import kernel_of, recordings
from benchmarks.running import run_as_command

WITHIN = 1.05

Times = dict[tuple[tuple[str, object], ...], float]


def times(recording: Recording) -> Times:
    """The time of each configuration that ran, in ms, by its knobs."""
    return {tuple(sorted(e.configuration.items())): e.time for e in recording.entries if e.time is not None}


def rows(found: dict[str, Times]) -> Iterator[str]:
    """A line for each pair of recordings of one kernel."""
    yield from head("space | of | within 5 % | from | best placed of these | times the best there")
    for name, own in found.items():
        optimum = min(own.values(), default=0.0)
        near = [one for one, time in own.items() if time <= WITHIN * optimum]
        for other, there in found.items():
            if other == name or kernel_of(other) != kernel_of(name):
                continue
            ordered = sorted(there.values())
            best = min(
                (there[configuration] for configuration in near if configuration in there), default=None
            )
            place = "none ran" if best is None else f"{ordered.index(best) + 1:,}"
            factor = "" if best is None else f"{best / ordered[0]:.2f}"
            yield f"| {name} | {len(own):,} | {len(near)} | {other} | {place} | {factor} |"


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    options = parser.read()
    found = {name: times(read_recording(file)) for name, file in recordings(options.spaces)}
    about = (__doc__ or "").split("\n\n")[-1].strip()
    publish(page("The best of one GPU on others", options.command, about, list(rows(found))), options.out)


if __name__ == "__main__":
    run_as_command(main)
