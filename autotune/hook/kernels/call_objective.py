"""A call of somebody's kernel as an objective: what the default configuration computes is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.errors import InputError, Problem, nearest
from autotune.hook.kernels.call import Copies, KernelCall, Tensor
from autotune.measure.gpu.tensors import tensor_error, unchanged
from autotune.measure.kernels.device_objective import CHECKS, DeviceObjective
from autotune.measure.kernels.kernel_objective import TOLERANCES
from autotune.measure.objective import Context
from autotune.space.configuration import Configuration


class CallObjective(DeviceObjective):
    """Times a call on copies of its tensors; nothing that the caller has is written to.

    The call is run once with ``default``. The tensors which that changes are outputs; a configuration is
    ``wrong`` where they come out otherwise, by more than ``tolerance`` of the largest value, where it changes
    any other tensor, or writes outside one. Before each check all tensors are as they were in the call, but
    what is overwritten whatever it held is poisoned: an answer of an earlier call must not pass for one.
    Which tensors of floats are overwritten is found by shifting what they hold; ``written`` names others.
    """

    def __init__(
        self,
        call: KernelCall,
        default: Mapping[str, Any],
        context: Context,
        written: Sequence[str] = (),
        tolerance: float | None = None,
    ) -> None:
        super().__init__(context)
        call.check()
        self.kernel_call = call
        self.allowed = tolerance
        tensors = call.tensors
        if not tensors:
            raise InputError("this call has no tensor: there is nothing to check an answer by")
        problems = [
            Problem(
                f"there is no tensor {name!r} in this call", None, ", ".join(tensors), nearest(name, tensors)
            )
            for name in written
            if name not in tensors
        ]
        if problems:
            raise InputError(problems)
        self._device = next(iter(tensors.values())).device
        self.written = tuple(written)
        self.poison: dict[str, Tensor] = {}
        self.expected = self._expect(default)

    def _expect(self, default: Mapping[str, Any]) -> dict[str, Tensor]:
        """What the outputs hold after the call with the default configuration; finds :attr:`poison`, too."""
        before, after = self.kernel_call.copies().tensors, self._run(default, {})
        names = {name for name in after if _differ(before[name], after[name])} | set(self.written)
        overwritten = set(self.written)
        for name in after:
            if name not in overwritten and _may_hold_another(after[name]):
                shifted = _shifted(before[name])
                held = self._run(default, {name: shifted})[name]
                if _differ(shifted, before[name]) and not _differ(held, after[name]):
                    overwritten.add(name)
        names |= overwritten
        if not names:
            message = "no tensor changes when the kernel is run"
            hint = "say which it writes: @autotune.kernel(..., written=[...])"
            raise InputError(Problem(message, hint=hint))
        self.poison = {name: _other_than(after[name]) for name in overwritten}
        return {name: after[name] for name in after if name in names}

    def _run(self, options: Mapping[str, Any], put: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors after a call on copies; ``put`` replaces what some of them hold before."""
        tensors = self.kernel_call.copies().tensors
        for name, held in put.items():
            tensors[name].copy_(held)
        self.kernel_call.run(options, tensors)
        self.apparatus.events.synchronise()
        return tensors

    def _fresh(self) -> Copies:
        """Copies of the call's tensors, those that are only written full of poison."""
        copies = self.kernel_call.copies()
        for name, poison in self.poison.items():
            copies.made[name].tensor.copy_(poison)
        return copies

    # -- the way of a configuration ----------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Copies of all tensors of the call: what it writes is among them."""
        return self.kernel_call.copies().tensors

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {}

    def load(self, prepared: Configuration) -> dict[str, Any]:
        return launch_options(prepared)

    def call(self, loaded: Any, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        self.kernel_call.run(loaded, inputs)

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        errors = [0.0]
        others = {n: t for n, t in self.kernel_call.tensors.items() if n not in self.expected}
        for _ in range(CHECKS if self.device.type == "cuda" else 1):
            copies = self._fresh()
            tensors = copies.tensors
            self.kernel_call.run(loaded, tensors)
            self.apparatus.events.synchronise()
            copies.verify()
            unchanged(others, {name: tensors[name] for name in others})
            for name, expected in self.expected.items():
                allowed = self.allowed
                if allowed is None:
                    allowed = TOLERANCES.get(str(expected.dtype).removeprefix("torch."), 0.0)
                errors.append(tensor_error(name, tensors[name], expected, allowed))
        return {"error": max(errors)}


def launch_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What a launch is given for a configuration: no limit of registers is said by leaving it out."""
    return {name: value for name, value in configuration.items() if name != "maxnreg" or value}


def _may_hold_another(tensor: Tensor) -> bool:
    """Whether it is of floats that can be shifted: of an expanded tensor several are one in memory."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    expanded = any(length > 1 and not step for length, step in steps)
    return bool(tensor.is_floating_point() and tensor.numel() > 1 and not expanded)


def _shifted(tensor: Tensor) -> Tensor:
    """The same values, each one place on: what a kernel reads stays as plausible as it was."""
    return tensor.reshape(-1).roll(1).reshape(tensor.shape)


def _other_than(answer: Tensor) -> Tensor:
    """As large as ``answer``, and differing from it everywhere.

    It is finite: a kernel may multiply what it overwrites by nought.
    """
    import torch

    if answer.dtype is torch.bool:
        return ~answer
    if not (answer.is_floating_point() or answer.is_complex()):
        return (answer.to(torch.int64) + 1).to(answer.dtype)  # for most unsigned types PyTorch cannot add
    wide = answer.abs().to(torch.float64)
    finite = wide[torch.isfinite(wide)]
    largest = 2.0 * float(finite.max()) + 1.0 if finite.numel() else 1.0
    kind = answer.dtype if answer.is_floating_point() else answer.real.dtype
    most = torch.finfo(kind).max
    filled = torch.full(tuple(answer.shape), min(largest, most), dtype=torch.float64, device=answer.device)
    return torch.where(wide == filled, -filled, filled).to(answer.dtype)


def _differ(one: Tensor, other: Tensor) -> bool:
    """Whether any byte does."""
    import torch

    bytes_of = (x.contiguous().reshape(-1).view(torch.uint8) for x in (one, other))
    return not bool(torch.equal(*bytes_of))
