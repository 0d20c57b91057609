"""``@autotune.kernel``: a Triton kernel that is launched with the configuration tuned for its case.

::

    @autotune.kernel(space={"BLOCK": [64, 128, 256], "num_warps": [2, 4, 8]}, key=["n"])
    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)      # as before

A call takes the recipe of its case (the values of ``key`` and the types of its tensors) on this device, else
that of the nearest case, else the default. It never searches, unless it is asked to.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from autotune.errors import InputError, Problem
from autotune.hook.kernels.checks import (
    check_knobs,
    check_parameters,
    check_space,
    read_texts,
    read_tolerance,
)
from autotune.hook.kernels.settings import Settings
from autotune.hook.tuning import Budget, read_time

if TYPE_CHECKING:
    from autotune.hook.kernels.space import Given
    from autotune.hook.kernels.tuned import TunedKernel


def kernel(
    space: Given,
    key: Sequence[str],
    *,
    constraints: Sequence[str] = (),
    recipes: str | Path | None = None,
    written: Sequence[str] = (),
    tolerance: float | None = None,
    tune: Literal["ask", "never"] = "ask",
    trials: int = 60,
    time: float | str = 60.0,
    store: str | None = None,
    name: str = "",
) -> Callable[[Any], TunedKernel]:
    """Give a ``triton.jit`` function its tuned configurations.

    ``space``: knobs by name (a list of values, or a mapping as in a space file), a :class:`autotune.Space`,
    or a space file (relative to the file of the kernel). A knob is a parameter of the kernel, or one of
    Triton's launch options. ``constraints`` are rules over them, beside knobs given by name; they may use the
    names in ``key``. ``key``: the parameters whose values make a case of their own.

    ``recipes`` is the file of recipes (default: beside the file of the kernel, ``NAME.recipes.json``).
    ``tolerance`` is the largest error, over the largest value, by which another configuration may differ from
    the default; ``written`` names tensors of whole numbers that the kernel only writes. See
    :class:`autotune.hook.kernels.call_objective.CallObjective`.

    With ``tune="never"`` the kernel is not tuned even where :func:`autotune.tuning` or ``AUTOTUNE_TUNE=1``
    asks for it. ``trials`` and ``time`` (seconds, or a text such as ``"90s"``) bound the search for one case;
    ``store`` is where its trials are kept.

    Raises :class:`InputError` for a key, knob or tensor that the kernel does not have, and for an argument of
    the wrong kind.
    """
    if tune not in ("ask", "never"):
        raise InputError(Problem(f"tune is {tune!r}", expected="'ask' or 'never'"))
    said = Settings(
        name=name,
        key=read_texts("key", key),
        written=read_texts("written", written),
        tolerance=read_tolerance(tolerance),
        asks=tune == "ask",
        budget=Budget(trials, read_time(time), store),
    )
    rules = read_texts("constraints", constraints, "rules")
    check_space(space, rules)
    return partial(_tuned, space=space, rules=rules, recipes=recipes, said=said)


def _tuned(
    function: Any, *, space: Given, rules: tuple[str, ...], recipes: str | Path | None, said: Settings
) -> TunedKernel:
    """The second half of :func:`kernel`: what needs the function, for its name, parameters and file."""
    from autotune.hook.kernels.space import KernelSpace
    from autotune.hook.kernels.tuned import TunedKernel

    python, names = _inside(function)
    for what, given in (("key", said.key), ("written", said.written)):
        check_parameters(what, given, names, python.__name__)
    parameters = inspect.signature(python).parameters
    defaults = {name: parameters[name].default for name in said.key}
    file = Path(inspect.getsourcefile(python) or "kernel.py").absolute()
    settings = replace(
        said,
        name=said.name or python.__name__,
        recipes=file.parent / recipes if recipes else file.with_suffix(".recipes.json"),
        defaults={name: d for name, d in defaults.items() if d is not inspect.Parameter.empty},
    )
    listed = [knob.name for knob in getattr(space, "knobs", ())]  # those of a file are not known yet
    knobs = read_texts("space", space, "knobs by name") if isinstance(space, Mapping) else listed
    check_knobs(knobs, said.key, names, settings.name)
    return TunedKernel(function, names, settings, KernelSpace(settings.name, space, rules, file))


def _inside(function: Any) -> tuple[Any, tuple[str, ...]]:
    """The Python function under Triton's decorators, and its parameters."""
    names = getattr(function, "arg_names", None)
    if names is None or not hasattr(function, "run"):
        hint = "put @autotune.kernel(...) above @triton.jit; another function is tuned by autotune.search"
        raise InputError(Problem(f"{function!r} is no Triton kernel", hint=hint))
    inner = function
    while not inspect.isfunction(inner):
        if type(inner).__name__ == "Autotuner":
            hint = "take @triton.autotune away; autotune convert makes a space of its configurations"
            raise InputError(Problem("this kernel is tuned by triton.autotune already", hint=hint))
        inner = inner.fn
    return inner, tuple(names)
