"""A function objective that does, while it is measured, what ``fault`` says."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import inspect
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

LIBC = ctypes.CDLL(None)
CALLS: list[str] = []
KEPT: list[bytes] = []
HOLDING_THE_LOCK = ctypes.PyDLL(None)


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text today")


class UnprintableRuntimeError(RuntimeError):
    __str__ = UnprintableError.__str__


class Unprintable:
    __str__ = __repr__ = UnprintableError.__str__


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("with a lock in it")
        self.socket = __import__("socket").socket()


def eat_memory() -> None:
    eaten = []
    while True:
        eaten.append(bytearray(b"x" * 10_000_000))


def eat_memory_in_a_child() -> None:
    code = "eaten = []\nwhile True: eaten.append(bytearray(b'x' * 10_000_000))"
    subprocess.run([sys.executable, "-c", code], check=True)


def fork_children() -> None:
    for _ in range(3):
        if os.fork() == 0:
            while True:
                signal.pause()


def leave_a_daemon() -> None:
    """Fork twice, in a session of its own, ignoring what can be ignored; its pipes are closed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 256)
            while True:
                signal.pause()
        os._exit(0)
    os.wait()


def leave_a_process_at_work() -> None:
    if os.fork() == 0:
        while True:
            pass


POOL: list[ProcessPoolExecutor] = []


def work_in_a_pool() -> None:
    """One that is kept from reading to reading."""
    if not POOL:
        POOL.append(ProcessPoolExecutor(2, multiprocessing.get_context("fork")))
    assert list(POOL[0].map(abs, [-1, -2])) == [1, 2]


def print_megabytes() -> None:
    for number in range(4000):
        print(f"{number} " + "x" * 1000)
        os.write(2, b"y" * 1000 + b"\n")
    print("the last words")


def leave_a_daemon_and_crash() -> None:
    leave_a_daemon()
    os.abort()


def leave_a_daemon_and_hang() -> None:
    leave_a_daemon()
    HOLDING_THE_LOCK.pause()


def close_all_descriptors() -> None:
    os.closerange(0, 1024)


def put_a_file_in_the_place_of_every_descriptor() -> None:
    os.closerange(0, 1024)
    for _ in range(64):
        os.open("/dev/null", os.O_RDWR)


def close_output() -> None:
    with contextlib.suppress(OSError):
        os.close(1)


OPEN: list[int] = []


def leave_open(count: int) -> None:
    with contextlib.suppress(OSError):
        for _ in range(count):
            OPEN.append(os.open("/dev/null", os.O_RDONLY))


def leave_a_thread(*, while_: bool) -> None:
    """One that computes without end, or waits for work as those of a pool do."""

    def work() -> None:
        while while_:
            sum(range(1000))
        threading.Event().wait()

    threading.Thread(target=work, daemon=True).start()


class Half:
    """It can be written to, and that is all."""

    def write(self, text: str) -> None:
        os.write(2, text.encode())


def use_surroundings() -> None:
    """What a configuration may count on, whichever was measured before it."""
    assert gc.isenabled()
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert "LEFT_BEHIND" not in os.environ and os.environ["PATH"]
    assert subprocess.run(["false"], check=False).returncode == 1
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "inside").mkdir()
        (Path(folder) / "inside" / "file").write_bytes(bytes(10_000_000))
    deep(200)


def deep(depth: int) -> None:
    if depth:
        deep(depth - 1)


def raise_(error: BaseException) -> None:
    raise error


FAULTS = {
    "none": lambda: print("nothing to tell"),
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit 0": lambda: os._exit(0),
    "exit 3": lambda: os._exit(3),
    "hang in C": lambda: HOLDING_THE_LOCK.pause(),
    "hang in a system call": lambda: LIBC.pause(),
    "loop for ever": lambda: next(iter(lambda: 0, 1)) or [None for _ in iter(int, 1)],
    "ignore signals and hang": lambda: (
        [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGINT)],
        HOLDING_THE_LOCK.pause(),
    ),
    "fork children": fork_children,
    "leave a daemon": leave_a_daemon,
    "leave a process at work": leave_a_process_at_work,
    "work in a pool": work_in_a_pool,
    "leave a daemon and crash": leave_a_daemon_and_crash,
    "leave a daemon and hang": leave_a_daemon_and_hang,
    "eat memory": eat_memory,
    "eat memory in a child": eat_memory_in_a_child,
    "memory error": lambda: raise_(MemoryError("no room")),
    "print megabytes": print_megabytes,
    "raise": lambda: raise_(ValueError("what is this?")),
    "SystemExit": lambda: raise_(SystemExit(0)),
    "KeyboardInterrupt": lambda: raise_(KeyboardInterrupt()),
    "GeneratorExit": lambda: raise_(GeneratorExit()),
    "unprintable": lambda: raise_(UnprintableError()),
    "unprintable runtime error": lambda: raise_(UnprintableRuntimeError()),
    "unprintable arguments": lambda: raise_(TypeError(Unprintable())),
    "unpicklable": lambda: raise_(UnpicklableError()),
    "bytes that are no text": lambda: raise_(ValueError(os.fsdecode(b"no \xff"))),
    "recursion": lambda: (lambda f: f(f))(lambda f: f(f)),
    "close all descriptors": close_all_descriptors,
    "replace all descriptors": put_a_file_in_the_place_of_every_descriptor,
    "kill the process group": lambda: os.killpg(0, signal.SIGKILL),
    "kill itself softly": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "stop itself": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "set an alarm": lambda: signal.alarm(1),
    "keep memory": lambda: KEPT.append(b"x" * 12_000_000),
    "leave files open": lambda: leave_open(1000),
    "leave all files open": lambda: leave_open(10**9),
    "set a timer": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.01),
    "ignore its children": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "block an alarm": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF]),
    "limit its memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (1, resource.RLIM_INFINITY)),
    "forbid files": lambda: os.umask(0o777),
    "allow no depth": lambda: sys.setrecursionlimit(len(inspect.stack()) + 30),
    "collect no garbage": gc.disable,
    "change the folder": lambda: os.chdir("/"),
    "set a variable": lambda: os.environ.update(LEFT_BEHIND="1"),
    "empty a variable": lambda: os.environ.update(PATH=""),
    "delete a variable": lambda: os.environ.pop("PATH", None),
    "leave a thread at work": lambda: leave_a_thread(while_=True),
    "leave a thread that waits": lambda: leave_a_thread(while_=False),
    "close its output": lambda: sys.stdout.close(),
    "close the descriptor of its output": close_output,
    "have no output": lambda: setattr(sys, "stdout", None),
    "have an output of its own": lambda: setattr(sys, "stdout", Half()),
}


def measure(fault: str, number: int) -> object:
    start, busy = time.perf_counter(), time.process_time()
    if fault == "crash in the third reading":
        CALLS.append(fault)
        if len(CALLS) == 3:
            os.abort()
    FAULTS.get(fault, FAULTS["none"])()
    if fault == "none":
        use_surroundings()
    while fault == "none" and time.process_time() - busy < 0.02:
        pass  # longer than a timer that one before it has set
    if fault == "NaN":
        return float("nan")
    if fault == "infinite":
        return float("inf")
    if fault == "text":
        return "fast"
    if fault == "an array":
        return np.array([1.0, 2.0])
    if fault == "nothing":
        return None
    if fault == "another metric":
        return {"speed": 1.0}
    return 1.0 + time.perf_counter() - start
