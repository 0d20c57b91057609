"""What Kernel Tuner is asked to tune as a space, however it is asked: by a script or a T1 file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import Location, shorten
from autotune.interop.space_files.listed_rules import say_listed
from autotune.interop.space_files.python_rules import rule_text
from autotune.interop.space_files.space_text import Converted, can_be_written
from autotune.space.configuration import Value

NOT_TAKEN = "the kernel's arguments, launch and metrics are not taken over: the objective says them."


def workload_of(size: object) -> dict[str, Value]:
    """The workload of a problem of this ``size``: none where that is not made of whole numbers."""
    sizes = tuple(size) if isinstance(size, (list, tuple)) else (size,)
    plain = sizes and all(isinstance(one, int) and can_be_written(one) for one in sizes)
    return {"problem_size": sizes} if plain else {}


@dataclass
class Gathered:
    """What is gathered on the way to a space."""

    notes: list[str] = field(default_factory=lambda: [NOT_TAKEN])
    constraints: list[str] = field(default_factory=list)
    by_values: list[str] = field(default_factory=list)
    """Parts of conditions that are said by the values for which they hold."""

    def add(self, condition: str, where: Location, knobs: Mapping[str, Sequence[Value]]) -> None:
        """A condition that begins at ``where``. Raises :class:`InputError` for one that no rule can say."""
        found = rule_text(condition, knobs, where)
        if found.text == "True":
            self.notes.append(f"{shorten(condition)} holds for all values: it is left out.")
            return
        self.by_values += found.listed
        self.constraints.append(found.text)

    def space(
        self,
        name: str,
        about: str,
        file: Path,
        knobs: Mapping[str, Sequence[Value]],
        workload: Mapping[str, Value],
        defaults: Mapping[str, Value] = {},
    ) -> Converted:
        """The space; ``defaults`` are those of knobs of which the file says one."""
        made = Converted(
            name=re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100] or "kernel",
            about=about,
            objective="objective.py:Objective",
            knobs=knobs,
            default={name: defaults.get(name, values[0]) for name, values in knobs.items()},
            constraints=tuple(dict.fromkeys(self.constraints)),
            workload=workload,
            notes=[*self.notes, *say_listed(self.by_values)],
            file=str(file),
        )
        return made.with_feasible_default([name for name in knobs if name not in defaults])
