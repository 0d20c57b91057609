"""Messages between a process group and its ranks: pickles with their length in front.

Unlike a session, the starter of a group runs the objective's code too, so messages may hold any class.
"""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.measure.groups.network import Joined

Work = Callable[..., Any]
"""A function of a module: called in each rank with its ``Rank`` and the arguments of the call."""


@dataclass(frozen=True)
class Entered:
    """From a rank: it has joined the network."""

    joined: Joined


@dataclass(frozen=True)
class Go:
    """To a rank: all have joined, with these addresses."""

    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """To a rank: call ``name`` of ``module``, whose file is ``file``, with pickled arguments."""

    module: str
    file: str
    name: str
    arguments: bytes

    @classmethod
    def of(cls, work: Work, arguments: tuple[Any, ...]) -> Call:
        """Raises ``TypeError`` where a rank could not find ``work`` again, or for what cannot be pickled."""
        name = getattr(work, "__qualname__", repr(work))
        if "<" in name or not hasattr(work, "__qualname__"):
            raise TypeError(f"{name} is not a function of a module, so a rank could not find it")
        module = sys.modules[work.__module__]
        try:
            packed = pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError(f"the arguments of {name} cannot be pickled: {error}") from error
        return cls(work.__module__, getattr(module, "__file__", None) or "", name, packed)

    def find(self) -> Work:
        """The function, in a rank."""
        found: Any = load_module(self.module, self.file)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Done:
    """From a rank: what the function returned, pickled, and the seconds in each phase."""

    result: bytes
    phases: Mapping[str, float]


@dataclass(frozen=True)
class Raised:
    """From a rank: the function raised an exception. ``status`` is what that means for the trial."""

    status: str
    """The value of an :class:`autotune.status.Status`."""
    message: str
    at: float
    stderr: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)


def load_module(name: str, file: str) -> Any:
    """The module: if not loaded already, imported by its name, or else from its file."""
    if name == "__main__":
        name = "autotune_group_main"
    if name in sys.modules:
        return sys.modules[name]
    above = name.count(".") + (Path(file).name == "__init__.py")
    folder = str(Path(file).parents[above])  # that of the outermost package
    if folder not in sys.path:
        sys.path.append(folder)
    if name != "autotune_group_main" and _can_be_found(name):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"a rank finds no module {name} ({file or 'without a file'})")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _can_be_found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
