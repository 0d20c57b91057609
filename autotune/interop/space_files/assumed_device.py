"""The device that a source which is not run is read for: a GPU of NVIDIA's Hopper generation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Target:
    """What Triton says of the device that it compiles for."""

    PUBLIC: ClassVar[tuple[str, ...]] = ("backend", "arch", "warp_size")

    backend: str = "cuda"
    arch: int = 90
    warp_size: int = 32


@dataclass(frozen=True)
class Properties:
    """What PyTorch says of a device, as far as it is the same in a generation."""

    PUBLIC: ClassVar[tuple[str, ...]] = ("major", "minor", "warp_size")

    major: int = 9
    minor: int = 0
    warp_size: int = 32


@dataclass(frozen=True)
class Installed:
    """A package that is there: of what is in it nothing is said."""

    name: str


DEVICE: Mapping[str, object] = {
    **dict.fromkeys(("has_triton", "is_cuda", "is_nvidia", "check_shared_mem"), True),
    **dict.fromkeys(("is_hopper", "is_nvidia_hopper", "is_sm90", "is_nvidia_sm90"), True),
    **dict.fromkeys(("is_hip", "is_rocm", "is_amd", "is_xpu", "is_intel", "is_npu"), False),
    **dict.fromkeys(("is_blackwell", "is_nvidia_blackwell", "is_sm100", "is_nvidia_sm100"), False),
    "is_intel_alchemist": False,
    "torch.cuda.is_available": True,
    "get_device_capability": (9, 0),
    "get_device_properties": Properties(),
    "get_current_target": Target(),
}
"""Functions by which sources tell devices apart, and what they answer there.
Flags that a source imports are called so as well, in small letters or in capitals."""

BUILD: Mapping[str, str | None] = {
    "torch.version.cuda": "12.8",
    **dict.fromkeys(("torch.version.hip", "torch.version.rocm", "torch.version.xpu"), None),
}
"""What PyTorch says of what it was built for."""

PACKAGES = ("torch", "triton", "tl")
"""Names for packages without which there is no kernel."""
