"""Whatever an objective does: its trial is typed right, the next one is measured, and no process is left."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from signal import SIGSTOP

import pytest

from autotune.measure.outcome import Outcome
from autotune.measure.ownership import owned_name
from autotune.measure.workers.limits import GroupCap, make_cap
from autotune.provenance.host.cgroup import find_group
from autotune.provenance.host.system import System
from autotune.session.execution.workers import WorkerExecutor
from tests.faults.conftest import run, spec_of

Left = Callable[[], list[int]]
Outcomes = Mapping[str, Outcome]

DEVICE = {"cores": 1}


def one_after_another(target: str, faults: list[str], left: Left, **measure: object) -> Outcomes:
    """The outcomes of bad configurations in one executor, each before a good one that must stay good."""
    spec = spec_of(target, faults, **measure)
    with closing(WorkerExecutor(spec, DEVICE)) as executor:
        outcomes: dict[str, Outcome] = {}
        for fault in faults:
            outcomes |= run(executor, spec, [fault])
            good = run(executor, spec, ["none"])["none"]
            assert good.status == "ok", f"after {fault!r}: {good}"
    assert left() == []
    return outcomes


FUNCTION = "misbehaving.py:measure"

DEATHS = {
    "segfault": (11, None, "SIGSEGV"),
    "abort": (6, None, "SIGABRT"),
    "exit 0": (None, 0, "exited with code 0"),
    "exit 3": (None, 3, "exited with code 3"),
    "kill the process group": (9, None, "SIGKILL"),
    "kill itself softly": (15, None, "SIGTERM"),
    "leave a daemon and crash": (6, None, "SIGABRT"),
}


def test_a_process_that_dies_is_crashed(nothing_left: Left) -> None:
    outcomes = one_after_another(FUNCTION, list(DEATHS), nothing_left)
    for fault, (signal, exit_code, says) in DEATHS.items():
        outcome = outcomes[fault]
        assert (outcome.status, outcome.signal, outcome.exit_code) == ("crashed", signal, exit_code), fault
        assert outcome.phase == "measure" and says in outcome.message and outcome.worker


HANGS = [
    "hang in C",
    "hang in a system call",
    "loop for ever",
    "ignore signals and hang",
    "leave a daemon and hang",
    "stop itself",
]


@pytest.mark.parametrize("memory", [pytest.param(None, marks=pytest.mark.long), "1GiB"])
def test_a_process_that_hangs_is_killed_at_its_limit(nothing_left: Left, memory: str | None) -> None:
    faults = HANGS if memory is None else HANGS[:1]
    capped = {} if memory is None else {"memory": memory}
    outcomes = one_after_another(FUNCTION, faults, nothing_left, timeout=2, **capped)
    for fault in faults:
        outcome = outcomes[fault]
        assert (outcome.status, outcome.phase, outcome.signal) == ("timeout", "measure", None), fault
        assert "its limit of 2 s (timeout)" in outcome.message
        assert outcome.phases["measure"] > 1, "the time that it cost is known"


def test_a_memory_cap_is_real(nothing_left: Left) -> None:
    faults = ["eat memory", "eat memory in a child", "kill the process group"]
    outcomes = one_after_another(FUNCTION, faults, nothing_left, memory="200MiB")
    cap = make_cap(200 << 20, owned_name("probe"))
    cap.remove()
    for fault in faults[:2]:
        outcome = outcomes[fault]
        # Where no control group can be made each process has a limit, and a child's end is not the worker's.
        seen = fault == "eat memory" or isinstance(cap, GroupCap)
        assert (outcome.status, outcome.phase) == ("out-of-memory" if seen else "crashed", "measure"), outcome
        assert outcome.peak_memory is None or outcome.peak_memory <= 200 << 20
        if isinstance(cap, GroupCap):
            assert outcome.peak_memory is not None and outcome.peak_memory > 100 << 20
    assert outcomes["kill the process group"].status == "crashed", "it did not die of memory"


RAISED = {
    "memory error": ("out-of-memory", "MemoryError: no room"),
    "raise": ("crashed", "ValueError: what is this?"),
    "SystemExit": ("crashed", "SystemExit: 0"),
    "KeyboardInterrupt": ("crashed", "KeyboardInterrupt"),
    "GeneratorExit": ("crashed", "GeneratorExit"),
    "unprintable": ("crashed", "UnprintableError: (its text cannot be shown: RuntimeError)"),
    "unprintable runtime error": ("crashed", "UnprintableRuntimeError: (its text cannot be shown: Runtime"),
    "unprintable arguments": ("crashed", "TypeError: (its text cannot be shown: RuntimeError)"),
    "unpicklable": ("crashed", "UnpicklableError: with a lock in it"),
    "bytes that are no text": ("crashed", r"ValueError: no \udcff"),
    "recursion": ("crashed", "RecursionError"),
    "NaN": ("diverged", "nan"),
    "infinite": ("diverged", "inf"),
    "text": ("crashed", "must be a number, not 'fast'"),
    "nothing": ("crashed", "the objective returned nothing; expected a number: the metric 'time'"),
    "an array": ("crashed", "the metric 'time' must be a number, not array([1., 2.]) (ndarray)"),
    "another metric": ("crashed", "must return the metric 'time'; it returned speed"),
}


def test_what_it_raises_or_returns_is_typed(nothing_left: Left) -> None:
    outcomes = one_after_another(FUNCTION, list(RAISED), nothing_left)
    for fault, (status, says) in RAISED.items():
        assert outcomes[fault].status == status and outcomes[fault].phase == "measure", fault
        assert says in outcomes[fault].message
    trace = outcomes["raise"].stderr
    assert "misbehaving.py" in trace and "ValueError: what is this?" in trace
    assert "runner.py" not in trace, "our own frames tell the reader nothing"


def test_without_its_descriptors_it_is_crashed(nothing_left: Left) -> None:
    faults = ["close all descriptors", "replace all descriptors"]
    outcomes = one_after_another(FUNCTION, faults, nothing_left)
    assert [outcomes[fault].status for fault in faults] == ["crashed", "crashed"]


def test_readings_before_a_crash_are_kept(nothing_left: Left) -> None:
    outcome = one_after_another(FUNCTION, ["crash in the third reading"], nothing_left)
    (crashed,) = outcome.values()
    assert crashed.status == "crashed" and [r.value >= 1 for r in crashed.readings] == [True, True]


@pytest.mark.parametrize("fault", ["fork children", "leave a daemon"])
def test_processes_left_behind_end_with_their_trial(nothing_left: Left, fault: str) -> None:
    spec = spec_of(FUNCTION, [fault])
    with closing(WorkerExecutor(spec, DEVICE)) as executor:
        standing = set(nothing_left())
        outcome = run(executor, spec, [fault])[fault]
        assert outcome.status == "ok" and "killed" in str(outcome.facts["leftovers"])
        assert set(nothing_left()) <= standing, "they live on beside the next trial"
        assert run(executor, spec, ["none"])["none"].status == "ok"


def states_of_what_an_entrant_leaves(left: Left, fault: str) -> set[str]:
    """While others would be read, after each of some readings."""
    spec = spec_of(FUNCTION, [fault])
    with closing(WorkerExecutor(spec, DEVICE)) as executor:
        before = set(left())
        [entrant] = executor.entrants([spec.space.configuration({"fault": fault, "number": 0})])
        own = set(left()) - before  # its guardian and its worker
        states: set[str] = set()
        for seed in range(3):
            assert entrant.read(seed) and entrant.failure is None
            states |= {state_of(pid) for pid in set(left()) - before - own}
    return states


def test_what_an_entrant_leaves_at_work_stands_still_while_others_are_read(nothing_left: Left) -> None:
    assert states_of_what_an_entrant_leaves(nothing_left, "leave a process at work") == {"T"}


def test_what_waits_for_the_next_reading_is_left_alone(nothing_left: Left) -> None:
    assert "S" in states_of_what_an_entrant_leaves(nothing_left, "work in a pool")


def state_of(pid: int) -> str:
    """``T`` also where it was told to stop, and has not come to a core since to do so."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    pending = int(status["SigPnd"][0], 16) | int(status["ShdPnd"][0], 16)
    return "T" if pending >> (SIGSTOP - 1) & 1 else status["State"][0]


