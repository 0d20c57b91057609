"""What was learned on other devices, for :mod:`benchmarks.search_efficiency` with ``--transfer``.

Each other recording of the same kernel becomes a source: the tries of a search by ``auto`` on it, as they
would stand in a store (``--source-tries 0``: everything that was recorded). ``--misleading`` adds the first
of them once more, with its times negated (the best is said to be the worst) or shuffled over its
configurations. A kernel that was recorded once has only itself to be misled by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.recordings.read import read_recording
from autotune.search.contract import Source
from benchmarks.recorded_spaces import kernel_of, observed, recorded_space, space_name

MISLEADING = ("", "negated", "shuffled")
SEEDS = 20
"""Different searches on each source; the seed of the target's search chooses among them."""


@dataclass(frozen=True)
class Elsewhere:
    """Where the sources come from."""

    recordings: tuple[Path, ...]
    tries: int
    misleading: str = ""

    @property
    def label(self) -> str:
        """What a strategy's name is given."""
        parts = [str(self.tries) if self.tries else "all"] if self.recordings else []
        return "+".join([*parts, self.misleading] if self.misleading else parts)

    def sources(self, search: Any, run: Callable[[Any], Mapping[str, Any]]) -> tuple[Source, ...]:
        """The sources of ``search``; ``run`` makes a search of their own."""
        kind: Callable[..., Any] = type(search)
        alike = [p for p in self.recordings if kernel_of(space_name(p)) == kernel_of(search.space)]
        others = [p for p in alike if p != search.recording]
        found = [_source(p, self.tries, search.seed % SEEDS, run, kind) for p in others]
        if self.misleading:
            told = found[0] if found else _source(search.recording, 0, 0, run, kind)
            found.append(_misleading(told, self.misleading))
        return tuple(found)


@cache
def _source(
    path: Path, tries: int, seed: int, run: Callable[[Any], Mapping[str, Any]], search: Callable[..., Any]
) -> Source:
    recording = read_recording(path)
    space = recorded_space(recording)
    names = [knob.name for knob in space.knobs]
    if tries:
        configurations = run(search(path, "auto", seed, tries))["configs"]
    else:
        configurations = [{name: e.configuration[name] for name in names} for e in recording.entries]
    told = tuple(observed(recording, space.configuration(one)) for one in configurations)
    return Source(space_name(path), told)


def _misleading(source: Source, how: str) -> Source:
    told = [o for o in source.observations if o.metrics]
    times = np.array([o.metrics["time"] for o in told])
    wrong = 1.0 / times if how == "negated" else np.random.default_rng(0).permutation(times)
    observations = tuple(replace(o, metrics={"time": float(t)}) for o, t in zip(told, wrong, strict=True))
    return Source(how, observations)
