"""From the end of a worker to the outcome of the trial that it was at. Pure.

Several ends look the same from outside (signal 9); what tells them apart is who killed. The session kills a
worker at its time limit, or after it closed its connection. The kernel kills it at its memory cap, and counts
that in the control group. Otherwise it was somebody else, or the objective itself.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from autotune.measure.diagnostics import signal_name
from autotune.measure.outcome import Outcome
from autotune.measure.workers.endings import Ended
from autotune.measure.workers.messages import Noted
from autotune.status import Status

_SUSPECT = frozenset({Status.WRONG, Status.CRASHED, Status.OUT_OF_MEMORY, Status.LOST})

LIMIT_OF = {"prepare": "prepare_timeout"}
"""The setting that limits a phase; all others share ``timeout``."""


class Cause(Enum):
    """Why a worker has ended."""

    DIED = "it died"
    SILENT = "it closed its connection to the session"
    LIMIT = "it was killed at its time limit"
    ORDER = "it was given up"
    VANISHED = "its guardian was killed"


@dataclass(frozen=True)
class Death:
    """The end of a worker, and what is known of the trial that it was at."""

    cause: Cause
    ended: Ended | None
    noted: Noted
    """What it had written down of its last request."""
    cap_kills: int
    """How many of its processes the kernel had killed at its memory cap."""
    machine_kills: int
    """How many processes the kernel killed for memory on the whole machine during its last request."""
    output: str
    """What it printed while it was at its last request."""
    limit: float
    """Seconds that it had for its last request."""
    cap: int | None
    """Its memory cap in bytes."""


def outcome_of(death: Death, default_phase: str) -> Outcome:
    """The outcome of the trial. ``default_phase``: the phase it was in if it noted none."""
    phase = death.noted.phase or default_phase
    status, message = _verdict(death, phase)
    ended = death.ended
    ours = death.cause in (Cause.LIMIT, Cause.ORDER)
    peak = death.cap if status is Status.OUT_OF_MEMORY and death.cap_kills else None
    return Outcome(
        status=status,
        readings=death.noted.readings,
        phases=death.noted.phases,
        facts=death.noted.facts,
        message=message,
        phase=phase if status.failed else "",
        stderr=death.output,
        exit_code=None if ours or ended is None else ended.exit_code,
        signal=None if ours or ended is None else ended.signal,
        peak_memory=peak or (ended.peak_memory if ended is not None else None),
    )


def after_memory_kill(outcome: Outcome, cap: int) -> Outcome:
    """A trial that failed after the kernel killed one of its processes at the memory cap failed for that."""
    message = f"a process of it was killed at the memory cap of {_size(cap)}"
    if outcome.message:
        message += f" ({outcome.status}: {outcome.message})"
    return replace(outcome, status=Status.OUT_OF_MEMORY, message=message, peak_memory=cap)


def may_be_spoilt(outcome: Outcome, goal: str) -> bool:
    """Whether to replace a worker after a trial with this outcome.

    A configuration that wrote where it must not, or failed half-way, may have spoilt its process or the
    context of the device, and the next one would suffer. One that was measured, ``goal`` included, and only
    missed a bound did not: there the worker is kept, since loading a large library again takes seconds.
    """
    was_measured = "measure" in outcome.phases and goal in outcome.metrics
    return outcome.status in _SUSPECT and not (outcome.status is Status.WRONG and was_measured)


def start_failure(death: Death) -> str:
    """Why a worker never reached its first request, for people."""
    if death.cap_kills and death.cap is not None:
        return (
            f"the objective needs more than the memory cap of {_size(death.cap)} before its first trial:"
            " give more with measure: {memory: ...}"
        )
    _, message = _verdict(death, "start")
    if death.cause is Cause.LIMIT:
        message = f"it took longer than {death.limit:g} s"
    tail = f"\n{death.output.strip()}" if death.output.strip() else ""
    return f"the process that makes the objective did not start: {message}{tail}"


def _verdict(death: Death, phase: str) -> tuple[Status, str]:
    ended = death.ended
    if death.cause is Cause.ORDER:
        return Status.LOST, "given up before it was finished"
    if ended is None:
        return Status.LOST, "the process that watches over the worker was killed"
    if death.cap_kills and death.cap is not None:
        return Status.OUT_OF_MEMORY, f"killed at the memory cap of {_size(death.cap)} in {phase}"
    if death.cause is Cause.LIMIT:
        setting = LIMIT_OF.get(phase, "timeout")
        return Status.TIMEOUT, f"killed in {phase} at its limit of {death.limit:g} s ({setting})"
    if death.cause is Cause.SILENT:
        return Status.CRASHED, f"closed its connection to the session in {phase}"
    if ended.signal == signal.SIGKILL and death.machine_kills > 0:
        return Status.OUT_OF_MEMORY, f"killed in {phase}: the machine ran out of memory"
    return Status.CRASHED, f"{_how(ended.exit_code, ended.signal)} in {phase}"


def _how(exit_code: int | None, number: int | None) -> str:
    if number is None:
        return f"exited with code {exit_code}"
    name = signal_name(number)
    meaning = _MEANINGS.get(name, "")
    return f"died by {name}{f' ({meaning})' if meaning else ''}"


_MEANINGS: Mapping[str, str] = {
    "SIGSEGV": "segmentation fault",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGFPE": "arithmetic error",
    "SIGABRT": "abort",
    "SIGKILL": "killed from outside or by itself",
}


def _size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} bytes"
