"""The life of a worker: it starts, answers, dies, and dies with its session."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, InputError
from autotune.measure.workers import guardian_link
from autotune.measure.workers.limits import GroupCap, ProcessCap, make_cap
from autotune.measure.workers.messages import Measure, Measured, Ready, Setup
from autotune.measure.workers.postmortem import Cause, Death, outcome_of, start_failure
from autotune.measure.workers.process import Worker, wait_for_any
from autotune.space.configuration import Configuration
from tests.measure.workers.starting import Start, ask


def descriptors() -> set[int]:
    """Those of this process that are open."""
    return {int(file.name) for file in Path("/proc/self/fd").iterdir()}


def test_a_limit_on_the_size_of_files_is_named(setup: Callable[..., Setup]) -> None:
    """It holds for shared memory too."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(AutotuneError, match=r"no worker process could be started: .* \(ulimit -f\)"):
            Worker(setup())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_one_that_cannot_be_started_leaves_nothing_open(setup: Callable[..., Setup]) -> None:
    failed = 0
    _, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()
    before = descriptors()
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(descriptors()) + spare, hard))
        try:
            Worker(setup()).close()
        except AutotuneError as error:
            assert "no worker process could be started" in str(error) and "(ulimit -n)" in str(error)
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert descriptors() == before
    assert failed


def test_it_answers_one_request_after_another(start: Start) -> None:
    worker = start()
    ready = worker.wait()
    assert isinstance(ready, Ready) and not ready.prepares and ready.baselines == ()
    assert worker.deadline == float("inf"), "an idle worker has no limit"
    for x in (1, 2, 3):
        answer = ask(worker, x)
        assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == x
        assert worker.output == f"reading {x}\n" * 3
    worker.close()
    worker.close()
    assert not worker.alive


def test_what_a_guardian_says_too_late_is_not_taken_for_the_next_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trial had printed became the output of the one after it."""
    worker = start()
    worker.wait()
    monkeypatch.setattr(guardian_link, "_OUTPUT_SECONDS", 0.1)
    os.kill(worker.pid, signal.SIGSTOP)
    ask(worker, 1)
    assert worker.output == ""
    monkeypatch.setattr(guardian_link, "_OUTPUT_SECONDS", 60.0)
    os.kill(worker.pid, signal.SIGCONT)
    assert select.select([worker._link], [], [], 60)[0]
    ask(worker, 2)
    assert worker.output == "reading 2\n" * 3


HASHES = """
import os

def measure(x):
    return {"time": float(abs(hash("a text")) % 10_000 + 1), "set": float("PYTHONHASHSEED" in os.environ)}
"""


@pytest.mark.long
def test_hashes_are_those_of_its_seed_and_the_variable_reaches_nothing_else(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashed(**more: object) -> tuple[float, float]:
        worker = start(HASHES, **more)
        worker.wait()
        answer = ask(worker, 1)
        assert isinstance(answer, Measured)
        return answer.outcome.metrics["time"].value, answer.outcome.metrics["set"].value

    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    assert hashed() == hashed() == hashed(hash_seed=0)
    assert hashed(hash_seed=1) != hashed()
    assert hashed()[1] == 0.0
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    own = hashed()
    assert own == hashed(hash_seed=1) and own[1] == 1.0, "what the user has set stays"


def test_its_death_is_described(start: Start) -> None:
    worker = start()
    worker.wait()
    death = ask(worker, 13)
    assert isinstance(death, Death) and death.cause is Cause.DIED
    outcome = outcome_of(death, "measure")
    assert (outcome.status, outcome.signal, outcome.phase) == ("crashed", signal.SIGABRT, "measure")
    assert "reading 13" in outcome.stderr
    assert isinstance(worker.attend(), Death), "it stays dead"


WAITS = """
import fcntl, pathlib
import autotune

class measure(autotune.Objective):
    def measure(self, loaded, rng):
        with open(pathlib.Path(__file__).parent / "lock") as file, self.waiting():
            fcntl.flock(file, fcntl.LOCK_EX)
        return 1.0
