"""Whatever becomes of the search, a training with the hook goes on and ends with its result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import pytest

from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import DOCUMENT, SOCKET, VARIABLE
from autotune.measure.reports import Curve, Reporter
from tests.faults import searching

TRAIN = """
import os, signal, sys
import autotune
BEFORE
with autotune.run("train") as run:
    lr = run.knob("lr", default=0.1)
    for step in range(1, 2001):
        run.report(step, loss=lr / step, note=float(step))
        if run.should_stop:
            break
        DURING
print("result", lr, step, run.dropped)
AFTER
"""


def training(before: str = "", during: str = "", after: str = "") -> str:
    return TRAIN.replace("BEFORE", before).replace("DURING", during).replace("AFTER", after)


def start(script: str, document: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, VARIABLE: document},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], words: str = "") -> tuple[list[str], list[str]]:
    """The lines of stdout, and those of stderr that are ours. It must have ended well."""
    out, err = process.communicate(words, timeout=120)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out.splitlines(), [line for line in err.splitlines() if line.startswith("autotune:")]


@pytest.fixture
def listener() -> Iterator[RunListener]:
    """Not below the folder of pytest, which every run of pytest that begins closes to other users."""
    with TemporaryDirectory() as folder, RunListener(Path(folder), {"lr": 0.5}, Reporter()) as listener:
        yield listener


# -- the session dies ------------------------------------------------------------------------------

SESSION = """
import sys, time
from pathlib import Path
from tempfile import gettempdir
from autotune.measure.reports import Reporter
from autotune.measure.commands.run_listener import RunListener
with RunListener(Path(sys.argv[1]), {"lr": 0.5}, Reporter()) as listener:
    print(listener.document, flush=True)
    while True:
        listener.attend()
        if listener.heard.values:
            print("heard", flush=True)
        time.sleep(0.01)
"""

EVERY_REPORT = "import autotune.hook.runs.reports as r; r.SECONDS_BETWEEN = 0.0"
"""Nothing is merged: each report is a message."""


@pytest.mark.parametrize("pipe", ["SIG_IGN", "SIG_DFL"])
def test_the_session_is_killed(pipe: str, tmp_path: Path) -> None:
    """Even where the script wants to die of a broken pipe, this one is not its own."""
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert session.stdout is not None
    document = session.stdout.readline().strip()
    before = f"{EVERY_REPORT}; signal.signal(signal.SIGPIPE, signal.{pipe})"
    waits = "if step == 5: sys.stdin.readline()"
    process = start(training(before, waits), document)
    assert session.stdout.readline() == "heard\n"
    os.kill(session.pid, signal.SIGKILL)
    session.wait()
    session.stdout.close()
    out, said = finish(process, "go on\n")
    assert out == ["result 0.5 2000 0"]
    assert len(said) == 1
    assert "the search has gone" in said[0]


def test_the_session_does_not_read(listener: RunListener) -> None:
    out, said = finish(start(training(EVERY_REPORT), listener.document))
    word, lr, step, dropped = out[0].split()
    assert (word, lr, step) == ("result", "0.5", "2000")
    assert int(dropped) > 0
    assert said == []


def test_its_folder_is_gone(tmp_path: Path) -> None:
    with RunListener(tmp_path, {"lr": 0.5}, Reporter()) as listener:
        document = listener.document
    out, said = finish(start(training(), document))
    assert out == ["result 0.1 2000 0"]
    assert len(said) == 1
    assert "No such file" in said[0]
    assert "defaults" in said[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', "\\xff"])
def test_its_document_is_damaged(text: str, listener: RunListener) -> None:
    Path(listener.document).write_text(text)
    out, said = finish(start(training(), listener.document))
    assert out == ["result 0.1 2000 0"]
    assert len(said) == 1


SPACE = """
autotune: 1
name: killed
command: [PYTHON, train.py]
metrics: {time: {goal: minimize}}
knobs:
  a: {range: [0, 63], default: 0}
  b: {range: [0, 63], default: 0}
measure: {min_readings: 1, max_readings: 1, warmup: 0, finalists: 0, timeout: 60}
"""

TRAIN_IN_A_SEARCH = """
import os, signal
import autotune
with autotune.run("killed") as run:
    a, b = run.knob("a", default=0), run.knob("b", default=0)
    for step in range(1, 6):
        if step == 3 and (a, b) != (0, 0) and os.environ["AUTOTUNE_TEST_MARK"] == "first":
            signal.pause()
        run.report(step, time=(a - 20) ** 2 + b / step)
        with open(os.environ["LEDGER"], "a") as ledger:
            ledger.write(f"{a} {b}\\n")
