"""The space of a kernel for each case; constraints may depend on the values in the key and on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem
from autotune.hook.recipes.case import Case, Plain
from autotune.measure.commands.placeholders import yaml_key, yaml_value
from autotune.provenance.device import device_facts
from autotune.space.configuration import freeze
from autotune.space.reading.reader import parse_spec, read_spec
from autotune.space.reading.space_file import load_text
from autotune.space.space import Space
from autotune.space.spec import TIME, MeasureSettings, PythonObjective, StudySpec

Given = Space | str | Path | Mapping[str, Any]
"""A space, a space file, or knobs: ``{"BLOCK": [64, 128], "num_warps": {"values": [2, 4]}}``."""

KINDS = (Space, str, Path, Mapping)

MOST_CASES = 512
"""How many cases' spaces are cached; with more, a program would fill its memory."""


class KernelSpace:
    """What may be chosen for the kernel ``name``, which is defined in ``file``."""

    def __init__(self, name: str, given: Given, constraints: Sequence[str], file: Path) -> None:
        self.name = name
        self.given = given
        self.constraints = tuple(constraints)
        self.file = file
        self._place = f"the space of the kernel {name} ({file})"
        self._knobs = self._write_knobs(given) if isinstance(given, Mapping) else []
        self._spaces: dict[tuple[tuple[str, Plain], ...], StudySpec] = {}
        self._same = False

    def space(self, case: Case) -> Space:
        """The space for ``case``. Raises :class:`InputError` with everything that is wrong with it."""
        return self.spec(case).space

    def spec(self, case: Case) -> StudySpec:
        """The study of ``case``, without its device."""
        key = () if self._same else tuple(case.values.items())
        found = self._spaces.get(key)
        if found is None:
            found = self._read(case)
            # Constraints that mention nothing of the case leave one space for all cases.
            if all(name.startswith("device.") for name in _facts(found.space)):
                self._same, key = True, ()
            if len(self._spaces) >= MOST_CASES:
                self._spaces.clear()
            self._spaces[key] = found
        return found

    def _read(self, case: Case) -> StudySpec:
        objective = PythonObjective(f"{self.file.name}:{self.name}", self.file.parent)
        if isinstance(self.given, Space):
            return StudySpec(self.name, self.given, objective, TIME, source=self.file)
        if isinstance(self.given, (str, Path)):
            path = self.file.parent / self.given
            declared = read_spec(path, self._device).workload
            spec = read_spec(path, self._device, {n: v for n, v in case.values.items() if n in declared})
        else:
            spec = parse_spec(self._text(case), self._place, self._device)
        return replace(
            spec,
            name=self.name,
            objective=objective,
            metrics=TIME,
            measure=MeasureSettings(),
            source=self.file,
        )

    def _text(self, case: Case) -> str:
        objective = f"{self.file.name}:{self.name}"
        lines = ["autotune: 1", f"name: {yaml_value(self.name)}", f"objective: {yaml_value(objective)}"]
        if case.values:
            facts = ", ".join(f"{yaml_key(n)}: {yaml_value(v)}" for n, v in case.values.items())
            lines.append(f"workload: {{{facts}}}")
        lines += ["knobs:", *self._knobs]
        if self.constraints:
            lines += ["constraints:", *(f"  - {yaml_value(rule)}" for rule in self.constraints)]
        return "\n".join(lines) + "\n"

    def _write_knobs(self, given: Mapping[str, Any]) -> list[str]:
        """Each knob as a line of a space file. Raises :class:`InputError` for values that no knob has."""
        lines, problems = [], []
        for name, knob in given.items():
            try:
                lines.append(f"  {yaml_key(name)}: {_written(knob)}")
            except (TypeError, ValueError):
                message = f"the knob {name!r} cannot be tuned over {knob!r:.80}"
                expected = "a list of numbers, flags or texts, or a mapping as in a space file"
                problems.append(Problem(message, Location(self._place), expected))
        if problems:
            raise InputError(problems)
        return lines

    @cached_property
    def _device(self) -> Mapping[str, Any]:
        """Facts of the device; empty unless a rule may use them, since finding them out takes a moment."""
        if isinstance(self.given, (str, Path)):
            asks = "device" in load_text(self.file.parent / self.given)
        else:
            asks = any("device" in rule for rule in self.constraints) or "device" in str(self.given)
        return device_facts() if asks else {}


def _facts(space: Space) -> set[str]:
    """The facts that the rules of a space mention."""
    rules = [*space.constraints, *(knob.when for knob in space.knobs if knob.when is not None)]
    return {name for rule in rules for name in rule.facts}


def _written(knob: Any) -> str:
    """A knob as a space file has it: a mapping as it is, a list as ordered values, choices or a flag."""
    if isinstance(knob, Mapping):
        return yaml_value(freeze(knob))
    values = list(knob) if isinstance(knob, (list, tuple, range)) else [knob]
    if not values:
        return "{values: []}"
    if len(values) == 2 and set(map(type, values)) == {bool}:
        return f"{{flag: {yaml_value(values[0])}}}"
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values)
    if numbers:
        default = yaml_value(freeze(values[0]))
        ordered = yaml_value(freeze(sorted(dict.fromkeys(values))))
        return f"{{values: {ordered}, default: {default}}}"
    return f"{{choices: {yaml_value(freeze(values))}}}"
