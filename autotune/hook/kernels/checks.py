"""Checks of the arguments of ``@autotune.kernel``, made before anything is launched."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem, nearest

OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
)
"""Triton's launch options for NVIDIA and AMD: knobs that are not parameters of the kernel."""


def read_texts(what: str, given: Any, of: str = "names") -> tuple[str, ...]:
    """A list of texts as a tuple; ``of`` says in messages what they are.

    Raises :class:`InputError` for anything else, a single text too: it would be taken for its letters.
    """
    expected = f"a list of {of}"
    if isinstance(given, str):
        raise InputError(Problem(f"{what} is the text {given!r}", expected=f"{expected}: [{given!r}]"))
    if not isinstance(given, Iterable):
        raise InputError(Problem(f"{what} is {given!r:.80}", None, expected, "an empty one is []"))
    texts = tuple(given)
    problems = [
        Problem(f"{what} has {one!r:.80} in it", None, expected) for one in texts if not isinstance(one, str)
    ]
    if problems:
        raise InputError(problems)
    return texts


def read_tolerance(given: Any) -> float | None:
    """A relative error, 0 or more. Raises :class:`InputError` for anything else but ``None``."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, Real) or math.isnan(given) or given < 0:
        expected = "a number from 0 on, such as 0.01 for one per cent of the largest value"
        hint = "leave it out to allow what rounding explains"
        raise InputError(Problem(f"tolerance is {given!r:.80}", None, expected, hint))
    return float(given)


def check_space(given: Any, rules: Sequence[str]) -> None:
    """Raise :class:`InputError` if ``given`` is no space, or is a whole space but ``rules`` are given too."""
    from autotune.hook.kernels.space import KINDS

    if not isinstance(given, KINDS):
        expected = "knobs by name ({'BLOCK': [64, 128]}), an autotune.Space or a space file"
        raise InputError(Problem(f"space is {given!r:.80}", None, expected))
    if rules and not isinstance(given, Mapping):
        whole = "a file" if isinstance(given, (str, Path)) else "an autotune.Space"
        message = f"constraints are given, but space is {whole}: {list(rules)!r:.80}"
        expected = "the constraints in the space itself: the argument is for knobs by name"
        raise InputError(Problem(message, None, expected))


def check_parameters(what: str, given: Sequence[str], names: Sequence[str], kernel: str) -> None:
    """Raise :class:`InputError` unless all of ``given`` are among ``names``, the kernel's parameters."""
    problems = [
        Problem(
            f"the kernel {kernel} has no parameter {one!r}, which {what} names",
            None,
            ", ".join(names),
            nearest(one, names),
        )
        for one in given
        if one not in names
    ]
    if problems:
        raise InputError(problems)


def check_knobs(knobs: Sequence[str], key: Sequence[str], names: Sequence[str], kernel: str) -> None:
    """Raise :class:`InputError` for a knob that is neither a parameter of the kernel nor Triton's own."""
    known = [*(name for name in names if name not in key), *OPTIONS]
    problems = [
        Problem(
            f"the kernel {kernel} has no parameter {knob!r} to be tuned",
            expected="one of its parameters that is not in the key, or " + ", ".join(OPTIONS),
            hint=nearest(knob, known),
        )
        for knob in knobs
        if knob not in known
    ]
    if problems:
        raise InputError(problems)


def check_not_given(knobs: Iterable[str], given: Collection[str], kernel: str) -> None:
    """Raise :class:`InputError` for a call that says itself what is to be tuned."""
    problems = [
        Problem(
            f"this call of the kernel {kernel} gives {knob}, which is tuned",
            None,
            f"a call without {knob}: the launch adds it",
            f"or a space without the knob {knob}, where it is not to be tuned",
        )
        for knob in knobs
        if knob in given
    ]
    if problems:
        raise InputError(problems)
