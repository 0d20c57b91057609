"""A recorded space of Kernel Tuner (or a T4 file) as a space.yaml that replays it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import InputError, Problem, shorten
from autotune.interop.space_files.recorded_conditions import conditions
from autotune.interop.space_files.space_text import can_be_written, comment_lines, knob_lines
from autotune.measure.commands.placeholders import yaml_key, yaml_value
from autotune.measure.recordings.recording import TIME, Entry, Recording
from autotune.space.language.syntax import check_name
from autotune.space.reading.metrics import NAME as METRIC_NAME
from autotune.status import Status

TRIALS = 200
"""The budget that is written into the file: what people try before they lose patience."""


def space_document(recording: Recording, source: Path, file: Path) -> str:
    """The text of a space file that replays ``recording``, to be written to ``file``.

    ``source`` is where the recording lies; the text names it relative to the folder of ``file``. Every knob
    has its recorded values, also one with a single value. The default is the configuration of median
    time: no recording says what its owner used, and against a typical one a speed-up means something.
    Raises :class:`InputError` for a recording whose knobs cannot be named in a space file, or lie there only
    sometimes without a reason, or none of whose configurations has a time.
    """
    problems = [*_name_problems(recording), *_value_problems(recording)]
    if not recording.knobs:
        problems.append(Problem(f"the configurations of {recording.path} have no knobs"))
    timed = [entry for entry in recording.entries if entry.status is Status.OK and entry.time is not None]
    if not timed:
        problems.append(_no_time(recording))
    replayed = os.path.relpath(source.absolute(), file.absolute().parent)
    if not can_be_written(replayed):
        problems.append(Problem(f"{source} has a name that no space file can hold", hint="rename it"))
    if problems:
        raise InputError(problems)
    default = _typical(timed).configuration
    when = conditions(recording)
    lines = [
        *_comment(recording),
        "autotune: 1",
        f"name: {yaml_value(_study_name(source))}",
        f"replay: {yaml_value(replayed)}",
        "",
        "metrics:",
        "  time: {goal: minimize, unit: s}",
        *(
            f"  {yaml_key(name)}: {{unit: {yaml_value(unit)}}}"
            for name, unit in _further_metrics(recording, timed)
        ),
        *_left_out(recording, timed),
        "",
        "# The default is the recorded configuration of median time: put your own there.",
        *(["# Some configurations lack a knob: each 'when' is the simplest that fits them."] if when else []),
        "knobs:",
        *(
            line
            for name, values in recording.knobs.items()
            for line in knob_lines(name, values, default.get(name, values[0]), when.get(name, ""))
        ),
        "",
        f"budget: {{trials: {TRIALS}}}",
    ]
    return "\n".join(lines) + "\n"


def _comment(recording: Recording) -> list[str]:
    what = " on ".join(filter(None, (recording.kernel, recording.device))) or "a recorded space"
    failed = sum(entry.status.failed for entry in recording.entries)
    text = f"{what}: {len(recording.entries):,} recorded configurations, {failed:,} of them failed."
    text += f" The recording is damaged: {recording.damage}." if recording.damage else ""
    text += f" Left out, since they have no time: {recording.untimed:,}." if recording.untimed else ""
    if lacking := recording.lacking(TIME):
        text += f" Left out while time is a goal, since they only have other numbers: {lacking:,}."
    text += " Nothing is measured: readings and durations are those of the recording."
    return comment_lines(text)


def _study_name(source: Path) -> str:
    stem = re.sub(r"(\.json)?(\.gz)?$", "", source.name)
    return re.sub(r"[^\w.-]+", "-", stem).lstrip("-.")[:100] or "replay"


def _typical(timed: Sequence[Entry]) -> Entry:
    ranked = sorted(timed, key=lambda entry: entry.time or 0.0)
    return ranked[(len(ranked) - 1) // 2]


def _no_time(recording: Recording) -> Problem:
    """That nothing succeeded; or what was recorded in the place of a time, of which no file says the goal."""
    usable = [entry for entry in recording.entries if not entry.status.failed]
    names = list(dict.fromkeys(name for entry in usable for name in entry.metrics))
    if not names:
        return Problem(f"no configuration of {recording.path} succeeded: there is nothing to replay")
    tuned = next((name for name in recording.objectives if name in names), names[0])
    keys = f"'replay: {recording.path.name}' and 'metrics: {{{tuned}: {{goal: maximize}}}}', or minimize"
    return Problem(
        f"{recording.path} has no times, only {', '.join(names)}, and does not say whether more is better",
        hint=f"write a space file with its knobs, {keys}",
    )


def _further_metrics(recording: Recording, timed: Sequence[Entry]) -> list[tuple[str, str]]:
    """Other numbers that every success has and that a space file can name, with their unit."""
    usable = [name for name in _common(timed) if _can_be_metric(recording, name)]
    units = {name: recording.units.get(name, "") for name in usable}
    return [(name, unit if can_be_written(unit) else "") for name, unit in units.items()]


def _left_out(recording: Recording, timed: Sequence[Entry]) -> list[str]:
    """A comment that names the other numbers that every success has."""
    names = [name for name in _common(timed) if not _can_be_metric(recording, name)]
    return (
        comment_lines(f"Recorded too, by names that no metric can have: {', '.join(names)}.") if names else []
    )


def _common(timed: Sequence[Entry]) -> list[str]:
    return [name for name in timed[0].metrics if all(name in entry.metrics for entry in timed)]


def _can_be_metric(recording: Recording, name: str) -> bool:
    return bool(METRIC_NAME.fullmatch(name)) and name not in recording.knobs


def _name_problems(recording: Recording) -> list[Problem]:
    problems = []
    for name in recording.knobs:
        try:
            check_name(name)
        except ValueError as error:
            problems.append(Problem(f"{recording.path}: {error}", hint="rename it in the recording"))
    return problems


def _value_problems(recording: Recording) -> list[Problem]:
    problems = []
    for name, values in recording.knobs.items():
        if wrong := [value for value in values if not can_be_written(value)]:
            message = f"{recording.path}: {name} can be {shorten(repr(wrong[0]))}"
            problems.append(Problem(message, expected="finite numbers, and texts that UTF-8 has"))
    return problems
