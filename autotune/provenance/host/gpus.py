"""NVIDIA GPUs as the driver's management library (NVML) sees them: what they are and how they stand.

The library answers without touching the devices. Where the package, the driver or a single answer
is missing, that is ``None``; nothing here needs a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from autotune.provenance.document import Documented


@dataclass(frozen=True)
class Gpu(Documented):
    """One GPU: identity and settings, nothing that changes by itself. ``None`` is unknown."""

    index: int
    name: str
    uuid: str | None
    memory_bytes: int | None
    compute_capability: str | None
    vbios: str | None
    pci_link: str | None
    """Highest generation and width of the link, such as ``gen5 x16``."""
    power_limit_watts: float | None
    power_default_watts: float | None
    application_clock_mhz: int | None
    """SM clock that applications are set to; ``None`` where the device has no such setting."""
    maximum_clock_mhz: int | None
    persistence: bool | None
    ecc: bool | None
    mig: bool | None


@dataclass(frozen=True)
class GpuState(Documented):
    """How a GPU stands at one moment."""

    index: int
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_watts: float | None
    utilization: int | None
    """Per cent of the last sample period in which a kernel ran."""
    memory_used_bytes: int | None
    throttle_reasons: int | None
    """NVML's bit mask; 0 and 1 (idle) are harmless."""
    processes: int | None
    """Compute processes on the device."""


@dataclass(frozen=True)
class Gpus(Documented):
    """The driver and its GPUs. ``problem`` says why there are none to see."""

    driver: str | None = None
    cuda: str | None = None
    """The newest CUDA version that the driver supports."""
    devices: tuple[Gpu, ...] = ()
    problem: str = ""


def read_gpus() -> tuple[Gpus, tuple[GpuState, ...]]:
    """Every GPU that NVML shows, and how each stands now."""
    try:
        import pynvml
    except ImportError:
        return Gpus(problem="the package nvidia-ml-py is not installed"), ()
    try:
        with _session(pynvml):
            return _read(pynvml)
    except pynvml.NVMLError as error:
        return Gpus(problem=f"no NVIDIA driver: {error}"), ()


@contextmanager
def _session(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _read(nvml: Any) -> tuple[Gpus, tuple[GpuState, ...]]:
    version = _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    count = _ask(nvml, "nvmlDeviceGetCount") or 0
    handles = [(index, _ask(nvml, "nvmlDeviceGetHandleByIndex", index)) for index in range(count)]
    visible = [(index, handle) for index, handle in handles if handle is not None]
    gpus = Gpus(
        driver=_text(_ask(nvml, "nvmlSystemGetDriverVersion")),
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else None,
        devices=tuple(_device(nvml, index, handle) for index, handle in visible),
        problem="" if visible else "the NVIDIA driver sees no GPU",
    )
    return gpus, tuple(_state(nvml, index, handle) for index, handle in visible)


def _device(nvml: Any, index: int, handle: Any) -> Gpu:
    def ask(question: str, *arguments: Any) -> Any:
        return _ask(nvml, question, handle, *arguments)

    memory = ask("nvmlDeviceGetMemoryInfo")
    capability = ask("nvmlDeviceGetCudaComputeCapability")
    generation, width = ask("nvmlDeviceGetMaxPcieLinkGeneration"), ask("nvmlDeviceGetMaxPcieLinkWidth")
    ecc, mig = ask("nvmlDeviceGetEccMode"), ask("nvmlDeviceGetMigMode")
    persistence = ask("nvmlDeviceGetPersistenceMode")
    return Gpu(
        index=index,
        name=_text(ask("nvmlDeviceGetName")) or "unknown",
        uuid=_text(ask("nvmlDeviceGetUUID")),
        memory_bytes=int(memory.total) if memory else None,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        vbios=_text(ask("nvmlDeviceGetVbiosVersion")),
        pci_link=f"gen{generation} x{width}" if generation and width else None,
        power_limit_watts=_watts(ask("nvmlDeviceGetPowerManagementLimit")),
        power_default_watts=_watts(ask("nvmlDeviceGetPowerManagementDefaultLimit")),
        application_clock_mhz=ask("nvmlDeviceGetApplicationsClock", nvml.NVML_CLOCK_SM),
        maximum_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        persistence=None if persistence is None else bool(persistence),
        ecc=bool(ecc[0]) if ecc else None,
        mig=bool(mig[0]) if mig else None,
    )


def _state(nvml: Any, index: int, handle: Any) -> GpuState:
    def ask(question: str, *arguments: Any) -> Any:
        return _ask(nvml, question, handle, *arguments)

    memory, use = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
    processes = ask("nvmlDeviceGetComputeRunningProcesses_v3")
    return GpuState(
        index=index,
        sm_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        power_watts=_watts(ask("nvmlDeviceGetPowerUsage")),
        utilization=int(use.gpu) if use else None,
        memory_used_bytes=int(memory.used) if memory else None,
        throttle_reasons=ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
        processes=None if processes is None else len(processes),
    )


def _ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """The answer, or ``None`` where this package, driver or device does not give one."""
    function = getattr(nvml, question, None)
    try:
        return None if function is None else function(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: object) -> str | None:
    """Older releases of the package answer in bytes."""
    return (
        value.decode(errors="replace") if isinstance(value, bytes) else None if value is None else str(value)
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
