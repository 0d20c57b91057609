"""Sends requests to a server at the times of a Poisson process, whatever becomes of them; run by its path.

Its argument is a JSON of the sizes of the model, the port and the file with the right answers. For each line
on stdin, a JSON of a :class:`Load`, it says what came of it in a line on stdout, a JSON of a :class:`Heard`.

A latency counts from when the request was to be sent: what holds up the one who asks is no excuse.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from perceptron import NUMBER, RELOAD, Shape, bank, drawn

CONNECTIONS = 8
PATIENCE = 10.0
"""Seconds without an answer, after the last request, in which one may still come."""


@dataclass(frozen=True)
class Load:
    """So many requests, so many a second."""

    count: int
    rate: float
    seed: int
    repeated: float
    popular: int
    limit: float | None = None
    """Seconds of a latency; it is over once more than ``allowed`` requests have taken longer."""
    allowed: int = 0
    model: int = 0
    """By whose answers they are judged; it is loaded first where it is another than before."""


@dataclass(frozen=True)
class Heard:
    answered: int
    """Of all requests that were to be sent."""
    twice: int
    """Answers to what was not asked, or was answered already."""
    error: float
    """The largest of an output, relative to the largest output."""
    late: int
    """That took longer than the limit, as far as is known; of no limit none."""
    p99: float


class Run:
    """One load, from its first request on."""

    def __init__(self, shape: Shape, port: int, load: Load) -> None:
        rng = np.random.default_rng(load.seed)
        self.load, self._shape = load, shape
        self.which = drawn(load.count, load.repeated, load.popular, rng)
        self._due = np.cumsum(rng.exponential(1 / load.rate, load.count)).tolist()
        self.latencies = np.full(load.count, np.inf)
        self.outputs = np.zeros((load.count, shape.outputs), np.float32)
        self.answered = self.twice = self._late = self._sent = 0
        self._heard_at = 0.0
        self._selector = selectors.SelectSelector()  # others wait for whole milliseconds
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
        self._rests = dict.fromkeys(self._sockets, b"")
        for one in self._sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(one, selectors.EVENT_READ)

    def go(self, inputs: list[bytes]) -> None:
        """Send all requests and wait for their answers, or until too many are late."""
        count, due, began = self.load.count, self._due, time.perf_counter()
        while self.answered < count and not self.twice:
            now = time.perf_counter() - began
            while self._sent < count and due[self._sent] <= now:
                self._sockets[self._sent % CONNECTIONS].sendall(
                    NUMBER.pack(self._sent) + inputs[self.which[self._sent]]
                )
                self._sent += 1
                now = time.perf_counter() - began
            over = max(due[-1], self._heard_at) + PATIENCE
            if now > over or self.late_at(now) > self.load.allowed:
                break
            until = due[self._sent] if self._sent < count else over
            if self.load.limit is not None:
                until = min(until, now + self.load.limit)
            for key, _ in self._selector.select(max(0.0, until - now)):
                self._hear(key.fileobj, time.perf_counter() - began)  # type: ignore[arg-type]

    def late_at(self, now: float) -> int:
        """How many are late for certain: those answered so, and those that are due and not answered."""
        if self.load.limit is None:
            return 0
        overdue = int(np.searchsorted(self._due, now - self.load.limit))
        return self._late + max(0, overdue - self.answered)

    def close(self) -> None:
        for one in self._sockets:
            one.close()
        self._selector.close()

    def _hear(self, one: socket.socket, now: float) -> None:
        self._heard_at = now
        if not (data := one.recv(1 << 16)):
            raise ConnectionError("the server has closed a connection")
        came, size = self._rests[one] + data, self._shape.answer_bytes
        whole = len(came) - len(came) % size
        for begin in range(0, whole, size):
            number = NUMBER.unpack_from(came, begin)[0]
            if number >= self._sent or self.latencies[number] < np.inf:
                self.twice += 1
                continue
            self.latencies[number] = now - self._due[number]
            self.outputs[number] = np.frombuffer(came, np.float32, self._shape.outputs, begin + NUMBER.size)
            self.answered += 1
            self._late += int(self.load.limit is not None and self.latencies[number] > self.load.limit)
        self._rests[one] = came[whole:]


def reload(shape: Shape, port: int, seed: int) -> None:
    """Let the server load another model, and wait until it has."""
    request = NUMBER.pack(RELOAD) + np.full(shape.inputs, seed, np.float32).tobytes()
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(request)
        one.recv(shape.answer_bytes, socket.MSG_WAITALL)


def main() -> None:
    given = json.loads(sys.argv[1])
    shape, port = Shape(**given["shape"]), given["port"]
    right = np.load(given["answers"])
    inputs = [one.tobytes() for one in bank(shape)]
    model = 0
    for line in sys.stdin:
        load = Load(**json.loads(line))
        if load.model != model:
            model = load.model
            reload(shape, port, model)
        run = Run(shape, port, load)
        try:
            run.go(inputs)
        finally:
            run.close()
        print(json.dumps(asdict(_heard(run, right[model]))), flush=True)


def _heard(run: Run, right: np.ndarray) -> Heard:
    there = run.latencies < np.inf
    expected = right[run.which[there]]
    error = float(np.abs(run.outputs[there] - expected).max() / np.abs(right).max()) if there.any() else 0.0
    late = 0 if run.load.limit is None else int((run.latencies > run.load.limit).sum())
    return Heard(
        run.answered, run.twice, error, late, float(np.percentile(run.latencies, 99, method="lower"))
    )


if __name__ == "__main__":
    main()
