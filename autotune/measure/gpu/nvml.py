"""One GPU through NVIDIA's management library, asked while something is measured on it.

The library only reads what the driver knows; nothing is launched. Where the package (nvidia-ml-py), the
driver or a single answer is missing, that is ``None``, and a measurement goes on without it.
"""

from __future__ import annotations

from typing import Any

from autotune.measure.gpu.conditions import Conditions


class Nvml:
    """What NVML says of one device. The library stays open: a process that measures asks until it ends."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle

    def conditions(self) -> Conditions:
        """How the device stands now."""
        library, ask = self._library, self._ask
        reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # releases before 12.4
            reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        milliwatts = ask("nvmlDeviceGetPowerUsage")
        return Conditions(
            sm_clock_mhz=ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_SM),
            memory_clock_mhz=ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_MEM),
            temperature_c=ask("nvmlDeviceGetTemperature", library.NVML_TEMPERATURE_GPU),
            power_watts=None if milliwatts is None else milliwatts / 1000,
            throttle_reasons=reasons,
        )

    def joules(self) -> float | None:
        """Energy that the device has used since its driver was loaded."""
        millijoules = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1000

    def limit_watts(self) -> float | None:
        """How much the device may draw."""
        milliwatts = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        return None if milliwatts is None else milliwatts / 1000

    def others(self) -> int | None:
        """How many processes have a context on the device, besides this one, which must have one.

        They are only counted: in a container their process ids are those outside of it.
        """
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return None if processes is None else max(0, len(processes) - 1)

    def utilisation(self) -> int | None:
        """Per cent of the last sample period (up to a second) in which some kernel ran."""
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        return None if rates is None else int(rates.gpu)

    def _ask(self, question: str, *arguments: Any) -> Any:
        function = getattr(self._library, question, None)
        try:
            return None if function is None else function(self._handle, *arguments)
        except self._library.NVMLError:
            return None


def open_nvml(uuid: str) -> Nvml | None:
    """The device of that UUID (``GPU-...``), as CUDA and NVML number devices differently; else ``None``."""
    try:
        import pynvml
    except ImportError:
        return None
    return open_device(pynvml, uuid)


def open_device(library: Any, uuid: str) -> Nvml | None:
    """As :func:`open_nvml`, of a library that is there."""
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    for name in (uuid, uuid.encode()):  # older releases want bytes
        try:
            return Nvml(library, library.nvmlDeviceGetHandleByUUID(name))
        except (library.NVMLError, TypeError, AttributeError):
            continue
    library.nvmlShutdown()
    return None
