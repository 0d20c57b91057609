"""The part of a model that one device holds, and how it goes through a training step with the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from peers import GRADIENT, VALUE, Message, Peers
from placement_models import Model
from placement_plan import Plan, make_turns

Key = tuple[int, int]
"""An item and a micro-batch. Those are counted on from step to step: a device may be a step ahead."""

RATE, MOMENTUM = 0.05, 0.9


@dataclass
class Held:
    """What is kept of one forward pass until its backward pass."""

    inputs: list[torch.Tensor]
    output: torch.Tensor | None
    """``None``: thrown away, to be computed again."""


@dataclass
class Part:
    """The items of one device.

    An item's inputs are leaves of its own; their gradients are added up for each of its makers and
    sent to where that is, once a device.
    """

    model: Model
    plan: Plan
    device: int
    peers: Peers
    seed: int
    busy: float = 0.0
    """Seconds of the processor in tasks, but for sending: so they are the same wherever an item is, on cores
    as fast. Those of the clock would not add up: whoever waits for others part of the time has its quota
    saved for its next task, and is through with it sooner."""
    loss: float = 0.0
    """The sum of the losses that were computed here, since it was last set to 0."""

    def __post_init__(self) -> None:
        self.own = tuple(n for n, where in enumerate(self.plan.place) if where == self.device)
        self.modules = {item: self.model.module(item, self.seed) for item in self.own}
        parameters = [p for module in self.modules.values() for p in module.parameters()]
        self.optimiser = torch.optim.SGD(parameters, RATE, MOMENTUM) if parameters else None
        self._reads = [item.reads for item in self.model.items]
        self._values: dict[Key, torch.Tensor] = {}
        self._waiting: dict[Key, int] = {}
        """How many items here have not read a value yet."""
        self._held: dict[Key, Held] = {}
        self._gradients: dict[Key, list[torch.Tensor]] = {}
        """What has come from the devices that read an output."""
        self._sums: dict[Key, tuple[int, torch.Tensor]] = {}
        """By maker of an input: how many items here have given a gradient, and their sum."""

    # -- a step

    def step(
        self, parts: Sequence[tuple[torch.Tensor, ...]], first: int, beat: Callable[[str], None]
    ) -> None:
        """A training step on the parts of a batch, whose first micro-batch has the number ``first``."""
        self.gradients(parts, first, beat)
        if self.optimiser is not None:
            begun = time.thread_time()
            self.optimiser.step()
            self.busy += time.thread_time() - begun

    def gradients(
        self, parts: Sequence[tuple[torch.Tensor, ...]], first: int, beat: Callable[[str], None]
    ) -> None:
        """All forward and backward passes, in the order of the plan."""
        if self.optimiser is not None:
            self.optimiser.zero_grad()
        turns = make_turns(self.plan, self._reads, self.device)
        while not turns.done:
            while (message := self.peers.receive(block=False)) is not None:
                self._take(message)
            task = next((t for t in turns.candidates() if self._ready(t[0], (t[1], first + t[2]))), None)
            if task is None:
                beat("wait")
                message = self.peers.receive(block=True)
                assert message is not None
                self._take(message)
                continue
            beat("compute")
            kind, item, number = task
            begun = time.thread_time()
            if kind == "forward":
                self._forward((item, first + number), parts[number])
            else:
                self._backward((item, first + number), parts[number])
            self.busy += time.thread_time() - begun
            turns.finish(task)

    def _ready(self, kind: str, key: Key) -> bool:
        item, micro_batch = key
        if kind == "forward":
            return all((maker, micro_batch) in self._values for maker in self._reads[item])
        return len(self._gradients.get(key, ())) == len(self._readers(item))

    # -- forward

    def _forward(self, key: Key, batch: tuple[torch.Tensor, ...]) -> None:
        item, micro_batch = key
        inputs = [self._read((maker, micro_batch)) for maker in self._reads[item]]
        keep = not self.plan.recompute
        with torch.set_grad_enabled(keep):
            output = self._compute(item, inputs, batch)
        self._held[key] = Held(inputs, output if keep else None)
        if item == self.model.last:
            self.loss += float(output.detach())
        else:
            self._pass_on(key, output.detach())

    def _compute(
        self, item: int, inputs: list[torch.Tensor], batch: tuple[torch.Tensor, ...]
    ) -> torch.Tensor:
        given = inputs if self._reads[item] else [batch[0]]
        targets = [batch[1]] if item == self.model.last else []
        return self.modules[item](*given, *targets)  # type: ignore[no-any-return]

    def _read(self, key: Key) -> torch.Tensor:
        value = self._values[key]
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._values[key], self._waiting[key]
        return value.detach().requires_grad_()

    def _pass_on(self, key: Key, value: torch.Tensor) -> None:
        for device in self._readers(key[0]):
            if device == self.device:
                self._keep(key, value)
            else:
                self._send(device, VALUE, key, value)

    def _keep(self, key: Key, value: torch.Tensor) -> None:
        self._values[key] = value
        self._waiting[key] = self._here(key[0])

    # -- backward

    def _backward(self, key: Key, batch: tuple[torch.Tensor, ...]) -> None:
        item, micro_batch = key
        held = self._held.pop(key)
        output = held.output if held.output is not None else self._compute(item, held.inputs, batch)
        parts = self._gradients.pop(key, [])
        torch.autograd.backward(output, sum(parts[1:], parts[0]) if parts else None)
        for maker, leaf in zip(self._reads[item], held.inputs, strict=True):
            assert leaf.grad is not None
            self._give((maker, micro_batch), leaf.grad)

    def _give(self, key: Key, gradient: torch.Tensor) -> None:
        """Add to the gradient of a maker's output; pass it on once all items here have."""
        count, total = self._sums.pop(key, (0, None))
        total = gradient if total is None else total + gradient
        if count + 1 < self._here(key[0]):
            self._sums[key] = (count + 1, total)
        elif self.plan.place[key[0]] == self.device:
            self._gradients.setdefault(key, []).append(total)
        else:
            self._send(self.plan.place[key[0]], GRADIENT, key, total)

    def _send(self, device: int, kind: int, key: Key, tensor: torch.Tensor) -> None:
        begun = time.thread_time()
        self.peers.send(device, kind, *key, tensor)
        self.busy -= time.thread_time() - begun

    # -- who reads what

    def _take(self, message: Message) -> None:
        key = (message.item, message.micro_batch)
        if message.kind == VALUE:
            self._keep(key, message.tensor)
        elif message.kind == GRADIENT:
            self._gradients.setdefault(key, []).append(message.tensor)

    def _readers(self, item: int) -> list[int]:
        """The devices with an item that reads this one, each once."""
        return sorted({self.plan.place[reader] for reader in self.model.readers[item]})

    def _here(self, item: int) -> int:
        """How many items of this device read it."""
        return sum(self.plan.place[reader] == self.device for reader in self.model.readers[item])