def test_threads_at_work_end_with_their_trial(nothing_left: Left) -> None:
    faults = ["leave a thread at work", "leave a thread that waits"]
    outcomes = one_after_another(FUNCTION, faults, nothing_left)
    assert [outcome.status for outcome in outcomes.values()] == ["ok", "ok"]
    assert "threads that it left running" in str(outcomes[faults[0]].facts["leftovers"])
    assert "leftovers" not in outcomes[faults[1]].facts, "a pool is kept from trial to trial"


def test_megabytes_of_output_neither_block_nor_stay(nothing_left: Left) -> None:
    outcome = one_after_another(FUNCTION, ["print megabytes"], nothing_left)["print megabytes"]
    assert outcome.status == "ok"
    assert len(outcome.stderr.encode()) <= 8192
    assert outcome.stderr.rstrip().endswith("the last words")


def test_what_one_leaves_behind_does_not_reach_the_next(nothing_left: Left) -> None:
    faults = ["set an alarm", "set a timer", "change the folder", "close its output"]
    faults += ["close the descriptor of its output", "have no output", "have an output of its own"]
    faults += ["limit its memory", "forbid files", "allow no depth", "collect no garbage"]
    faults += [
        "ignore its children",
        "block an alarm",
        "set a variable",
        "empty a variable",
        "delete a variable",
    ]
    outcomes = one_after_another(FUNCTION, faults, nothing_left)
    assert {fault: outcomes[fault].message for fault in faults} == dict.fromkeys(faults, "")


