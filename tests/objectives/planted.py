"""Kernels in C made wrong on purpose: a right one whose text is changed, or one behind a wrong wrapper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.objectives.ready import Ready

WRAPPER = """
void {name}({parameters})
{{
    static char earlier[1 << 22];
    static int calls;
    {before}
    right_{name}({arguments});
    {after}
    (void)earlier, (void)calls;
}}
"""


@dataclass(frozen=True)
class Kernel:
    """What wrappers and faults need to know of a kernel in C."""

    space: str
    """The name of its ready space."""
    parameters: str
    first_input: str
    output: str
    elements: str
    """How many the output has: an expression of the parameters."""
    ragged: str
    """Whether the size is one that no vector divides."""
    workload: Mapping[str, int]
    """A small one whose sizes every tile divides."""
    knobs: Mapping[str, Any]

    def wrapped(self, name: str, before: str = "", after: str = "") -> str:
        """A wrapper with the kernel's name, for one that was renamed."""
        arguments = ", ".join(one.split()[-1].lstrip("*") for one in self.parameters.split(","))
        named = {"in": self.first_input, "out": self.output, "count": self.elements, "ragged": self.ragged}
        for key, value in named.items():
            before, after = before.replace(f"@{key}", f"({value})"), after.replace(f"@{key}", f"({value})")
        parts = {"parameters": self.parameters, "arguments": arguments, "before": before, "after": after}
        return WRAPPER.format(name=name, **parts)


WRAPPED: Mapping[str, tuple[str, str]] = {
    "writes nothing": ("return;", ""),
    "repeats its first answer": (
        "if (calls++) { memcpy(@out, earlier, @count * sizeof *@out); return; }",
        "memcpy(earlier, @out, @count * sizeof *@out);",
    ),
    "adds to what was there": (
        "memcpy(earlier, @out, @count * sizeof *@out);",
        "for (long at = 0; at < @count; at++) @out[at] += ((typeof(@out))earlier)[at];",
    ),
    "writes past the end": ("", "@out[@count] = 0;"),
    "writes before the beginning": ("", "@out[-1] = 0;"),
    "changes an input": ("", "((float *)@in)[0] += 1;"),
    "is wrong for ragged sizes only": ("", "if (@ragged) @out[@count - 1] = !@out[@count - 1];"),
    "is wrong for some data only": (
        "",
        "unsigned bits = 0; memcpy(&bits, @in, 4); "
        "if ((bits * 2654435761u) >> 31) @out[@count / 2] = !@out[@count / 2];",
    ),
}
"""Before and after the right kernel is called."""


def load_wrapped(ready: Ready, kernel: Kernel, fault: str, folder: Path) -> tuple[Any, Any]:
    """An objective, and its kernel behind a wrapper that makes it wrong as ``fault`` says."""
    objective = ready.objective(**kernel.workload)
    before, after = WRAPPED[fault] if fault else ("", "")
    name = objective.function
    text = f"#define {name} right_{name}\n{objective.source.read_text()}\n#undef {name}\n"
    text += f"#include <string.h>\n{kernel.wrapped(name, before, after)}"
    return _loaded(ready, kernel, objective, text, folder)


def load_changed(ready: Ready, kernel: Kernel, old: str, new: str, folder: Path) -> tuple[Any, Any]:
    """An objective, and its kernel with one place of its text changed."""
    objective = ready.objective(**kernel.workload)
    text = objective.source.read_text()
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {objective.source.name}"
    return _loaded(ready, kernel, objective, text.replace(old, new), folder)


def _loaded(ready: Ready, kernel: Kernel, objective: Any, text: str, folder: Path) -> tuple[Any, Any]:
    file = folder / objective.source.name
    file.write_text(text)
    changed = type("Changed", (type(objective),), {"source": file})
    maker = changed(objective.context)
    return objective, maker.load(maker.prepare(ready.configuration(**kernel.knobs)))
