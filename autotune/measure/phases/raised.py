"""From what an objective has raised to how its trial ends."""

from __future__ import annotations

import operator
import traceback
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from autotune.measure.diagnostics import MOST_TEXT, kept, lacks_memory, text_of, writable
from autotune.measure.gpu.failures import classify
from autotune.measure.objective import Signal, WrongAnswer
from autotune.measure.phases.mistakes import mistake_in
from autotune.measure.readings import named_values
from autotune.status import Status

_OURS = (
    "autotune.measure.phases.gathering",
    "autotune.measure.phases.meter",
    "autotune.measure.phases.runner",
)
"""The modules between an objective and the place where its exceptions are caught, left out of tracebacks."""


class Failed(Exception):  # noqa: N818
    """Ends a trial with what is known of it so far."""

    def __init__(
        self,
        status: Status,
        message: str,
        stderr: str = "",
        exit_code: int | None = None,
        signal: int | None = None,
        metrics: Mapping[str, float] = MappingProxyType({}),
        mistake: str = "",
        sure: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.stderr = stderr
        self.exit_code = exit_code
        self.signal = signal
        self.metrics = metrics
        self.mistake = mistake
        self.sure = sure


def failed(error: BaseException) -> Failed:
    """How a trial ends if its objective raises ``error``, whose attributes may be anything, or raise."""
    try:
        return _failed(error)
    except (Exception, SystemExit) as second:  # noqa: BLE001 - a SyntaxError with a number for its text, say
        frames = "".join(traceback.format_tb(error.__traceback__))
        stderr = f"{frames}(the rest of the traceback cannot be shown: {describe(second)})"
        return Failed(Status.CRASHED, describe(error), writable(both_ends(stderr)))


def _failed(error: BaseException) -> Failed:
    if isinstance(error, Signal):
        message = describe(error, with_type=False)
        metrics = _numbers(error.metrics) if isinstance(error, WrongAnswer) else {}
        stderr = writable(str(error.stderr)) or _left_out(error)
        mistake = writable(str(error.mistake))
        exit_code, signal = _whole(error.exit_code), _whole(error.signal)
        return Failed(error.status, message, stderr, exit_code, signal, metrics, mistake, error.sure)
    if (found := classify(error)) is not None:
        return Failed(found.status, f"{found.name} ({describe(error)})", _trace(error))
    message = describe(error)
    if lacks_memory((kind.__name__ for kind in type(error).__mro__), message):
        return Failed(Status.OUT_OF_MEMORY, message, _trace(error))
    return Failed(Status.CRASHED, message, _trace(error), mistake=writable(mistake_in(error)))


def _whole(number: object) -> int | None:
    """``number`` as an integer that any store can hold; an objective may have passed anything for it."""
    try:
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        return None
    return whole if abs(whole) < 2**31 else None


def _numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    """Those of the metrics that are numbers. Others are ignored: the answer is wrong in any case."""
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        with suppress(Exception):  # an object of the objective may raise anything when it is converted
            numbers |= named_values({name: value}, "")
    return numbers


def describe(error: BaseException, with_type: bool = True) -> str:
    """One exception as a sentence, even where its ``__str__`` fails."""
    name, text = type(error).__name__, kept(text_of(error))
    if not with_type:
        return text or name
    return f"{name}: {text}" if text else name


def _left_out(error: BaseException) -> str:
    """The whole message, if a trial keeps only a part of it: a compiler may have much to say."""
    text = text_of(error)
    return "" if kept(text) == text else text


def _trace(error: BaseException) -> str:
    """The traceback from the objective's own code on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _OURS:
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    return writable(both_ends("".join(lines)))


def both_ends(text: str) -> str:
    """A text, shortened in the middle if it is long.

    A traceback begins with the place, and the output of a compiler ends with the reason.
    """
    if len(text) <= MOST_TEXT:
        return text
    end = MOST_TEXT // 2
    return f"{text[:end]}\n[... {len(text) - 2 * end:,} characters left out ...]\n{text[-end:]}"
