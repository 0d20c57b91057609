"""``comm-copies``: data that goes from the host to a GPU, is worked on there, and comes back, in pieces.

Workload: ``megabytes`` (MB of 10^6 bytes, float32), ``products`` (matrix products of each block of 512 x 512
while it is there), ``device`` (``cuda``; ``cpu`` tries the code, and measures nothing of interest).

Knobs: ``chunk_kb`` of a piece; ``depth``, pieces under way; ``streams`` they are spread over; ``staging``:
``pageable`` copies from where the data is, ``pinned`` from page-locked memory that it was put into
beforehand, ``staged`` through page-locked buffers, filled as part of the time.

Metrics: ``time`` in seconds until all is back; ``exposed``, that without the time of the computation alone;
``error`` against one product of everything at once in float64.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from autotune.measure.objective import Context, Infeasible, Objective, WrongAnswer

SIDE = 512
BLOCK = SIDE * SIDE
"""Elements that are worked on together: a piece has whole ones."""

TOLERANCE = 1e-3


@dataclass(frozen=True)
class Plan:
    """The default copies everything at once from pageable memory, as ``tensor.to('cuda')`` does."""

    chunk_kb: int = 1 << 20
    depth: int = 1
    streams: int = 1
    staging: str = "pageable"


class Copies(Objective):
    workload_facts = ("megabytes", "products", "device")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.device = torch.device(context.choice("device", ("cuda", "cpu"), default="cuda"))
        self.cuda = self.device.type == "cuda"
        if self.cuda and not torch.cuda.is_available():
            raise Infeasible("PyTorch finds no GPU here; the code can be tried with  device: cpu")
        self.blocks = max(1, int(context.amount("megabytes") * 1e6 / 4 / BLOCK))
        self.products = context.size("products", 1, least=0)

    def load(self, prepared: Any) -> Plan:
        return Plan(**prepared)

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        given, weight = self._inputs(rng)
        out = self._host(given.shape, loaded)
        self._run(loaded, self._placed(given, loaded), weight, out)
        errors = []
        for block, found in zip(given, out, strict=True):
            expected = block.double()
            for _ in range(self.products):
                expected = expected @ weight.cpu().double()
            scale = float(expected.abs().max()) or 1.0
            errors.append(float((found.double() - expected).abs().max()) / scale)
        worst = float(np.max(errors))  # NaN where one is
        if not worst <= TOLERANCE:
            raise WrongAnswer(f"the largest error is {worst:.3g} of the largest value", {"error": worst})
        return {"error": worst}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        given, weight = self._inputs(rng)
        placed, out = self._placed(given, loaded), self._host(given.shape, loaded)
        compute = self._compute_alone(given, weight)
        took = self._timed(lambda: self._run(loaded, placed, weight, out))
        if bool(torch.isnan(out).any()):
            raise WrongAnswer("a part of the result was never written")
        return {"time": took, "exposed": max(0.0, took - compute), "compute": compute}

    # -- the way of the data -------------------------------------------------------------------

    def _run(self, plan: Plan, given: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
        size = max(1, min(plan.chunk_kb * 1024 // (4 * BLOCK), self.blocks))
        streams = [torch.cuda.Stream(self.device) for _ in range(plan.streams)] if self.cuda else [None]
        rooms = [self._rooms(size, plan) for _ in range(plan.depth)]
        under_way: list[Any] = [None] * plan.depth
        for number, start in enumerate(range(0, self.blocks, size)):
            part = slice(start, min(start + size, self.blocks))
            place = number % plan.depth
            if under_way[place] is not None:
                under_way[place]()
            with _on(streams[number % len(streams)]) as stream:
                under_way[place] = self._send(plan, given[part], weight, out[part], rooms[place], stream)
        for finish in under_way:
            if finish is not None:
                finish()
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def _send(
        self,
        plan: Plan,
        given: torch.Tensor,
        weight: torch.Tensor,
        out: torch.Tensor,
        rooms: tuple[torch.Tensor, torch.Tensor | None],
        stream: Any,
    ) -> Any:
        """Begin with a piece; returns what has to be called before its rooms are used again."""
        there, staging = rooms[0][: len(given)], rooms[1]
        source, target = given, out
        if staging is not None:
            source = target = staging[: len(given)]
            source.copy_(given)
        there.copy_(source, non_blocking=True)
        target.copy_(self._work(there, weight), non_blocking=True)
        event = torch.cuda.Event() if self.cuda else None
        if event is not None:
            event.record(stream)

        def finish() -> None:
            if event is not None:
                event.synchronize()
            if staging is not None:
                out.copy_(target)

        return finish

    def _compute_alone(self, given: torch.Tensor, weight: torch.Tensor) -> float:
        """Seconds of all products, of data that is there."""
        there = given.to(self.device)
        return self._timed(lambda: [self._work(block, weight) for block in there])

    def _work(self, there: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for _ in range(self.products):
            there = there @ weight
        return there

    # -- memory --------------------------------------------------------------------------------

    def _inputs(self, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        given = torch.randn(self.blocks, SIDE, SIDE, generator=generator)
        weight = torch.randn(SIDE, SIDE, generator=generator) / SIDE**0.5
        return given, weight.to(self.device)

    def _placed(self, given: torch.Tensor, plan: Plan) -> torch.Tensor:
        return given.pin_memory() if plan.staging == "pinned" and self.cuda else given

    def _host(self, shape: Any, plan: Plan) -> torch.Tensor:
        """Where the result goes, poisoned."""
        return torch.full(shape, float("nan"), pin_memory=plan.staging == "pinned" and self.cuda)

    def _rooms(self, size: int, plan: Plan) -> tuple[torch.Tensor, torch.Tensor | None]:
        shape = (size, SIDE, SIDE)
        try:
            there = torch.empty(shape, device=self.device)
            staging = torch.empty(shape, pin_memory=self.cuda) if plan.staging == "staged" else None
        except RuntimeError as error:
            if "memory" not in str(error):
                raise
            raise Infeasible(f"no room for the pieces under way: {error}") from error
        return there, staging

    def _timed(self, work: Any) -> float:
        if self.cuda:
            torch.cuda.synchronize(self.device)
        begun = time.perf_counter()
        work()
        if self.cuda:
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - begun


@contextmanager
def _on(stream: Any) -> Iterator[Any]:
    with torch.cuda.stream(stream) if stream is not None else nullcontext():
        yield stream
