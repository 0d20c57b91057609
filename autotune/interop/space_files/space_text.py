"""Parts of the text of a space file that is written from what another tool has."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.errors import InputError, Location, Problem
from autotune.interop.space_files.exact_rules import literal
from autotune.measure.commands.placeholders import yaml_key, yaml_value
from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import is_number
from autotune.space.language.syntax import check_name
from autotune.space.space import Space

WIDTH = 100
MOST_FIRST = 20
"""Of a long list, what is tried first: each costs a try."""

NARROWEST = 20
"""What is left for values beside a long name."""


def comment_lines(text: str) -> list[str]:
    """``text`` as lines of a comment, with ``?`` for what no YAML may hold."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return [f"# {line}" for line in textwrap.wrap(plain, WIDTH - 2)]


def knob_lines(name: str, values: Sequence[Value], default: Value, when: str = "") -> list[str]:
    """``name: {values: [...], default: ..., when: ...}``, wrapped where the values are many."""
    chosen = yaml_value(default)
    rest = f", when: {yaml_value(when)}}}" if when else "}"
    if all(isinstance(value, bool) for value in values) and len(values) == 2:
        return [f"  {yaml_key(name)}: {{flag: {chosen}{rest}"]
    kind = "values" if all(map(is_number, values)) else "choices"
    start = f"  {yaml_key(name)}: {{{kind}: ["
    text = ", ".join(map(yaml_value, values))
    # Texts may hold blanks, at which a line must not be broken.
    width = max(WIDTH - len(start), NARROWEST)
    rows = textwrap.wrap(text, width, break_long_words=False) if kind == "values" else [text]
    lines = [" " * len(start) + row for row in rows]
    lines[0] = start + rows[0]
    lines[-1] += f"], default: {chosen}{rest}"
    return lines


def can_be_written(value: object) -> bool:
    """Whether a space file can hold the value: no number that no float can hold, no text without UTF-8."""
    if isinstance(value, (int, float)):
        return -sys.float_info.max <= value <= sys.float_info.max  # also for integers that no float holds
    if isinstance(value, str):
        return not re.search("[\ud800-\udfff]", value)
    if isinstance(value, Mapping):
        return all(map(can_be_written, (*value, *value.values())))
    return not isinstance(value, tuple) or all(map(can_be_written, value))


def name_problems(names: Iterable[str], where: Location) -> list[Problem]:
    """What is wrong with the names of knobs, which were read at ``where``."""
    problems = []
    for name in names:
        try:
            check_name(name)
        except ValueError as error:
            problems.append(Problem(str(error), where, hint="rename it there"))
    return problems


def _flow(values: Mapping[str, Value]) -> str:
    """``{m: 960, n: 960}``."""
    return "{" + ", ".join(f"{yaml_key(name)}: {yaml_value(value)}" for name, value in values.items()) + "}"


