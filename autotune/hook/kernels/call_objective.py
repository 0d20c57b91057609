"""A call of a user's kernel as an objective; the answer of the default configuration is taken as correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from autotune.errors import InputError, Problem, nearest
from autotune.hook.kernels.call import Copies, KernelCall, Tensor
from autotune.measure.gpu.tensors import same_bytes, unchanged
from autotune.measure.kernels.device_objective import CHECKS, DeviceObjective
from autotune.measure.kernels.guarded import FENCE_BYTE, GUARD_BYTE
from autotune.measure.objective import Context
from autotune.space.configuration import Configuration

BANDS = (GUARD_BYTE, FENCE_BYTE)
"""What lies beside outputs, in one check and in the next. A kernel that copies too far writes there what lies
beside its input, which is NaN; but beside what it works on in place it must read nothing other than NaN."""


class CallObjective(DeviceObjective):
    """Times a call on copies of its tensors; nothing that the caller has is written to.

    The call is run once with the configuration ``default``; the tensors that it changes are the outputs. A
    configuration is ``wrong`` if an output differs from that run by more than ``tolerance`` times the
    output's largest value, if it changes another tensor, or if it writes outside a tensor.
    ``tolerance=None`` means the usual one for the type of the tensor.

    Before each check all tensors hold what they held in the call, except those that the kernel only writes:
    they are filled with wrong values ("poison"), so that the answer of an earlier call does not pass. Tensors
    of floats that are only written are found by running the call with their contents shifted; ``written``
    names such tensors of other types.
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
            raise InputError("this call has no tensor, so there is no answer to check")
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
        """The outputs after the call with the default configuration; also fills :attr:`poison`."""
        before, after = self.kernel_call.copies().tensors, self._run(default, {})
        names = {name for name in after if not same_bytes(before[name], after[name])} | set(self.written)
        overwritten = set(self.written)
        for name in after:
            if name not in overwritten and _may_hold_another(after[name]):
                shifted = _shifted(before[name])
                held = self._run(default, {name: shifted})[name]
                if not same_bytes(shifted, before[name]) and same_bytes(held, after[name]):
                    overwritten.add(name)
        names |= overwritten
        if not names:
            message = "no tensor changes when the kernel is run"
            hint = "say which it writes: @autotune.kernel(..., written=[...])"
            raise InputError(Problem(message, hint=hint))
        self.poison = {name: _other_than(after[name]) for name in overwritten}
        return {name: after[name] for name in after if name in names}

    def _run(self, options: Mapping[str, Any], put: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors after a call on copies; ``put`` has other contents for some of them before the call."""
        tensors = self.kernel_call.copies().tensors
        for name, held in put.items():
            tensors[name].copy_(held)
        self.kernel_call.run(options, tensors)
        self.apparatus.events.synchronise()
        return tensors

    def _fresh(self, band: int) -> Copies:
        """Copies of the call's tensors; those that are only written are filled with poison.

        ``band`` fills the guard bands beside the outputs.
        """
        copies = self.kernel_call.copies(self.expected, band)
        for name, poison in self.poison.items():
            copies.made[name].tensor.copy_(poison)
        return copies

    # -- the way of a configuration ----------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Copies of all tensors of the call, including its outputs."""
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
        for band in islice(cycle(BANDS), CHECKS if self.device.type == "cuda" else len(BANDS)):
            copies = self._fresh(band)
            tensors = copies.tensors
            self.kernel_call.run(loaded, tensors)
            self.apparatus.events.synchronise()
            copies.verify()
            unchanged(others, {name: tensors[name] for name in others})
            errors += [self._error(name, tensors[name], self.expected) for name in self.expected]
        return {"error": max(errors)}

    def _allowed(self, name: str, dtype: str, expected: Mapping[str, Any]) -> float:
        return super()._allowed(name, dtype, expected) if self.allowed is None else self.allowed


def launch_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a launch; a ``maxnreg`` of 0 (no limit of registers) is left out."""
    return {name: value for name, value in configuration.items() if name != "maxnreg" or value}


def _may_hold_another(tensor: Tensor) -> bool:
    """Whether it holds floats that can be shifted; in an expanded tensor, several elements share memory."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    expanded = any(length > 1 and not step for length, step in steps)
    return bool(tensor.is_floating_point() and tensor.numel() > 1 and not expanded)


def _shifted(tensor: Tensor) -> Tensor:
    """The same values, each moved on by one element: to a kernel that reads them they are still plausible."""
    return tensor.reshape(-1).roll(1).reshape(tensor.shape)


def _other_than(answer: Tensor) -> Tensor:
    """A tensor of the shape and type of ``answer`` that differs from it in every element.

    It is finite, since a kernel may multiply by zero what it overwrites.
    """
    import torch

    if answer.dtype is torch.bool:
        return ~answer
    if not (answer.is_floating_point() or answer.is_complex()):
        return (answer.to(torch.int64) + 1).to(answer.dtype)  # PyTorch cannot add most unsigned types
    wide = answer.abs().to(torch.float64)
    finite = wide[torch.isfinite(wide)]
    largest = 2.0 * float(finite.max()) + 1.0 if finite.numel() else 1.0
    kind = answer.dtype if answer.is_floating_point() else answer.real.dtype
    most = torch.finfo(kind).max
    filled = torch.full(tuple(answer.shape), min(largest, most), dtype=torch.float64, device=answer.device)
    return torch.where(wide == filled, -filled, filled).to(answer.dtype)
