"""Run as a program: imports a Python source and prints the kernels of it under ``triton.autotune``, as JSON.

``python kernel_probe.py FILE [NAME]``. The document has ``kernels``, each with its ``configs`` as Triton
holds them, and where the source has a NAME ``named``, the configurations of that list or function; or
``failed`` where importing it did, or ``failed_named`` where NAME gave none, and ``line``, the last one of
FILE that this went through.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import operator
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

INSIDE = ("fn", "jit_function", "__wrapped__")
"""Where decorators around a kernel keep what they stand around."""

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")

SAID = ("kwargs", *OPTIONS)
"""What a space can say of a configuration."""


def main(file: Path, name: str) -> None:
    answer = os.dup(1)
    os.dup2(2, 1)  # what the source prints is no part of the answer
    document: dict[str, object]
    made = False
    try:
        module = imported(file)
        document = {"kernels": list(kernels(module, file))}
        made = True
        if hasattr(module, name):
            document |= {"named": named(module, name)}
    except BaseException as error:  # noqa: BLE001 - whatever it raises is the answer
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno or 0 for frame in frames if Path(frame.filename) == file]
        text = " ".join(str(error).split())
        what = "failed_named" if made else "failed"
        document = {what: f"{type(error).__name__}: {text}", "line": lines[-1] if lines else 0}
    with os.fdopen(answer, "w") as out:
        json.dump(document, out)


def imported(file: Path) -> ModuleType:
    """The source as a program that uses it imports it: of its package, or with its folder on the path."""
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    if len(parts) > 1:
        return importlib.import_module(".".join(part for part in parts if part != "__init__"))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernels(module: ModuleType, file: Path) -> Iterator[dict[str, object]]:
    """Those that ``file`` itself defines, each once."""
    seen = set()
    for name, value in list(vars(module).items()):
        layers = list(inside(value))
        tuned = next((one for one in layers if isinstance(getattr(one, "configs", None), list)), None)
        function = layers[-1]
        if tuned is None or id(tuned) in seen or not isinstance(function, FunctionType):
            continue
        if Path(function.__code__.co_filename) != file:
            continue
        seen.add(id(tuned))
        yield {
            "name": name,
            "line": function.__code__.co_firstlineno,
            "configs": [config(one) for one in tuned.configs],
            "parameters": parameters(function),
            "keys": [str(one) for one in getattr(tuned, "keys", ())],
            "left_out": list(left_out(tuned)),
        }


def parameters(function: FunctionType) -> list[str]:
    code = function.__code__
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def inside(value: object) -> Iterator[Any]:
    """``value``, and what it stands around, down to the function."""
    seen: set[int] = set()
    while value is not None and id(value) not in seen and not isinstance(value, (ModuleType, type)):
        seen.add(id(value))
        yield value
        held = None
        for name in INSIDE:
            with suppress(Exception):  # a stranger's attribute may raise whatever it likes
                held = held or getattr(value, name, None)
        value = held
    if not seen:
        yield None


def config(one: Any) -> dict[str, object]:
    return {
        "kwargs": {str(name): plain(value) for name, value in one.kwargs.items()},
        "options": {name: plain(getattr(one, name, None)) for name in OPTIONS},
        "others": [name for name, value in vars(one).items() if value and name not in SAID],
    }


def plain(value: Any) -> object:
    """A number, a flag or a text as it is; anything else as ``{"shown": ...}``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    with suppress(Exception):
        return operator.index(value)
    return {"shown": repr(value)[:200]}


def left_out(tuned: Any) -> Iterator[str]:
    """What its decorator was given beside configurations and keys."""
    if any(getattr(tuned, name, None) is not None for name in ("early_config_prune", "perf_model")):
        yield "prune_configs_by"
    for name in ("reset_to_zero", "restore_value"):
        if getattr(tuned, name, None):
            yield name
    for name in ("pre_hook", "post_hook"):
        if getattr(tuned, f"user_defined_{name}", False):
            yield name


def named(module: ModuleType, name: str) -> list[dict[str, object]]:
    """The configurations of a list of the source, or of what a function of it returns."""
    found = getattr(module, name)
    return [config(one) for one in (found() if callable(found) else found)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