"""


@pytest.mark.long
def test_a_search_of_trainings_is_killed_and_goes_on(tmp_path: Path) -> None:
    """Its trainings go with it, what was finished stays, and the next search measures the rest."""
    (tmp_path / "space.yaml").write_text(SPACE.replace("PYTHON", sys.executable))
    (tmp_path / "train.py").write_text(TRAIN_IN_A_SEARCH)
    search = searching.start(tmp_path, 4, "first")
    searching.wait_for_readings(search, tmp_path / "ledger", 7)
    before = searching.finished(tmp_path)
    assert list(before) == ["0 0"]
    os.killpg(search.pid, signal.SIGKILL)
    search.communicate()
    assert searching.wait_until_gone("first") == []
    search = searching.start(tmp_path, 4, "second")
    _, err = search.communicate(timeout=280)
    assert search.returncode == 0, err.decode()
    after = searching.finished(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == 4
    assert after["0 0"] == ("ok", 400.0)


# -- what the program does -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "lr"), [(DOCUMENT, "0.1"), (SOCKET, "0.5"), ("board", "0.5")])
def test_a_permission_is_missing(name: str, lr: str, listener: RunListener) -> None:
    """Knobs it can read count; what it cannot say is said once."""
    folder = Path(listener.document).parent
    for path in (folder, *takewhile(lambda path: path != Path(gettempdir()), folder.parents)):
        path.chmod(0o755)
    for part in folder.iterdir():
        part.chmod(0o666)
    (folder / name).chmod(0)
    # Root may do everything: it becomes somebody else. What is loaded later is loaded before.
    nobody = """
import atexit, autotune.hook.run
from autotune.hook.runs import link, ranks, reports
if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)
"""
    out, said = finish(start(training(nobody), listener.document))
    assert out == [f"result {lr} 2000 0"]
    assert len(said) == 1
    assert "Permission denied" in said[0]


CLOSES = """
        if step == 5:
            import socket
            os.closerange(3, 100)
            theirs = [socket.socketpair() for _ in range(10)]
            for pair in theirs: pair[0].setblocking(False)
"""

UNTOUCHED = """
for ours, other in theirs:
    other.send(b"x")  # it is open still
    assert ours.recv(100) == b"x"
    try: raise AssertionError(ours.recv(100))
    except BlockingIOError: pass
    other.setblocking(False)
    try: raise AssertionError(other.recv(100))
    except BlockingIOError: pass
print("untouched")
"""


def test_the_program_closes_every_descriptor_and_opens_others(listener: RunListener) -> None:
    """A message must not go into a connection that is now under our number, nor may that be closed."""
    out, said = finish(start(training(EVERY_REPORT, CLOSES.strip(), UNTOUCHED), listener.document))
    assert out == ["result 0.5 2000 0", "untouched"]
    assert len(said) == 1
    assert "closed by this program" in said[0]


FORKS = """
        if step == 5:
            pids = []
            for worker in range(3):
                pid = os.fork()
                if pid == 0:
                    run.knob("of_a_child", default=1)
                    for own in range(6, 50): run.report(own, loss=-1.0, note=-1.0)
                    run.should_stop
                    if worker == 0: run.close(); os._exit(0)
                    if worker == 1: sys.exit(0)  # leaves the with, and runs what stands for the exit
                    with autotune.run("worker") as mine: mine.report(1, loss=-2.0)
                    os._exit(0)
                pids.append(pid)
            for pid in pids: assert os.waitpid(pid, 0)[1] == 0
"""


def test_forked_workers_disturb_nothing(listener: RunListener) -> None:
    out, _ = finish(start(training(during=FORKS.strip()), listener.document))
    assert out == ["result 0.5 2000 0"]
    listener.attend()
    assert listener.heard.values == {"loss": 0.5 / 2000, "note": 2000.0}
    assert (listener.heard.runs, listener.heard.ended) == (1, 1)
    assert listener.heard.never_asked(["lr"]) == ""


def test_a_program_below_has_the_knobs_and_is_silent(listener: RunListener) -> None:
    inner = "import autotune\\nwith autotune.run('eval') as r: r.report(1, loss=r.knob('lr', 7.0) + 40)"
    below = f'if step == 5: import subprocess; subprocess.run([sys.executable, "-c", "{inner}"], check=True)'
    out, said = finish(start(training(during=below), listener.document))
    assert out == ["result 0.5 2000 0"]
    assert len(said) == 1
    assert "another process of this trial reports" in said[0]
    listener.attend()
    assert listener.heard.values["loss"] == 0.5 / 2000


def test_a_program_without_streams_goes_on(tmp_path: Path) -> None:
    script = training("sys.stderr.close(); sys.stderr = None")
    process = start(script, str(tmp_path / "none" / DOCUMENT))
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out == "result 0.1 2000 0\n"


def test_messages_of_others_are_no_reports(tmp_path: Path) -> None:
    """Whoever writes nonsense into the socket has no effect on the trial."""
    import socket

    reporter = Reporter(Curve(9, "loss", (1, 3)), lambda report, waits: "")
    with RunListener(tmp_path, {"lr": 0.5}, reporter) as listener:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect(str(Path(listener.document).parent / SOCKET))
            for packet in (b"\xff", b"{", b"[]", b"3", b'{"kind": "report"}', b'{"kind": "end", "values": 3}',
                           b'{"kind": "end", "values": {"loss": 1}, "asked": [], "failed": 2}',
                           b'{"kind": "report", "step": "x", "values": {}}',
                           b'{"kind": "report", "step": 1, "values": {"loss": "high"}}',
                           b'{"kind": "report", "step": 1, "values": {"loss": 1' + b"0" * 400 + b"}}",
                           b"[" * 50_000):  # fmt: skip
                stranger.send(packet)
                listener.attend()
        listener.attend()
        assert reporter.count == 0
        assert listener.stopped is None
        assert listener.heard.ended == 0
