"""Recorded spaces: a folder of recordings, and the space in which exactly what was recorded exists."""

from __future__ import annotations

from pathlib import Path

from autotune.measure.recording import Recording
from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.space import Space

ENDINGS = (".json.gz", ".json")


def space_name(recording: Path) -> str:
    """The file's name without its ending."""
    ending = next((e for e in ENDINGS if recording.name.endswith(e)), "")
    return recording.name.removesuffix(ending)


def recordings(folder: Path, only: str = "") -> list[tuple[str, Path]]:
    """The recordings in ``folder`` with their names; ``only`` those named, separated by commas."""
    wanted = [name for name in only.split(",") if name]
    paths = sorted(p for p in folder.iterdir() if p.name.endswith(ENDINGS) and ".t4." not in p.name)
    return [(space_name(p), p) for p in paths if not wanted or space_name(p) in wanted]


def recorded_space(recording: Recording) -> Space:
    """The space in which exactly the recorded configurations exist.

    A knob with a single value carries no information and is left out. Numbers are taken to be ordered;
    texts, and flags written as true and false, are choices.
    """
    knobs = [_knob(name, values) for name, values in recording.knobs.items() if len(values) > 1]
    names = [knob.name for knob in knobs]
    rows = [{name: entry.configuration[name] for name in names} for entry in recording.entries]
    return Space(knobs).limited_to(rows)


def _knob(name: str, values: tuple[Value, ...]) -> Choice | Flag | OrderedValues:
    if all(isinstance(value, bool) for value in values):
        return Flag(name)
    if any(isinstance(value, str) for value in values):
        return Choice(name, values)
    return OrderedValues(name, tuple(sorted(values)))  # type: ignore[type-var]
