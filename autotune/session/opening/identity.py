"""What makes two searches the same study, and how a difference is put into words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from autotune.provenance.document import part_of
from autotune.space.configuration import plain
from autotune.space.spec import (
    CallableObjective,
    CommandObjective,
    MeasureSettings,
    ObjectiveSpec,
    PythonObjective,
    ReplayObjective,
    StudySpec,
)
from autotune.store.records import StudyRecord

CALLABLE = "callable "
"""The description of a callable that a program passed to be tuned begins with this, then comes its name."""
COMMAND = "command "
"""The description of a command begins with this, then comes JSON."""


@dataclass(frozen=True)
class Identity:
    """What makes two searches the same study, in parts, so that a difference can be named."""

    objective: str
    """How the objective is written in the space file."""
    source: str
    """The hash of the objective's own files (or of the recording)."""
    workload: str
    metrics: str
    machine: str
    resource: str = ""
    """What a complete trial uses, where trials may be stopped early."""
    cores: str = ""
    """How many cores a measurement has; empty for the usual number. With another number something else is
    measured."""

    @property
    def key(self) -> str:
        """A hash of all parts, in 16 hexadecimal digits.

        Parts that were added in later versions do not count while they are empty, so that older studies keep
        their key.
        """
        parts = {k: value for k, value in asdict(self).items() if value or k not in ("resource", "cores")}
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, earlier: Mapping[str, str]) -> dict[str, list[str]]:
        """``{part: [before, after]}`` for each part that is not as in ``earlier``."""
        return {
            part: [earlier.get(part, ""), value]
            for part, value in asdict(self).items()
            if earlier.get(part, "") != value  # an older document lacks the parts that came since
        }


def identify(spec: StudySpec, source_hash: str, machine_key: str) -> Identity:
    """The identity of the study that ``spec`` describes. A replay does not depend on the machine."""
    early = spec.search.early_stopping
    replayed = isinstance(spec.objective, ReplayObjective)
    return Identity(
        objective=describe_objective(spec.objective),
        source=spec.objective.code if isinstance(spec.objective, CallableObjective) else source_hash,
        workload=json.dumps(plain(spec.workload), sort_keys=True),
        metrics=json.dumps([asdict(metric) for metric in spec.metrics], sort_keys=True),
        machine="" if replayed else machine_key,
        resource="" if early is None else f"{early.max} {early.resource}",
        cores="" if replayed else say_cores(spec.measure.cores),
    )


def are_kin(one: StudyRecord, other: StudyRecord) -> bool:
    """Whether two studies of the same name differ in the workload alone, and have the same keys in it."""
    if one.name != other.name or set(one.workload) != set(other.workload):
        return False
    mine, theirs = (part_of(study.document, "identity") for study in (one, other))
    parts = [part for part in Identity.__dataclass_fields__ if part != "workload"]
    return all(mine.get(part, "") == theirs.get(part, "") for part in parts)


def describe_objective(objective: ObjectiveSpec) -> str:
    """How the objective is written in the space file, without the folder of that file."""
    match objective:
        case PythonObjective():
            return f"python {objective.target}"
        case CommandObjective():
            document = asdict(objective)
            for other in ("base", "where", "grace"):  # moved, or killed later, it is still the same one
                document.pop(other)
            return COMMAND + json.dumps(document, sort_keys=True, default=list)
        case ReplayObjective():
            return f"replay {objective.file.name}"
        case CallableObjective():
            return CALLABLE + objective.name


def command_of(study: StudyRecord) -> CommandObjective | None:
    """The command that a study measures, without its folder; ``None`` for other objectives."""
    if not study.objective.startswith(COMMAND):
        return None
    return CommandObjective(base=Path(), **json.loads(study.objective.removeprefix(COMMAND)))


def say_cores(cores: int | None) -> str:
    """The number of cores as a part of an identity: empty for the usual one."""
    return "" if cores in (None, MeasureSettings().cores) else str(cores)


LONG = 120
"""Of a part of a command with more characters only what differs is shown."""


def say_difference(part: str, before: str, after: str, files: str = "") -> str:
    """One of :meth:`Identity.differences` in words; ``files``: which ones of the source."""
    if part == "source":
        return f"the objective's source has changed{files}"
    if part == "machine":
        return "the machine is another one"
    if part == "cores":
        return f"a measurement has another number of cores, {after or MeasureSettings().cores}"
    if before.startswith(COMMAND) and after.startswith(COMMAND):
        was, now = (json.loads(text.removeprefix(COMMAND)) for text in (before, after))
        return "; ".join(
            f"the command's {name} changed from {' to '.join(_where_they_differ(was.get(name), now[name]))}"
            for name in now
            if was.get(name) != now[name]
        )
    if part == "metrics":
        return f"the metrics changed from {_say_metrics(before)} to {_say_metrics(after)}"
    return f"the {part} changed from {before or 'nothing'} to {after or 'nothing'}"


def _say_metrics(text: str) -> str:
    """``time (goal: minimize, unit: s), memory (at_most: 1000)``."""
    said = []
    for metric in json.loads(text):
        facts = [f"{k}: {v}" for k, v in metric.items() if k != "name" and v not in (None, "")]
        said.append(f"{metric['name']} ({', '.join(facts)})")
    return ", ".join(said)


def _where_they_differ(before: Any, after: Any) -> tuple[str, str]:
    """Both as texts. Long ones are shown without the words they have in common at either end, except one."""
    was, now = _words(before), _words(after)
    if max(len(" ".join(was)), len(" ".join(now))) > LONG:
        first = max(_alike(was, now) - 1, 0)
        last = max(_alike(was[first + 1 :][::-1], now[first + 1 :][::-1]) - 1, 0)
        was, now = (_without_ends(words, first, last) for words in (was, now))
    return " ".join(was) or "nothing", " ".join(now) or "nothing"


def _without_ends(words: Sequence[str], first: int, last: int) -> list[str]:
    """``words`` with dots instead of the ``first`` and the ``last`` so many."""
    middle = words[first : len(words) - last]
    return [*(["..."] if first else []), *middle, *(["..."] if last else [])]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words they have in common at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{k}={v}" for k, v in value.items()]
    return [str(word) for word in value] if isinstance(value, list) else str(value or "").split()
