"""A server of a model over TCP that answers requests in batches; run by its path.

Its argument is a JSON of the sizes of the model and the knobs. It says its port on stdout once it is warm,
and ends with its stdin.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import OrderedDict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from perceptron import NUMBER, RELOAD, Floats, Model, Shape

Waiting = tuple[float, asyncio.Transport, bytes]
"""When it came, who waits for the answer, and the request."""


class Batcher:
    """Gathers requests until there are enough, or the first has waited long, and an instance is free."""

    def __init__(self, shape: Shape, max_batch: int, delay_ms: float, instances: int, cache: int) -> None:
        self.shape = shape
        self._loop = asyncio.get_running_loop()
        self._max_batch, self._delay, self._free = max_batch, delay_ms / 1000, instances
        self._pool = ThreadPoolExecutor(instances)
        self._waiting: deque[Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._answers = Answers(cache)
        self._model = Model(shape, seed=0)
        for size in {1, max_batch}:
            self._model(np.zeros((size, shape.inputs), np.float32))

    def take(self, transport: asyncio.Transport, request: bytes) -> None:
        """A request has come."""
        if NUMBER.unpack_from(request)[0] == RELOAD:
            self._reload(int(np.frombuffer(request, np.float32, offset=NUMBER.size)[0]))
            transport.write(request[: self.shape.answer_bytes].ljust(self.shape.answer_bytes, b"\0"))
            return
        known = self._answers.get(request[NUMBER.size :])
        if known is not None:
            transport.write(request[: NUMBER.size] + known)
            return
        self._waiting.append((time.monotonic(), transport, request))
        self._go_on()

    def _reload(self, seed: int) -> None:
        self._model = Model(self.shape, seed)
        self._answers.clear()

    def _go_on(self) -> None:
        """Start what can be started now."""
        while self._free and self._waiting:
            left = self._waiting[0][0] + self._delay - time.monotonic()
            if len(self._waiting) < self._max_batch and left > 0:
                if self._timer is None:
                    self._timer = self._loop.call_later(left, self._wake)
                return
            count = min(self._max_batch, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(count)]
            batch = [one for one in batch if not one[1].is_closing()]  # nobody waits for the others
            if batch:
                self._start(batch)

    def _wake(self) -> None:
        self._timer = None
        self._go_on()

    def _start(self, batch: list[Waiting]) -> None:
        self._free -= 1
        running = self._pool.submit(_compute, self._model, [request for _, _, request in batch])
        running.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(partial(self._finish, batch, self._model, done))
        )

    def _finish(self, batch: list[Waiting], model: Model, done: Future[Floats]) -> None:
        self._free += 1
        self._go_on()
        for (_, transport, request), answer in zip(batch, done.result(), strict=True):
            raw = answer.tobytes()
            if not transport.is_closing():
                transport.write(request[: NUMBER.size] + raw)
            if model is self._model:
                self._answers.put(request[NUMBER.size :], raw)


def _compute(model: Model, requests: list[bytes]) -> Floats:
    inputs = np.frombuffer(b"".join(requests), np.uint8).reshape(len(requests), -1)[:, NUMBER.size :]
    return model(np.ascontiguousarray(inputs).view(np.float32))


class Answers:
    """The answers to so many requests, of which those that were asked for last are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, inputs: bytes) -> bytes | None:
        if not self._most or inputs not in self._known:
            return None
        self._known.move_to_end(inputs)
        return self._known[inputs]

    def put(self, inputs: bytes, answer: bytes) -> None:
        if self._most:
            self._known[inputs] = answer
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def clear(self) -> None:
        self._known.clear()


class Connection(asyncio.Protocol):
    """Cuts what comes into requests."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher, self._rest = batcher, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        came, size = self._rest + data, self._batcher.shape.request_bytes
        whole = len(came) - len(came) % size
        for begin in range(0, whole, size):
            self._batcher.take(self._transport, came[begin : begin + size])
        self._rest = came[whole:]


async def serve(shape: Shape, knobs: dict[str, Any]) -> None:
    batcher = Batcher(shape, **knobs)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(batcher), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)  # nobody writes to it: it is closed
    await ended.wait()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    asyncio.run(serve(Shape(**given["shape"]), given["knobs"]))
