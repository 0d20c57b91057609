"""Reducers of gradients that start while the backward pass goes on. In ranks."""

from __future__ import annotations

import threading
import time
from typing import Any

import torch
import torch.distributed as dist
from allreduce import Pipeline
from allreduce_plan import Plan as ReductionPlan
from ddp_plan import MEBIBYTE, Plan, buckets_of
from torch import nn

from autotune.measure.groups.rank import Rank

ALL = 1 << 30


class Reducer:
    """Averages the gradients of a model over all ranks, in place.

    They lie one after another in a flat tensor, the last layer's first, for that is how they become ready.
    So whatever goes out together is a slice of it. Subclasses say when what goes out.
    """

    def __init__(self, rank: Rank, gloo: Any, model: nn.Module, plan: Plan) -> None:
        self.rank, self.gloo, self.plan = rank, gloo, plan
        self.enabled = True
        self.parameters = list(reversed([p for p in model.parameters() if p.requires_grad]))
        sizes = [p.numel() for p in self.parameters]
        starts = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
        self.slices = [slice(starts[n], starts[n + 1]) for n in range(len(sizes))]
        self.arrived = 0
        """So many gradients, without a gap, are ready."""
        self._there: set[int] = set()
        self._flat = torch.zeros(starts[-1])
        # In place, as PyTorch's own class does it; what int8 leaves out is worked out from both.
        self._sum = torch.empty_like(self._flat) if plan.compression == "int8" else self._flat
        reduction = ReductionPlan(
            chunk=ALL, depth=plan.depth or ALL, algorithm=plan.algorithm, compression=plan.compression
        )
        self._pipeline = Pipeline(rank, gloo, reduction)
        self._pipeline.residual = torch.zeros_like(self._flat)
        self._hooks = [
            p.register_post_accumulate_grad_hook(lambda _, number=number: self._arrive(number))
            for number, p in enumerate(self.parameters)
        ]

    def begin(self) -> None:
        """A backward pass is about to begin."""
        self.arrived = 0
        self._there = set()

    def ready(self) -> None:
        """More gradients are ready."""
        raise NotImplementedError

    def send_rest(self) -> None:
        """All are ready: send what has not gone out, and wait for it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait for what is under way, and put the averages in the place of the gradients."""
        self.send_rest()
        for parameter, part in zip(self.parameters, self.slices, strict=True):
            assert parameter.grad is not None
            torch.div(self._sum[part].view_as(parameter.grad), self.rank.world, out=parameter.grad)

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def send(self, first: int, end: int) -> None:
        """Gradients ``first`` to ``end``, as soon as there is room in flight."""
        part = slice(self.slices[first].start, self.slices[end - 1].stop)
        self._pipeline.add(self._flat, self._sum, part)

    def wait(self) -> None:
        """Until nothing is in flight."""
        self._pipeline.finish()

    def _arrive(self, number: int) -> None:
        if not self.enabled:
            return
        gradient = self.parameters[number].grad
        assert gradient is not None
        self._flat[self.slices[number]].copy_(gradient.reshape(-1))
        self._there.add(number)
        while self.arrived in self._there:
            self.arrived += 1
        self.ready()


class BucketReducer(Reducer):
    """Each bucket goes out when it is complete, in the order of buckets: all ranks have to agree on it."""

    def __init__(self, rank: Rank, gloo: Any, model: nn.Module, plan: Plan) -> None:
        super().__init__(rank, gloo, model, plan)
        sizes = [4 * (part.stop - part.start) for part in self.slices]
        self._buckets = buckets_of(sizes, MEBIBYTE, int(plan.bucket_mb * MEBIBYTE))
        self._next = 0

    def begin(self) -> None:
        super().begin()
        self._next = 0

    def ready(self) -> None:
        if self.plan.overlap:
            self._send_complete()

    def send_rest(self) -> None:
        self._send_complete()
        self.wait()

    def _send_complete(self) -> None:
        while self._next < len(self._buckets) and self._buckets[self._next][-1] < self.arrived:
            bucket = self._buckets[self._next]
            self._next += 1
            self.send(bucket[0], bucket[-1] + 1)


class CycleReducer(Reducer):
    """As Horovod works: a thread agrees with the other ranks, every so often, on what is ready in all of
    them, and sends that, fused up to a threshold. Made anew from its published description."""

    def __init__(self, rank: Rank, gloo: Any, model: nn.Module, plan: Plan) -> None:
        super().__init__(rank, gloo, model, plan)
        self._begun, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        super().begin()
        self._begun.release()

    def ready(self) -> None:
        return

    def send_rest(self) -> None:
        self._done.acquire()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        super().close()
        self._closed = True
        self._begun.release()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            self._begun.acquire()
            if self._closed:
                return
            try:
                self._send_all()
            except BaseException as error:  # noqa: BLE001 - raised where the step waits
                self._failure = error
            self._done.release()

    def _send_all(self) -> None:
        sent, cycle = 0, self.plan.cycle_ms / 1000
        while sent < len(self.slices):
            begun = time.perf_counter()
            agreed = self._agree()
            while sent < agreed:
                end = self._fused(sent, agreed)
                self.send(sent, end)
                sent = end
            self.wait()
            if sent < len(self.slices):
                time.sleep(max(0.0, cycle - (time.perf_counter() - begun)))

    def _agree(self) -> int:
        """How many gradients are ready in all ranks."""
        smallest = dist.AllreduceOptions()
        smallest.reduceOp = dist.ReduceOp.MIN
        count = torch.tensor([self.arrived])
        self.gloo.allreduce([count], smallest).wait()
        return int(count)

    def _fused(self, first: int, agreed: int) -> int:
        cap = max(1, int(self.plan.bucket_mb * MEBIBYTE) // 4)
        end = first + 1
        while end < agreed and self.slices[end].stop - self.slices[first].start <= cap:
            end += 1
        return end


def make_reducer(rank: Rank, gloo: Any, model: nn.Module, plan: Plan) -> Reducer:
    kind = CycleReducer if plan.reducer == "cycles" else BucketReducer
    return kind(rank, gloo, model, plan)
