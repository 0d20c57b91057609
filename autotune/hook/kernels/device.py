"""Where a launch goes: to which device, to Triton's interpreter, into a graph. PyTorch is imported lazily."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

INTERPRETER = "Triton's interpreter"
"""The name in the place of a device's, since times in the interpreter say nothing about a GPU."""


def is_interpreted(function: Any) -> bool:
    """Whether Triton's interpreter runs it."""
    while function is not None and not inspect.isfunction(function):
        if type(function).__name__ == "InterpretedFunction":
            return True
        function = getattr(function, "fn", None)
    return False


def device_name(tensor: Any) -> str:
    """What the driver calls the device that ``tensor`` is on."""
    import torch

    if tensor is not None and tensor.device.type != "cuda":
        return str(tensor.device.type)
    if tensor is None and not torch.cuda.is_available():
        return "cpu"
    name: str = torch.cuda.get_device_name(None if tensor is None else tensor.device)
    return name


def several_devices() -> bool:
    """Whether this process sees more than one GPU."""
    import torch

    return bool(torch.cuda.device_count() > 1)


def device_index(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
    """The index of the device that the first tensor among the arguments is on."""
    for value in (*args, *kwargs.values()):
        if hasattr(value, "get_device"):
            index: int = value.get_device()
            return index
    return None


def is_capturing() -> bool:
    """Whether a CUDA graph is being captured; a search would be captured too."""
    import torch

    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
