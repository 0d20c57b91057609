"""What a command measured: the numbers that it printed, wrote to a file or reported, or its wall clock."""

from __future__ import annotations

import json
import math
import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

from autotune.errors import listed
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.heard import Heard
from autotune.measure.commands.patterns import by_patterns, how_to_read, without_colours
from autotune.measure.phases.mistakes import missing_metric
from autotune.measure.program import Finished
from autotune.space.spec import CommandObjective, MetricSpec

_LEFT_OPEN = (
    "its run did not end, so that what it reported last is unknown: leave the 'with' of autotune.run, or call"
    " run.close(), before the process ends in another way (os._exit, say)"
)


def read_metrics(
    spec: CommandObjective, metrics: tuple[MetricSpec, ...], ended: Finished, file: Path | None, said: Heard
) -> dict[str, float]:
    """The values of ``metrics``, as far as there are any; :class:`CommandCrashed` without one that is judged.

    ``file`` is the file that the command had to write, if any; ``said`` what its run has reported.
    """
    heard, opened = said.values, said.runs > 0
    match spec.metrics_from:
        case "wall":
            return {next(m.name for m in metrics if m.goal): ended.seconds}
        case "pattern":
            found, where = by_patterns(spec.patterns, metrics, ended.stdout, ended.stderr), ""
        case "file":
            assert file is not None
            found, where = _from_file(file, spec.metrics_file), f"in {spec.metrics_file}"
        case _ if heard:
            if said.unfinished:
                raise CommandCrashed(f"{_LEFT_OPEN}{ended.last_words}", ended, _LEFT_OPEN)
            printed = _last_object(ended) or {}
            found, where = {**printed, **heard}, "among those that its run reported"
        case _:
            goal = next(m.name for m in metrics if m.goal)
            found, where = _from_last_line(ended, opened, goal), "in the JSON object it printed last"
    values = _entries(found, [m.name for m in metrics])
    missing = [m.name for m in metrics if values.get(m.name) is None and m.is_judged]
    if missing:
        named, known = ", ".join(map(repr, missing)), ", ".join(map(str, found)) or "nothing"
        if spec.metrics_from == "pattern":
            which = f"metric {named} matches" if len(missing) == 1 else f"metrics {named} match"
            why = f"the pattern of the {which} nothing that it printed"
            raise CommandCrashed(f"{why}{ended.last_words or ': it printed nothing'}", ended, why)
        if nulls := [name for name in missing if name in values]:
            raise CommandCrashed(f"the metric {', '.join(map(repr, nulls))} is null {where}", ended)
        why = f"no metric {named} {where}; there is {known}{_say_deeper(found, missing)}"
        raise CommandCrashed(why, ended, missing_metric(found, why))
    typed = spec.metrics_from != "pattern"
    goals = {metric.name for metric in metrics if metric.goal}
    return {
        name: _number(name, value, ended, typed, judged=name in goals)
        for name, value in values.items()
        if value is not None
    }


def reported_metrics(found: Mapping[str, object], names: Collection[str], judged: str) -> dict[str, float]:
    """The numbers of a report that was printed as ``found``; ``names`` may also be inside of inner objects.

    ``judged`` is the metric that every report has: :class:`CommandCrashed` without it, or if it is no number.
    It is NaN where ``null`` was printed, as JavaScript and orjson write NaN.
    """
    entries = {**found, **_entries(found, names)}
    if judged not in entries:
        known = listed(found) or "nothing else"
        why = f"every report must bring the metric {judged!r}; there is {known}{_say_deeper(found, [judged])}"
        raise CommandCrashed(why, mistake=missing_metric(found, why))
    value = math.nan if entries[judged] is None else entries[judged]
    spelt = {name: _spelt_out(entry) for name, entry in entries.items()}
    numbers = {name: entry for name, entry in spelt.items() if isinstance(entry, (int, float))}
    return {**numbers, judged: _number(judged, value, None, typed=True, judged=True)}


def mark_as_old(file: Path) -> None:
    """Date a file of an earlier run to 1970, so that it is not taken for this one's."""
    try:
        os.utime(file, ns=(0, 0))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CommandCrashed(f"cannot tell a new {file} from an old one: {error.strerror}") from error


def _from_last_line(ended: Finished, opened: bool, goal: str) -> Mapping[str, object]:
    found = _last_object(ended)
    if found is None:
        said = f"it printed no line with a JSON object like {json.dumps({goal: 0.5})}"
        other = " (set 'metrics' of the command to wall, a file or a pattern, if that is meant)"
        said += _why_no_json(ended.stdout) or other
        if opened:  # a program with the hook has to report, not to print
            said = "its run reported no metric: call run.report(step, ...) or run.result(...) before it ends"
            said += ", of several ranks in rank 0"
        raise CommandCrashed(f"{said}{ended.last_words}", ended, said)
    return found


def _last_object(ended: Finished) -> Mapping[str, object] | None:
    """The last line that is a JSON object; else the last object on several lines, as fio writes it."""
    text = without_colours(ended.stdout)
    several: list[_Block] | None = None
    for begins, ends in reversed([line.span(1) for line in _LINE_OF_JSON.finditer(text)]):
        try:
            found = json.loads(text[begins:ends])
        except (ValueError, RecursionError):
            continue
        if text.find("}", ends) >= 0:  # it may be part of one on several lines
            several = _blocks(text) if several is None else several
            if any(block.begins < begins < block.ends for block in several):
                continue
        return dict(found)
    several = _blocks(text) if several is None else several
    return several[-1].found if several else None


