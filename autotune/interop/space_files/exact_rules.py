"""Rules of a space file under which exactly some listed configurations are left. Pure.

Configurations that differ in one knob alone are merged into a *box*, a list of values for each knob, until
no two can be merged. One rule says that a configuration lies in one of the boxes; where it would become too
long, one knob's values are taken apart, and each has a rule of its own::

    BLOCK == 64 and num_warps in [2, 4] or BLOCK == 128 and num_warps == 8
    BLOCK != 64 or num_warps in [2, 4]
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from autotune.errors import InputError, Problem
from autotune.space.configuration import Value
from autotune.space.knobs.values import key

LONGEST = 400
"""Characters of a rule: what people still read. The rule language itself takes more."""

Row = tuple[Value, ...]
"""A value for each knob, in the order of the knobs."""

Box = tuple[frozenset[int], ...]
"""The places of the values of each knob."""


def exact_rules(knobs: Mapping[str, Sequence[Value]], rows: Collection[Row]) -> list[str]:
    """Rules that only ``rows`` satisfy of all combinations of the knobs' values; none where all are there.

    Raises :class:`InputError` where two values have to be told apart that are equal in rules: 1 and true.
    """
    places = [{key(value): place for place, value in enumerate(values)} for values in knobs.values()]
    cells = {tuple(known[key(value)] for known, value in zip(places, row, strict=True)) for row in rows}
    writer = _Writer(tuple(knobs), tuple(map(tuple, knobs.values())))
    return writer.rules(cells, ())


def combinations(knobs: Mapping[str, Sequence[Value]]) -> int:
    """How many there are without any rule."""
    return math.prod(map(len, knobs.values()))


def boxes(cells: Collection[tuple[int, ...]]) -> list[Box]:
    """Boxes that hold each of ``cells`` once and nothing else."""
    found = {tuple(frozenset([place]) for place in cell) for cell in cells}
    width = len(next(iter(found), ()))
    while True:
        before = len(found)
        for axis in range(width):
            merged: dict[Box, frozenset[int]] = {}
            for box in found:
                rest = box[:axis] + box[axis + 1 :]
                merged[rest] = merged.get(rest, frozenset()) | box[axis]
            found = {(*rest[:axis], places, *rest[axis:]) for rest, places in merged.items()}
        if len(found) == before:
            return sorted(found, key=lambda box: [sorted(places) for places in box])


class _Writer:
    """Writes rules over these knobs."""

    def __init__(self, names: tuple[str, ...], values: tuple[tuple[Value, ...], ...]) -> None:
        self.names = names
        self.values = values

    def rules(self, cells: Collection[tuple[int, ...]], fixed: tuple[tuple[int, int], ...]) -> list[str]:
        """What holds of the other knobs where those of ``fixed`` have these places."""
        cases = [self.case(box, fixed) for box in boxes(cells)]
        if "" in cases:  # anything goes
            return []
        if len(cases) > 1:
            cases = [f"({case})" if " and " in case else case for case in cases]
        others = self.elsewhere(fixed)
        rule = " or ".join([*others, *cases])
        taken = {axis for axis, _ in fixed}
        free = [axis for axis in range(len(self.names)) if axis not in taken and len(self.values[axis]) > 1]
        if len(rule) <= LONGEST or len(cases) == 1 or not free:
            return [rule]
        return self.split(cells, fixed, free[0])

    def split(
        self, cells: Collection[tuple[int, ...]], fixed: tuple[tuple[int, int], ...], axis: int
    ) -> list[str]:
        """A rule or more for each value of the knob ``axis``; one for those that do not occur."""
        occurring = sorted({cell[axis] for cell in cells})
        found = []
        if len(occurring) < len(self.values[axis]):
            found.append(" or ".join([*self.elsewhere(fixed), self.one_of(axis, occurring)]))
        for place in occurring:
            own = [cell for cell in cells if cell[axis] == place]
            found += self.rules(own, (*fixed, (axis, place)))
        return found

    def case(self, box: Box, fixed: tuple[tuple[int, int], ...]) -> str:
        """What holds inside a box, beyond what is fixed; empty where that is nothing."""
        taken = {axis for axis, _ in fixed}
        parts = [
            self.one_of(axis, sorted(places))
            for axis, places in enumerate(box)
            if axis not in taken and len(places) < len(self.values[axis])
        ]
        return " and ".join(parts)

    def elsewhere(self, fixed: tuple[tuple[int, int], ...]) -> list[str]:
        """What holds outside of what is fixed."""
        return [f"{self.names[axis]} != {literal(self.values[axis][place])}" for axis, place in fixed]

    def require_told_apart(self, axis: int, places: Sequence[int]) -> None:
        """A flag and a number may be two values of a knob, and equal in rules, as in Python.

        It is asked of all boxes before a rule is split: where none of them tells the two apart, what holds
        of one holds of the other, and either may stand in ``!=``.
        """
        values = self.values[axis]
        others = [value for place, value in enumerate(values) if place not in places]
        if both := [values[place] for place in places if values[place] in others]:
            pair = f"{int(both[0])} and {literal(bool(both[0]))}"  # type: ignore[arg-type]
            message = f"{self.names[axis]} has the values {pair}, which rules cannot tell apart"
            raise InputError(Problem(message, expected="one of the two in all configurations"))

    def one_of(self, axis: int, places: Sequence[int]) -> str:
        self.require_told_apart(axis, places)
        values = [literal(self.values[axis][place]) for place in places]
        name = self.names[axis]
        return f"{name} == {values[0]}" if len(values) == 1 else f"{name} in [{', '.join(values)}]"


def literal(value: Value) -> str:
    """A number, flag or text as the rule language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
        return "'" + "".join(escapes.get(letter, letter) for letter in value) + "'"
    return repr(value)