def test_files_that_are_left_open_do_not_run_out_in_a_later_trial(nothing_left: Left) -> None:
    _, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    try:
        faults = ["leave all files open", "leave files open"]  # thousands of them in three readings
        outcomes = one_after_another(FUNCTION, faults, nothing_left)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    for fault in faults:
        assert outcomes[fault].status == "ok" and "left open" in str(outcomes[fault].facts["leftovers"])


def test_memory_that_trials_keep_is_not_lacking_in_a_later_one(nothing_left: Left) -> None:
    spec = spec_of(FUNCTION, ["keep memory"], memory="200MiB")
    with closing(WorkerExecutor(spec, DEVICE)) as executor:
        outcomes = [run(executor, spec, ["keep memory"])["keep memory"] for _ in range(8)]  # 36 MB each
    assert {outcome.status for outcome in outcomes} == {"ok"}
    assert any("memory was left in use" in str(o.facts.get("leftovers")) for o in outcomes)
    assert "leftovers" not in outcomes[0].facts, "what is loaded once may stay"
    assert nothing_left() == []


EARLY = {
    "hang in prepare": ("timeout", "prepare", "its limit of 2 s (prepare_timeout)"),
    "crash in prepare": ("crashed", "prepare", "SIGSEGV"),
    "refuse": ("infeasible", "prepare", "not on this device"),
    "lock": ("crashed", "prepare", "a lock, which cannot be pickled"),
    "lambda": ("crashed", "prepare", "a function, which cannot be pickled"),
    "exit in load": ("crashed", "load", "a library did this"),
    "wrong": ("wrong", "check", "2 + 2 is 4, not 5"),
    "past its bound": ("wrong", "check", "error is 0.5, allowed is at most 0.01"),
    "out of memory": ("out-of-memory", "check", "the device is full"),
    "diverged": ("diverged", "check", "the loss is 1e30"),
}


@pytest.mark.long
def test_faults_before_the_readings(nothing_left: Left) -> None:
    outcomes = one_after_another("unprepared.py:Unprepared", list(EARLY), nothing_left, prepare_timeout=2)
    for fault, (status, phase, says) in EARLY.items():
        outcome = outcomes[fault]
        assert (outcome.status, outcome.phase) == (status, phase), outcome
        assert says in outcome.message and "measure" not in outcome.phases


def test_what_prepare_eats_and_leaves(nothing_left: Left) -> None:
    faults = ["eat memory in prepare", "leave a compiler", "large"]
    outcomes = one_after_another("unprepared.py:Unprepared", faults, nothing_left, memory="600MiB")
    assert [str(outcomes[fault].status) for fault in faults] == ["out-of-memory", "ok", "ok"]
    assert outcomes["eat memory in prepare"].phase == "prepare"
    assert set(outcomes["large"].phases) == {"prepare", "load", "check", "warmup", "measure"}


KERNELS = {
    "write behind": "writes outside its buffer: byte 1 behind out",
    "write before": "writes outside its buffer: byte 1 before out",
    "change input": "changes its input x",
    "leave one out": "out[999] is nan",
    "wrong once": "out[123] is",
}


def test_a_kernel_that_is_wrong_for_one_configuration(nothing_left: Left) -> None:
    outcomes = one_after_another("arrays.py:Double", [*KERNELS, "write far behind"], nothing_left)
    for fault, says in KERNELS.items():
        assert (outcomes[fault].status, outcomes[fault].phase) == ("wrong", "check"), fault
        assert says in outcomes[fault].message
    assert outcomes["write far behind"].status == "crashed"


def test_all_at_once_and_nothing_is_left(nothing_left: Left) -> None:
    expected = {
        "segfault": "crashed",
        "none": "ok",
        "hang in C": "timeout",
        "leave a daemon": "ok",
        "raise": "crashed",
        "exit 0": "crashed",
        "NaN": "diverged",
        "fork children": "ok",
    }
    spec = spec_of(FUNCTION, list(expected), timeout=2, memory="1GiB")
    before = things_of_this_process()
    with closing(WorkerExecutor(spec, DEVICE)) as executor:
        outcomes = run(executor, spec, list(expected))
        assert things_of_this_process() != before
    assert {fault: str(outcome.status) for fault, outcome in outcomes.items()} == expected
    assert nothing_left() == []
    assert things_of_this_process() == before


def things_of_this_process() -> set[str]:
    """Scratch folders and control groups that are ours."""
    group = find_group(System(), "memory")
    folders = [Path(tempfile.gettempdir()), *([Path(group.folder)] if group else [])]
    return {str(path) for folder in folders for path in folder.glob(f"{owned_name('')}*")}
