"""What killed it? Ends that look alike are told apart by who killed, and by the counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autotune.measure.outcome import Outcome, Reading
from autotune.measure.workers.endings import Ended
from autotune.measure.workers.messages import Noted
from autotune.measure.workers.postmortem import Cause, Death, after_memory_kill, outcome_of
from autotune.status import Status

KILLED = Ended(exit_code=None, signal=9, peak_memory=500, output="last words", killed=False)
DEATH = Death(
    cause=Cause.DIED,
    ended=KILLED,
    noted=Noted("measure", {"check": 1.0, "measure": 2.0}, (Reading("time", 1.0),), {"path": "wide"}),
    cap_kills=0,
    machine_kills=0,
    output="last words",
    limit=30.0,
    cap=1 << 30,
)
BY_US = replace(KILLED, killed=True)


@pytest.mark.parametrize(
    ("death", "status", "says"),
    [
        (DEATH, "crashed", "died by SIGKILL (killed from outside or by itself) in measure"),
        (replace(DEATH, cap_kills=1), "out-of-memory", "killed at the memory cap of 1 GiB in measure"),
        (replace(DEATH, machine_kills=1), "out-of-memory", "the machine ran out of memory"),
        (
            replace(DEATH, machine_kills=1, ended=replace(KILLED, signal=11)),
            "crashed",
            "died by SIGSEGV (segmentation fault) in measure",
        ),
        (
            replace(DEATH, cause=Cause.LIMIT, ended=BY_US),
            "timeout",
            "killed in measure at its limit of 30 s (timeout)",
        ),
        (
            replace(DEATH, cause=Cause.LIMIT, ended=BY_US, machine_kills=1),
            "timeout",
            "killed in measure at its limit of 30 s (timeout)",
        ),
        (
            replace(DEATH, cause=Cause.LIMIT, ended=BY_US, cap_kills=1),
            "out-of-memory",
            "killed at the memory cap of 1 GiB in measure",
        ),
        (
            replace(DEATH, cause=Cause.LIMIT, ended=BY_US, noted=Noted("prepare")),
            "timeout",
            "killed in prepare at its limit of 30 s (prepare_timeout)",
        ),
        (replace(DEATH, cause=Cause.SILENT, ended=BY_US), "crashed", "closed its connection to the session"),
        (replace(DEATH, cause=Cause.ORDER, ended=BY_US, cap_kills=1), "lost", "given up"),
        (replace(DEATH, cause=Cause.VANISHED, ended=None), "lost", "watches over the worker was killed"),
        (
            replace(DEATH, ended=replace(KILLED, signal=None, exit_code=3)),
            "crashed",
            "exited with code 3 in measure",
        ),
        (replace(DEATH, ended=replace(KILLED, signal=62)), "crashed", "died by signal 62 in measure"),
    ],
)
def test_the_verdict(death: Death, status: str, says: str) -> None:
    outcome = outcome_of(death, "measure")
    assert outcome.status == status and says in outcome.message
    assert outcome.readings == death.noted.readings, "no reading is lost"
    assert outcome.phases == death.noted.phases and outcome.stderr == "last words"
    assert outcome.facts == death.noted.facts


def test_our_own_signal_is_not_the_trials() -> None:
    assert outcome_of(replace(DEATH, cause=Cause.LIMIT, ended=BY_US), "measure").signal is None
    assert outcome_of(DEATH, "measure").signal == 9


def test_peak_memory_is_censored_at_the_cap() -> None:
    assert outcome_of(replace(DEATH, cap_kills=1), "measure").peak_memory == 1 << 30
    assert outcome_of(DEATH, "measure").peak_memory == 500


def test_a_compiler_killed_for_memory_is_no_refusal() -> None:
    refused = Outcome(Status.INFEASIBLE, message="gcc: killed", phase="prepare")
    outcome = after_memory_kill(refused, 200 << 20)
    assert (outcome.status, outcome.phase) == (Status.OUT_OF_MEMORY, "prepare")
    assert "memory cap of 200 MiB (infeasible: gcc: killed)" in outcome.message