"""


@pytest.mark.long
def test_waiting_for_another_search_is_no_time_of_its_own(start: Start, tmp_path: Path) -> None:
    """Of two searches that build in one folder the one that waited had been killed at its limit."""
    worker = start(WAITS)
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        worker.wait()
        worker.ask(Measure(Configuration({"x": 1}), None, 1, 60), 1.0)
        first = worker.deadline
        while worker.deadline < first + 1.0:
            assert worker.attend() is None
            wait_for_any([worker])
    answer = worker.wait()
    assert isinstance(answer, Measured) and answer.outcome.status == "ok"


def test_being_given_up_is_lost(start: Start) -> None:
    worker = start("import signal\ndef measure(x): signal.pause()")
    worker.wait()
    worker.ask(Measure(Configuration({"x": 1}), None, 1, 60), 60)
    worker.close()
    death = worker.attend()
    assert isinstance(death, Death)
    outcome = outcome_of(death, "measure")
    assert outcome.status == "lost" and outcome.signal is None


def test_a_killed_guardian_is_lost(start: Start) -> None:
    worker = start("import signal\ndef measure(x): signal.pause()")
    worker.wait()
    worker.ask(Measure(Configuration({"x": 1}), None, 1, 60), 60)
    os.kill(worker.pid, signal.SIGKILL)
    death = worker.wait()
    assert isinstance(death, Death) and death.cause is Cause.VANISHED
    assert outcome_of(death, "measure").status == "lost"


def test_an_objective_that_cannot_be_used_says_why(start: Start) -> None:
    with pytest.raises(InputError, match=r"objective\.py:2: NameError on import: name 'nonsense' is not"):
        start("x = 1\nnonsense").wait()


def test_a_limit_may_be_longer_than_a_poll_can_be(start: Start) -> None:
    worker = start()
    worker.wait()
    assert isinstance(ask(worker, 1, seconds=60 * 86400), Measured)


def test_dying_at_the_start_is_told_with_what_was_printed(start: Start) -> None:
    death = start("import os\nprint('a library complains')\nos.abort()").wait()
    assert isinstance(death, Death)
    text = start_failure(death)
    assert "SIGABRT" in text and "a library complains" in text


def test_a_cap_too_small_to_start_says_so(start: Start) -> None:
    cap = make_cap(1 << 20, "test")
    if not isinstance(cap, GroupCap):
        pytest.skip("this process may not make control groups with a memory limit")
    # The worker enters its group once Python runs: what its own modules take is not the cap's.
    death = start("table = bytearray(8_000_000)\ndef measure(x): return 1.0", cap=cap).wait()
    assert isinstance(death, Death)
    assert "memory cap of 1 MiB" in start_failure(death) and "measure: {memory" in start_failure(death)
    assert not cap.folder.exists()


def test_memory_that_ran_out_elsewhere_before_the_request_is_none_of_its_affair(start: Start) -> None:
    cap = make_cap(50 << 20, "elsewhere")
    if not isinstance(cap, GroupCap):
        pytest.skip("no control group can be made here")
    worker = start("import os, signal\ndef measure(x): os.kill(os.getpid(), signal.SIGKILL)")
    worker.wait()
    eater = "eaten = []\nwhile True: eaten.append(bytearray(b'x' * 10_000_000))"
    subprocess.run([sys.executable, "-c", eater], preexec_fn=cap.enter, check=False)
    assert cap.kills() and cap.remove()
    death = ask(worker, 1)
    assert isinstance(death, Death) and outcome_of(death, "measure").status == "crashed"


def test_a_limit_of_the_process_is_a_cap_as_well(start: Start) -> None:
    text = "def measure(x):\n    eaten = []\n    while True: eaten.append(bytearray(10_000_000))"
    worker = start(text, cap=ProcessCap(1 << 30))
    worker.wait()
    answer = ask(worker, 0)
    assert isinstance(answer, Measured)
    assert (answer.outcome.status, answer.outcome.phase) == ("out-of-memory", "measure")


def test_an_environment_is_there_before_anything_is_loaded(start: Start) -> None:
    text = "import os\nSEEN = float(os.environ['A_TEST_OF_AUTOTUNE'])\ndef measure(x): return SEEN"
    worker = start(text, {"A_TEST_OF_AUTOTUNE": "42"})
    worker.wait()
    answer = ask(worker, 0)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == 42


def test_it_is_pinned(start: Start) -> None:
    core = max(os.sched_getaffinity(0))
    worker = start("import os\ndef measure(x): return float(sum(os.sched_getaffinity(0)))", cores=(core,))
    worker.wait()
    answer = ask(worker, 0)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == core


SESSION = """
import sys
from pathlib import Path
from autotune.measure.workers.limits import make_cap
from autotune.measure.workers.messages import Measure, Setup
from autotune.measure.objective import Context
from autotune.measure.workers.process import Worker
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec, PythonObjective

