"""The benchmarks' side of a peer: which interpreter has it, and its process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.contract import Knob
from benchmarks.peers.worker import CLASSES

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "pip install -e '.[peers]'"

Told = Sequence[tuple[Mapping[str, Any], float | None]]


class PeerError(Exception):
    """A peer cannot run, or gave up."""


@dataclass(frozen=True)
class Found:
    """A peer that can run: under which interpreter, on which versions."""

    name: str
    python: str
    on: str
    """The packages with their versions."""


def is_peer(name: str) -> bool:
    """Whether ``name`` is a peer, installed or not."""
    return name.startswith("kt-") or name in CLASSES


@cache
def find(name: str, pythons: tuple[str, ...]) -> Found:
    """The first of ``pythons`` (then this interpreter) that has what ``name`` needs.

    Raises :class:`PeerError` that says of each what it lacks.
    """
    if not is_peer(name):
        raise PeerError(f"there is no peer {name!r}: expected kt-STRATEGY, {', '.join(CLASSES)}")
    complaints = []
    for python in dict.fromkeys((*pythons, sys.executable)):
        try:
            done = _run([python, "-m", "benchmarks.peers.worker", "--versions", name])
        except OSError as error:
            raise PeerError(f"cannot run {python}: {error.strerror}") from error
        if done.returncode == 0:
            return Found(name, python, done.stdout.splitlines()[-1])
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        complaints.append(f"{python}: {reason}")
    hint = f"{INSTALL}, or --peer-python with the interpreter of an environment that has it"
    raise PeerError(f"{name} cannot run ({'; '.join(complaints)}). {hint}")


def find_all(needed: Mapping[str, str], pythons: Sequence[str]) -> tuple[dict[str, Found], list[str]]:
    """Which of the methods can run, by their names, and why the others cannot.

    ``needed``: the peer that each method needs.
    """
    found, missing = {}, []
    for method, peer in needed.items():
        try:
            found[method] = find(peer, tuple(pythons))
        except PeerError as error:
            missing.append(str(error))
    return found, missing


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    """One thread, the benchmarks importable, and the same iteration order in every run."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


class Client:
    """The process of one peer. ``seconds`` adds up the processor time of its answers since the start."""

    def __init__(self, found: Found) -> None:
        self.name = found.name
        self.seconds = 0.0
        self._process = subprocess.Popen(
            [found.python, "-m", "benchmarks.peers.worker", found.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        )

    def start(self, knobs: Iterable[Knob], seed: int, tries: int) -> None:
        """Begin a search; an earlier one is forgotten."""
        self.seconds = 0.0
        what = {"knobs": [knob.to_json() for knob in knobs], "seed": seed, "tries": tries}
        self.conditional: bool = self._request("start", what)["conditional"]
        """Whether the peer knows conditions (:class:`~benchmarks.peers.contract.Peer`)."""

    def ask(self) -> dict[str, Any]:
        configuration: dict[str, Any] = self._request("ask", True)["configuration"]
        return configuration

    def tell(self, told: Told) -> None:
        """Losses, ``None`` for a failure, in the order tried."""
        self._request("tell", list(told))

    def search(self, recorded: Mapping[str, Any], seed: int, tries: int) -> list[dict[str, Any]]:
        """For a tuner that runs by itself: what it tried in a recorded space."""
        self.seconds = 0.0
        what = {"recorded": recorded, "seed": seed, "tries": tries}
        configurations: list[dict[str, Any]] = self._request("search", what)["configurations"]
        return configurations

    def kill(self) -> None:
        """From another thread, too: what the peer was to answer raises :class:`PeerError`."""
        self._process.kill()

    def used(self) -> float:
        """The processor time of the process so far, in seconds; 0 where it has ended."""
        import psutil

        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def close(self) -> None:
        self.kill()
        self._process.communicate()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, verb: str, what: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({verb: what}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process is gone, which the empty answer says
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"the process of {self.name} ended while it was to {verb}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.name} gave up while it was to {verb}: {answer['error']}")
        self.seconds += answer["seconds"]
        return answer


_KEPT: dict[Found, Client] = {}
"""At most one."""


def kept(found: Found) -> Client:
    """A peer that stays for the next search, since some take long to import, until another one is wanted."""
    if found not in _KEPT:
        _close_kept()
        _KEPT[found] = Client(found)
    return _KEPT[found]


@atexit.register
def _close_kept() -> None:
    while _KEPT:
        _KEPT.popitem()[1].close()
