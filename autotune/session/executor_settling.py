"""What the session's side adds to a worker's answer, and whether that worker may go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autotune.measure.capture import tail_text
from autotune.measure.outcome import Outcome
from autotune.measure.postmortem import after_memory_kill, may_be_spoilt
from autotune.session.executor_slot import Slot
from autotune.session.flight import Flight


def settled(
    slot: Slot[Flight], outcome: Outcome, leftovers: bool, where: Mapping[str, object] | None
) -> Outcome:
    """The outcome with what only this side knows: output, cores, a child killed for memory.

    ``where``: facts of the lane that it was measured in.
    """
    facts = dict(outcome.facts)
    if leftovers:
        facts["leftovers"] = "processes that it left behind were killed"
    if slot.cores:
        facts["cores"] = list(slot.cores)
    if slot.crowd is not None:
        facts |= slot.crowd.facts
    facts |= where or {}
    cap = slot.worker.setup.cap if slot.worker is not None else None
    if slot.worker is not None and cap is not None and outcome.status.failed and slot.worker.memory_kills():
        outcome = after_memory_kill(outcome, cap.bytes)
    # A program's last words are in what its worker printed, too.
    said = "" if outcome.stderr.strip() in slot.output else outcome.stderr
    stderr = tail_text("\n".join(filter(None, [slot.output, said])).encode())
    return replace(outcome, facts=facts, stderr=stderr, worker=slot.name)


def must_end(slot: Slot[Flight], outcome: Outcome, leftovers: bool, goal: str) -> bool:
    """Whether the worker that has answered so is not to be given another trial."""
    killed = slot.worker is not None and slot.worker.memory_kills() > 0
    return leftovers or killed or slot.ends_when_idle or may_be_spoilt(outcome, goal)