folder = Path(sys.argv[1])
cap = make_cap(1 << 30, "test")
setup = Setup(
    PythonObjective("objective.py:measure", folder), Context({}, {}, folder),
    (MetricSpec("time", "minimize"),), MeasureSettings(), cap=cap,
)
worker = Worker(setup)
worker.wait()
worker.ask(Measure(Configuration({"x": 1}), None, 1, 600), 600)
print(getattr(cap, "folder", ""), flush=True)
worker.wait()
"""

DAEMONS = """
import ctypes, os, signal, sys
def measure(x):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, b"%d" % os.getpid())
            while True:
                signal.pause()
        os._exit(0)
    os.wait()
    daemon = int(os.read(read, 20))
    with open(os.environ["PIDS"], "w") as pids:
        pids.write(f"{os.getpid()} {os.getppid()} {daemon}\\n")
    ctypes.PyDLL(None).pause()
"""


def test_when_the_session_is_killed_everything_goes(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(DAEMONS)
    os.mkfifo(tmp_path / "pids")
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        env={**os.environ, "PIDS": str(tmp_path / "pids")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert session.stdout is not None
    group = session.stdout.readline().strip()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]  # worker, guardian, daemon
    ends = [os.pidfd_open(pid) for pid in pids]
    session.kill()
    session.wait()
    for pid, end in zip(pids, ends, strict=True):
        assert select.select([end], [], [], 60)[0], f"{pid} outlives its session"
        os.close(end)
    assert not group or wait_for(lambda: not Path(group).exists())


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    return condition()


def test_it_may_import_what_lies_beside_it_when_it_is_measured(start: Start, tmp_path: Path) -> None:
    (tmp_path / "autotune_test_beside.py").write_text("VALUE = 5.0")
    worker = start("def measure(x):\n    import autotune_test_beside as b\n    return b.VALUE")
    worker.wait()
    answer = ask(worker, 1)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == 5
    assert not (tmp_path / "__pycache__").exists(), "it may be edited meanwhile"


SPAWNING = """
import multiprocessing
def more(x):
    return x + 1.0
def measure(x):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(more, (x,))
"""


def test_processes_that_it_spawns_find_its_functions_and_leave_nothing(start: Start) -> None:
    worker = start(SPAWNING)
    worker.wait()
    answer = ask(worker, 1)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == 2, worker.output
    assert not answer.leftovers, "the tracker of multiprocessing is Python's own"


FORKING = """
import os, sys, time
def measure(x):
    if x in (1, 2, 3) and os.fork() == 0:
        if x == 2:
            raise ValueError("in the child")
        if x == 3:
            sys.exit(7)
        return 99.0
    if x in (1, 2, 3):
        status = os.waitstatus_to_exitcode(os.wait()[1])
        assert status == {1: 0, 2: 1, 3: 7}[x], status
    return float(x)
"""


def test_a_child_that_it_forks_and_that_comes_back_gives_no_answer(start: Start) -> None:
    worker = start(FORKING)
    worker.wait()
    for x in (1, 2, 3, 4):
        answer = ask(worker, x)
        assert isinstance(answer, Measured) and answer.outcome.status == "ok", answer
        assert [r.value for r in answer.outcome.readings] == [x] * 3
        assert worker.attend() is None
        assert ("ValueError: in the child" in worker.output) == (x == 2)


TALKATIVE = """
from autotune.measure.workers.channel import BlockingChannel
from autotune.measure.workers.messages import Measured
from autotune.measure.outcome import Outcome
from autotune.status import Status
SEND = BlockingChannel.send
def twice(channel, message):
    SEND(channel, message)
    SEND(channel, Measured(Outcome(Status.OK)))
def measure(x):
    BlockingChannel.send = twice
    return 1.0
"""


def test_one_that_answers_without_being_asked_is_not_believed(start: Start) -> None:
    worker = start(TALKATIVE)
    worker.wait()
    came = ask(worker, 1)
    death = worker.wait() if isinstance(came, Measured) else came
    assert isinstance(death, Death) and death.cause is Cause.SILENT


def test_an_answer_before_the_first_request_is_not_believed(start: Start) -> None:
    """The session had taken it for a worker that is ready."""
    early = TALKATIVE.replace("    SEND(channel, message)\n", "") + "BlockingChannel.send = twice\n"
    death = start(early).wait()
    assert isinstance(death, Death) and death.cause is Cause.SILENT
