"""What a run sends to its search: few messages, however often the script reports.

A training of 1 ms a step reports a thousand times a second. Receiving all of that would cost the session,
and the core that trains, more than it is worth. So the reports of a fifth of a second become one message.
Those that the search decides by are sent at once: at a rung, at the last step, and when the loss is
infinite or NaN.

At a rung the search is woken up, since training on may be in vain. The run only waits for its decision if
the search may pause it there: by training on, it would save a checkpoint of a later step, perhaps of the
last one, with nothing left to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotune.hook.runs.link import TooLargeError, warn
from autotune.hook.runs.values import FLOATS, as_number

if TYPE_CHECKING:
    from autotune.hook.runs.link import Link

SECONDS_BETWEEN = 0.2

_ROOM_SECONDS = 1.0
"""How long the first and the last message may wait for room in the socket. No other message waits."""

_DECISION_SECONDS = 10.0
"""How long a report at a rung waits to hear whether the training is paused there. After a wait in vain, the
run does not wait again."""

_MOST_TEXT = 2000
"""The most characters of a name or of an error's text in a message."""

_MOST_DEFAULT = 200
"""The most characters of a knob's default in a message."""

_INFINITE = float("inf")


class Reports:
    """The metrics of a run, sent as :mod:`autotune.measure.commands.run_protocol` says."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._pending: dict[str, Any] = {}
        """What was reported since the last message. Tensors become numbers only when they are sent."""
        self._result: dict[str, Any] = {}
        self._metric: str | None = link.facts.get("metric")
        self._judged: list[str] = [self._metric] if self._metric else link.facts.get("goals", [])
        """The metrics that end the trial where they are no number."""
        self._most: float = link.facts.get("steps") or _INFINITE
        self._counted: int | None = None
        """The last step, not beyond ``_most``, that was reported with the metric."""
        self._said_past = False
        rungs = (*link.facts.get("decide_at", ()), *link.facts.get("kept_at", ()))
        steps = {*rungs, link.facts.get("steps") or 0} - {0}
        self._awaited = sorted(steps, reverse=True)
        self._rungs = set(link.facts.get("decide_at", ()))
        self._may_pause = bool(link.facts.get("pauses"))
        self._sent_at = -_INFINITE
        self._said_too_large = False
        link.send({"kind": "hello", "name": str(name)[:_MOST_TEXT], "pid": os.getpid()}, _ROOM_SECONDS)

    def take(self, step: int, values: Mapping[str, Any]) -> None:
        """Take a report, and send it if it is time to, or if the search decides by it."""
        if not self._link.open:
            return
        if step > self._most and self._counted is not None:
            self._pass(step, values, self._counted)
            return
        self._pending.update(values)
        if self._metric is not None and self._metric not in values:
            return  # sent with the next report that has the metric
        self._counted = step
        now = time.monotonic()
        if now - self._sent_at >= SECONDS_BETWEEN or self._is_awaited(step, values):
            self._sent_at = now
            self._send(step)

    def _pass(self, step: int, values: Mapping[str, Any], counted: int) -> None:
        """Tell the search, once, that the script reports a step beyond its last one, which ends the trial.

        First what was reported up to the last step is sent: the trial is judged by that.
        """
        if self._pending:
            self._send(counted)
        judged = {name: value for name, value in values.items() if name == self._metric}
        if judged and not self._pending and not self._said_past:
            report = {"kind": "report", "step": step, "values": _numbers(judged)}
            self._said_past = self._link.send(report)

    def _is_awaited(self, step: int, values: Mapping[str, Any]) -> bool:
        if self._awaited and step >= self._awaited[-1]:
            return True
        for name in self._judged:  # a generator would make a report half as dear again
            value: Any = values.get(name)
            plain = isinstance(value, float) or type(value).__name__ in FLOATS  # for a tensor it would wait
            if value is None and name in values:
                return True  # is refused, whether or not a later report would replace it
            if plain and not -_INFINITE < value < _INFINITE:
                return True
        return False

    def _send(self, step: int) -> None:
        numbers = _numbers(self._pending)
        passed = {rung for rung in self._rungs if rung <= step}
        waits = bool(passed) and self._may_pause
        message = {"kind": "report", "step": step, "values": numbers, "awaits": waits}
        try:
            if not self._link.send(message):
                return
        except TooLargeError:
            self._leave_out(f"a report of {len(numbers)} metrics")
            self._pending.clear()  # otherwise the next report would be as large
            return
        self._pending.clear()
        while self._awaited and step >= self._awaited[-1]:
            self._awaited.pop()
        self._rungs -= passed
        if passed:
            self._link.knock()
        if waits:
            self._may_pause = self._link.await_answer(_DECISION_SECONDS)

    def result(self, metrics: Mapping[str, Any]) -> None:
        """Set metrics of the whole run; they replace what was reported."""
        self._result.update(metrics)

    def fact(self, name: str, value: object) -> None:
        """Send a fact of the trial now: the script may be killed before the next report."""
        from autotune.measure.facts import OF_COMMANDS, OWN, given_facts

        try:
            self._link.send(
                {"kind": "facts", "facts": given_facts({name: value}, (*OWN, *OF_COMMANDS))}, _ROOM_SECONDS
            )
        except TooLargeError:
            raise ValueError(f"the fact {name!r} is too large to be sent: keep the path of a file") from None

    def end(self, asked: Mapping[str, object], error: BaseException | None) -> None:
        """The last message: all that the trial's outcome needs. ``asked`` has the default of each knob.

        Raises ``TypeError`` for a metric that is no number, unless an ``error`` has ended the run already.
        """
        unsent = _numbers(self._pending | self._result, skip=error is not None)
        failed = _described(error)
        asked = {name: _plain(default) for name, default in asked.items()}
        if not self._send_end(asked, unsent, failed):
            self._leave_out(f"a result of {len(unsent)} metrics")
            self._send_end(asked, {}, failed)

    def _send_end(
        self, asked: Mapping[str, object], values: Mapping[str, float], failed: Mapping[str, object]
    ) -> bool:
        """Send the last message; returns false if it is too large."""
        message = {"kind": "end", "values": values, "asked": asked, "failed": failed}
        try:
            self._link.send({**message, "dropped": self._link.dropped}, _ROOM_SECONDS)
        except TooLargeError:
            return False
        return True

    def _leave_out(self, what: str) -> None:
        """Count a message that is too large to be sent, and warn of the first one in a run."""
        self._link.dropped += 1
        if not self._said_too_large:
            self._said_too_large = True
            warn(f"{what} is too large and was not sent to the search, and neither will others be")


def _numbers(values: Mapping[str, Any], skip: bool = False) -> dict[str, float]:
    """The metrics as numbers. ``skip`` leaves out what is no number; otherwise that raises ``TypeError``."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = as_number(name, value)
        except TypeError:
            if not skip:
                raise
    return found


def _plain(default: object) -> object:
    """A default that is a number or a text, if it is not too long to be sent; else ``None``."""
    if isinstance(default, int):
        return default if default.bit_length() < 64 else None
    is_short_text = isinstance(default, str) and len(default) <= _MOST_DEFAULT
    return default if is_short_text or isinstance(default, float) else None


def _described(error: BaseException | None) -> dict[str, object]:
    """An exception as plain data, so that it can be read without importing its class."""
    if error is None:
        return {}
    try:
        text = str(error)[:_MOST_TEXT]
    except Exception as second:  # noqa: BLE001 - whatever a __str__ raises
        text = f"(its text cannot be shown: {type(second).__name__})"
    status = getattr(type(error), "status", None)
    if isinstance(status, str):  # one of autotune's own: Infeasible, Diverged ...
        return {"status": str(status), "message": text, "kinds": []}
    name = type(error).__name__
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"message": f"{name}: {text}" if text else name, "kinds": kinds}