# Not splitlines(): it splits at characters that JSON may have inside a text, such as U+2028.
_LINE_OF_JSON = re.compile(r"(?<![^\r\n])[^\S\r\n]*(\{[^\r\n]*)")


def _why_no_json(text: str) -> str:
    """What is wrong with the last line in braces: a dictionary as Python prints it, or a number that begins
    with a point. The line itself is not quoted, since the message has to be the same in every trial.
    """
    for line in reversed(re.split(r"[\r\n]+", text)):
        if line.lstrip().startswith("{") and line.rstrip().endswith("}"):
            try:
                json.loads(line)
            except json.JSONDecodeError as error:
                if re.match(r"-?\.[0-9]", line[error.pos :]):
                    return "; one in braces is not JSON: a number begins with a point, as bc writes it"
                return f"; one in braces is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
            except (ValueError, RecursionError):
                continue
    return ""


@dataclass(frozen=True)
class _Block:
    """A JSON object, and its place in a text."""

    begins: int
    ends: int
    found: Mapping[str, object]


def _blocks(text: str) -> list[_Block]:
    """The JSON objects that begin at the start of a line and end at the end of another.

    A brace further to the right is inside an object, whose beginning may not have been kept.
    """
    blocks: list[_Block] = []
    decoder, place = json.JSONDecoder(), 0
    for line in deque(re.finditer(r"^\{", text, re.MULTILINE), MOST_BLOCKS):
        begins = line.start()
        if begins < place:  # part of the one before
            continue
        try:
            found, ends = decoder.raw_decode(text, begins)
        except (ValueError, RecursionError):
            continue
        if not text[ends:].partition("\n")[0].strip():
            blocks.append(_Block(begins, ends, found))
            place = ends
    return blocks


MOST_BLOCKS = 1000
"""How many of the last lines that begin with a brace are tried, since each takes up to a millisecond."""


def _from_file(file: Path, name: str) -> Mapping[str, object]:
    """``name`` is what the space file calls it, the same in every trial."""
    missing = f"the command did not write {name}"
    try:
        if file.stat().st_mtime_ns == 0:
            raise CommandCrashed(f"{missing}: it is of an earlier run", mistake=missing)
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise CommandCrashed(f"{missing}: {error.strerror}", mistake=missing) from error
    except (ValueError, RecursionError) as error:
        other = "print numbers in another form, and read them with a pattern"
        what = f"{name} is not JSON"
        raise CommandCrashed(f"{what}: {error}; {other}", mistake=what) from error
    if not isinstance(found, dict):
        what = f"{name} holds no JSON object"
        raise CommandCrashed(what, mistake=what)
    return found


def _entries(found: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """The entries of those names, as far as there are any.

    ``jobs.0.p99`` may also be ``p99`` inside the first of the list ``jobs``.
    """
    entries = {}
    for name in names:
        with suppress(LookupError):
            entries[name] = found[name] if name in found else reduce(_inside, name.split("."), found)
    return entries


def _inside(part: Any, key: str) -> Any:
    """Raises ``LookupError`` if there is no such part."""
    if isinstance(part, list) and key.isdecimal():
        return part[int(key)]
    if isinstance(part, Mapping):
        return part[key]
    raise LookupError(key)


def _say_deeper(found: Mapping[str, object], missing: Sequence[str]) -> str:
    """What to write for missing metrics that are in inner objects; empty where they are not."""
    inside = [place for name in missing for place in islice(_places(found, name), 3)]
    return f": call the metric {', '.join(map(repr, inside))} in the space file" if inside else ""


def _places(part: object, name: str, levels: int = 5) -> Iterator[str]:
    """Where entries of that name lie inside, as :func:`_entries` takes it."""
    entries = part.items() if isinstance(part, Mapping) else enumerate(part) if isinstance(part, list) else ()
    for key, value in entries if levels else ():
        if isinstance(value, Mapping) and name in value:
            yield f"{key}.{name}"
        yield from (f"{key}.{place}" for place in _places(value, name, levels - 1))


def _spelt_out(value: object) -> object:
    """NaN or an infinity for a text that spells it, as JSON has none; any other value as it is."""
    try:
        number = float(value) if isinstance(value, str) and "_" not in value else 0.0
    except ValueError:
        return value
    return value if math.isfinite(number) else number


_BEGINS_AS_NUMBER = re.compile(r"\s*[-+]?\.?[0-9]")
_AS_NUMBER = ": write it as a number, without quotes, unit or commas"


def _number(name: str, value: object, ended: Finished | None, typed: bool, judged: bool) -> float:
    """The value of a metric as a number. Raises :class:`CommandCrashed` for anything else.

    ``typed``: it comes from JSON, where a text is not a number, except ``"nan"`` and ``"inf"``. ``judged``:
    the metric has a goal, and must not be a flag.
    """
    value = _spelt_out(value) if typed else value
    try:
        if isinstance(value, (int, float)) and not (judged and isinstance(value, bool)):
            return float(value)
        if isinstance(value, str) and not typed and "_" not in value:  # Python would read 1_0 as 10
            return float(value)
    except (ValueError, OverflowError):
        pass
    hint = ""
    if isinstance(value, str):
        hint = how_to_read(value) if not typed else _AS_NUMBER if _BEGINS_AS_NUMBER.match(value) else ""
    raise CommandCrashed(f"the metric {name!r} is {value!r}, which is no number{hint}", ended)
