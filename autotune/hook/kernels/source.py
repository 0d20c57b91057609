"""The source of a kernel with what it calls and reads, of which a recipe is."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from typing import Any

_CONSTANTS = (bool, int, float, str)


def source_hash(kernel: Any) -> str:
    """16 hexadecimal digits for a Triton kernel; empty where its source is not at hand.

    They are of the kernel's text without its decorators, of the kernels that it calls and of the constants
    that all of these read. Only once the whole module is loaded are those known that come after the kernel.
    """
    try:
        texts = list(_texts(_function(kernel)))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _texts(function: Any) -> Iterator[str]:
    """The text of ``function``, then of what it calls and reads, each once."""
    waiting, constants = [function], dict[str, str]()
    for one in waiting:
        text = inspect.getsource(one)
        yield text[text.find("def ") :]
        read = inspect.getclosurevars(one)
        for name, value in sorted({**read.globals, **read.nonlocals}.items()):
            called = _function(value)
            if inspect.isfunction(called):
                if called is not value and called not in waiting:
                    waiting.append(called)
            elif isinstance(plain := getattr(value, "value", value), _CONSTANTS):  # tl.constexpr has a value
                constants[f"{one.__module__}.{name}"] = repr(plain)
    yield from (f"{name} = {value}" for name, value in sorted(constants.items()))


def _function(kernel: Any) -> Any:
    """The Python function under Triton's decorators; anything else as it is."""
    while not inspect.isfunction(kernel) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel
