"""Recorded spaces: a folder of recordings, and the space in which exactly what was recorded exists."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem, listed, nearest
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Entry, Recording
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.space import Space
from benchmarks.running import split_names

ENDINGS = (".json.gz", ".json", ".t4.json.gz", ".t4.json")
"""Of recordings' files. Of several with the same name the first is taken: they are one space."""


def space_name(recording: Path) -> str:
    """The file's name without its ending."""
    return recording.name.removesuffix(_ending(recording))


def kernel_of(space: str) -> str:
    """What was recorded, on whichever device: the recording's name up to the first ``-``."""
    return space.partition("-")[0]


def _ending(file: Path) -> str:
    """The longest of :data:`ENDINGS` that the file's name has; empty where it has none."""
    return max((ending for ending in ENDINGS if file.name.endswith(ending)), key=len, default="")


def recordings(folder: Path, only: str = "") -> list[tuple[str, Path]]:
    """The recordings in ``folder`` with their names; ``only`` those named, separated by commas.

    :class:`InputError` where there is none, or not one that is named.
    """
    if not folder.is_dir():
        raise InputError(Problem(f"there is no folder {folder}", expected="a directory of recordings"))
    files = sorted(
        (file for file in folder.iterdir() if _ending(file)), key=lambda file: ENDINGS.index(_ending(file))
    )
    found: dict[str, Path] = {}
    for file in files:
        found.setdefault(space_name(file), file)
    if not found:
        expected = f"files that end in {', '.join(ENDINGS)}"
        raise InputError(Problem(f"there is no recording in {folder}", expected=expected))
    wanted = split_names(only) or list(found)
    for name in wanted:
        if name not in found:
            message = f"there is no recording {name!r} in {folder}"
            raise InputError(Problem(message, expected=listed(sorted(found)), hint=nearest(name, found)))
    return [(name, found[name]) for name in sorted(wanted)]


@lru_cache(maxsize=1)
def opened(path: Path) -> tuple[Recording, Space]:
    """A recording and its space, kept for the next search of it."""
    recording = read_recording(path)
    return recording, recorded_space(recording)


def recorded_space(recording: Recording) -> Space:
    """The space in which exactly the recorded configurations exist.

    A knob with a single value carries no information and is left out, unless there are no others. Numbers
    are taken to be ordered, true and false are a flag; whatever else was recorded is a choice. Raises
    :class:`InputError` where a configuration lacks a knob, which not all tuners can do without.
    """
    for entry in recording.entries:
        if missing := recording.knobs.keys() - entry.configuration.keys():
            message = f"{recording.path}: a configuration lacks the knob {min(missing)!r}"
            raise InputError(Problem(message, expected="a value for each knob"))
    varied = {name: values for name, values in recording.knobs.items() if len(values) > 1}
    knobs = [_knob(name, values) for name, values in (varied or recording.knobs).items()]
    names = [knob.name for knob in knobs]
    rows = [{name: entry.configuration[name] for name in names} for entry in recording.entries]
    return Space(knobs).limited_to(rows)


def entry_of(recording: Recording, configuration: Configuration) -> Entry:
    """What was recorded of a configuration: nothing else is proposed in a :func:`recorded_space`."""
    entry = recording.find(configuration)
    assert entry is not None, f"what is not recorded was proposed: {configuration}"
    return entry


def observed(recording: Recording, configuration: Configuration, **more: Any) -> Observation:
    """What a search hears of a configuration: its time, or how it failed."""
    entry = entry_of(recording, configuration)
    metrics = {} if entry.time is None else {"time": entry.time}
    return Observation(configuration, entry.status, metrics, **more)


def _knob(name: str, values: tuple[Value, ...]) -> Choice | Flag | OrderedValues:
    if all(isinstance(value, bool) for value in values):
        return Flag(name)
    numbers = tuple(v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool))
    return OrderedValues(name, tuple(sorted(numbers))) if numbers == values else Choice(name, values)
