"""Device profiles: facts of a machine that is elsewhere, from this package or from a user's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest
from autotune.provenance.code.files import is_file
from autotune.space.configuration import FrozenMap, freeze

SHIPPED = Path(__file__).with_name("profiles.yaml")


@dataclass(frozen=True)
class Fact:
    """One fact that a device may have: what it means, and what a value of it must be."""

    meaning: str
    expected: str
    valid: Callable[[object], bool]


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _capability(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value < 100


def _names(value: object) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(map(_text, value)) and len(set(value)) == len(value)
    )


COUNT, SIZE = "a positive integer", "a number of bytes (an integer)"

FACTS: Mapping[str, Fact] = {
    "kind": Fact("what it is", "cpu or gpu", lambda value: value in ("cpu", "gpu")),
    "name": Fact("the product's name", "a text", _text),
    "names": Fact("devices to place work on", "a list of different names such as [cpu, 'cuda:0']", _names),
    "memory_bytes": Fact("memory that may be used, of the device that kind says", SIZE, _count),
    "cores": Fact("physical cores that may be used", COUNT, _count),
    "threads": Fact("hardware threads that may be used", COUNT, _count),
    "l1_bytes": Fact("first-level data cache of one core", SIZE, _count),
    "l2_bytes": Fact("second-level cache: of one core, or of the whole GPU", SIZE, _count),
    "l3_bytes": Fact("third-level cache of one group of cores; 0: there is none", SIZE, _size),
    "cache_line_bytes": Fact("a line of the first-level cache", SIZE, _count),
    "vector_bytes": Fact("width of a vector register", SIZE, _count),
    "gpu_name": Fact("name of the GPU, where kind is cpu and there is one", "a text", _text),
    "gpu_memory_bytes": Fact("memory of the GPU, whatever kind says", SIZE, _count),
    "gpu_l2_bytes": Fact("second-level cache of the GPU, whatever kind says", SIZE, _count),
    "shared_memory_bytes": Fact("shared memory a block may opt in to", SIZE, _count),
    "registers": Fact("32-bit registers of a block", COUNT, _count),
    "warp_size": Fact("threads of a warp (wavefront)", COUNT, _count),
    "sm_count": Fact("streaming multiprocessors (compute units)", COUNT, _count),
    "sm_threads": Fact("threads that a multiprocessor holds at once", COUNT, _count),
    "sm_registers": Fact("32-bit registers of a multiprocessor", COUNT, _count),
    "sm_shared_memory_bytes": Fact("shared memory of a multiprocessor, for all its blocks", SIZE, _count),
    "max_threads": Fact("threads of a block at most", COUNT, _count),
    "compute_capability": Fact("CUDA compute capability", "a number such as 9.0", _capability),
    "assumed": Fact("facts that could not be found out here, and are those of generic-cpu", "a list", _names),
}
"""Every name that may follow ``device.`` in a rule. A device has only some of them."""


def profile(which: str | Path) -> FrozenMap:
    """The facts of a shipped profile, or of the user's YAML or JSON file.

    A file holds the facts themselves (``kind: gpu``, ``warp_size: 32`` ...). Raises
    :class:`~autotune.errors.InputError` with every problem found: an unknown profile or fact, a bad value.
    """
    known = _load(SHIPPED)
    if str(which) in known:
        return check(known[str(which)], SHIPPED)
    path = Path(which)
    if not is_file(path):
        names = ", ".join(sorted(known))
        hint = (
            nearest(str(which), known) or "a file may be given as well: its path ends in .yaml, .yml or .json"
        )
        raise InputError(
            Problem(f"there is no device profile or file {str(which)!r}", expected=names, hint=hint)
        )
    return check(_load(path), path)


def check(facts: Any, path: Path) -> FrozenMap:
    """The facts as a rule may use them, or every problem there is with them."""
    if not isinstance(facts, dict) or not facts:
        expected = "a mapping of facts, such as  kind: gpu"
        raise InputError(Problem("not a device profile", Location(str(path)), expected))
    problems = []
    for name, value in facts.items():
        where = _where(facts, name, path)
        fact = FACTS.get(name)
        if fact is None:
            hint = nearest(str(name), FACTS)
            problems.append(Problem(f"no device has a fact {name!r}", where, ", ".join(FACTS), hint))
        elif not fact.valid(value):
            problems.append(Problem(f"{name} ({fact.meaning}) cannot be {value!r}", where, fact.expected))
    if "kind" not in facts:
        problems.append(Problem("the fact 'kind' is missing", Location(str(path)), "kind: cpu or kind: gpu"))
    if problems:
        raise InputError(problems)
    return complete({str(name): _builtin(value) for name, value in facts.items()})


def complete(facts: Mapping[str, object]) -> FrozenMap:
    """The facts with what follows from them: the ``gpu_...`` names, compute capability as a float."""
    full = dict(facts)
    if full.get("kind") == "gpu":
        for name in ("name", "memory_bytes", "l2_bytes"):
            if name in full:
                full.setdefault(f"gpu_{name}", full[name])
    if "compute_capability" in full:
        full["compute_capability"] = float(str(full["compute_capability"]))
    full.setdefault("names", ["cpu", "cuda:0"] if full.get("kind") == "gpu" else ["cpu"])
    return FrozenMap({name: freeze(value) for name, value in full.items()})


def _builtin(value: object) -> object:
    """Without the subclasses in which the YAML reader remembers how a value was written."""
    if isinstance(value, list):
        return [_builtin(item) for item in value]
    return int(value) if isinstance(value, int) else float(value) if isinstance(value, float) else str(value)


def _where(facts: Any, name: object, path: Path) -> Location:
    try:
        line, column = facts.lc.key(name)
    except (AttributeError, KeyError, TypeError):
        return Location(str(path))
    return Location(str(path), line + 1, column + 1)


def _load(path: Path) -> Any:
    """A YAML file (JSON is a part of YAML) with the places of its keys."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="rt").load(path.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = Location(str(path), mark.line + 1, mark.column + 1) if mark else Location(str(path))
        raise InputError(Problem(str(error.problem or "not YAML"), where, "YAML or JSON")) from None
    except RecursionError:
        raise InputError(Problem("it is nested too deeply", Location(str(path)), "YAML or JSON")) from None
    except (YAMLError, UnicodeDecodeError, OSError, ValueError) as error:
        raise InputError(Problem(f"cannot be read: {error}", Location(str(path)), "YAML or JSON")) from None