@dataclass(frozen=True)
class Converted:
    """A space that another tool's file describes, and what is to be said of it."""

    name: str
    about: str
    """Where it comes from."""
    objective: str
    """As the space file names it."""
    knobs: Mapping[str, Sequence[Value]]
    default: Mapping[str, Value]
    constraints: Sequence[str] = ()
    workload: Mapping[str, Value] = field(default_factory=dict)
    listed: Sequence[Mapping[str, Value]] = ()
    """The configurations that the file lists, where it is a list that the constraints come of."""
    first: Sequence[Mapping[str, Value]] = ()
    """What is to be tried right after the default."""
    notes: Sequence[str] = ()
    """What could not be taken over as it was."""
    file: str = ""
    """What was read, for messages."""

    def widened(self) -> Converted:
        """All combinations of the values of a list; what it lists is tried first, evenly drawn of many."""
        others = [one for one in self.listed if one != self.default]
        step = max(len(others) / MOST_FIRST, 1.0)
        first = [others[int(place * step)] for place in range(min(len(others), MOST_FIRST))]
        which = f"{len(first)} of its configurations, evenly drawn," if step > 1.0 else "Its configurations"
        about = f"{self.about} Here all combinations are in. {which} are tried first."
        return replace(self, constraints=(), first=first, about=about)

    def checked(self) -> Space:
        """The space itself. Raises :class:`InputError` with what a space file cannot say of it."""
        problems = name_problems(self.knobs, Location(self.file))
        if not can_be_written(self.objective):
            problems.append(Problem("its path is none that a space file can hold", Location(self.file)))
        if problems:
            raise InputError(problems)
        knobs = [knob_of(name, tuple(values), self.default[name]) for name, values in self.knobs.items()]
        return Space(knobs, self.constraints, workload=self.workload)

    def with_feasible_default(self, unsaid: Sequence[str]) -> Converted:
        """The same with a default that satisfies the constraints, and said so where it is another one.

        ``unsaid`` are the knobs of which the file itself says no default.
        """
        space = self.checked()
        if not space.feasible:
            raise InputError(Problem("no configuration satisfies all conditions", Location(self.file)))
        none = "the file gives no default"
        if 0 < len(unsaid) < len(self.knobs):
            none += f" of {', '.join(unsaid)}"
        if not space.violated(space.configuration({})):
            each = "" if len(unsaid) == 1 else " of each"
            note = [f"{none}: the first value{each} was taken."] if unsaid else []
            return replace(self, notes=(*self.notes, *note))
        which = "the first configuration that satisfies the conditions"
        if (kept := self._with_said(unsaid)) is not None:
            note = [f"{none}: {which} with the defaults that it gives was taken."]
            return replace(self, default=kept, notes=(*self.notes, *note))
        some = len(unsaid) < len(self.knobs)
        said = "the default of the file violates its conditions" if some else none
        note = [f"{said}: {which} was taken."]
        return replace(self, default=dict(space.feasible[0]), notes=(*self.notes, *note))

    def _with_said(self, unsaid: Sequence[str]) -> dict[str, Value] | None:
        """The first feasible configuration with the defaults that the file says; ``None``: there is none."""
        if not 0 < len(unsaid) < len(self.knobs):
            return None
        said = [f"{n} == {literal(v)}" for n, v in self.default.items() if n not in unsaid]
        narrowed = replace(self, constraints=(*self.constraints, *said)).checked()
        return dict(narrowed.feasible[0]) if narrowed.feasible else None

    def text(self) -> str:
        """The text of the space file. Raises as :meth:`checked` does."""
        self.checked().default()
        lines = [
            *comment_lines(self.about),
            *(line for note in self.notes for line in comment_lines(f"Note: {note}")),
            "autotune: 1",
            f"name: {yaml_value(self.name)}",
            "# What measures it, for autotune search; @autotune.kernel does without.",
            f"objective: {yaml_value(self.objective)}",
            *(["# The problem to search for: put your own numbers here."] if self.workload else []),
            *([f"workload: {_flow(self.workload)}"] if self.workload else []),
            "",
            "metrics:",
            "  time: {goal: minimize, unit: s}",
            "",
            "knobs:",
            *(
                line
                for name, values in self.knobs.items()
                for line in knob_lines(name, values, self.default[name])
            ),
        ]
        if self.constraints:
            lines += ["", "constraints:", *(f"  - {yaml_value(rule)}" for rule in self.constraints)]
        if self.first:
            lines += [
                "",
                "search:",
                "  first:",
                *(f"    - {_flow(one)}" for one in self.first),
            ]
        return "\n".join(lines) + "\n"


def knob_of(name: str, values: tuple[Value, ...], default: Value) -> Knob:
    """The knob that :func:`knob_lines` writes."""
    if all(isinstance(value, bool) for value in values) and len(values) == 2:
        return Flag(name, default=default)
    if all(map(is_number, values)):
        return OrderedValues(name, values, default=default)
    return Choice(name, values, default=default)
