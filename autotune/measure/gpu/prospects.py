"""What GPU work is possible on this machine, what is missing for the rest, and how to get it.

Everything is tried, nothing is assumed. What needs PyTorch or Triton is tried in other processes
(:mod:`autotune.measure.gpu.probing`), so that this one makes no context on a GPU.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.measure.gpu import probing
from autotune.measure.gpu.cuda_compiler import CudaCompiler, architecture, find_compiler, options, package
from autotune.measure.gpu.driver import served_major
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.provenance.device import query_gpus
from autotune.provenance.host.gpus import Gpus, GpuState, read_gpus
from autotune.provenance.probe import Capability

SECONDS = 120.0
"""The longest wait for a process; PyTorch alone can take half a minute to load from a cold disk."""

DRIVER, TORCH, TRITON, COMPILER = "nvidia driver", "torch on the GPU", "triton", "CUDA compiler"
INTERPRETER, EMULATOR = "triton interpreter", "CUDA emulator"
CLOCKS = "clocks and power"
REQUIRED = (DRIVER, TORCH)
"""Without these nothing can be measured on a GPU."""

_KERNEL = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }'
_ELSEWHERE = "sm_90"
"""What to compile for where there is no GPU."""

Steps = Mapping[str, tuple[bool, str]]
"""For each step of a probing process: whether it works, and the detail."""


def prospects() -> tuple[Capability, ...]:
    """Try everything. Takes some seconds where PyTorch is installed."""
    gpus, states = read_gpus()
    seen = query_gpus()
    on_device = _begin("device") if _installed("torch") and seen else None
    interpreted = _begin("interpreter") if _installed("torch") and _installed("triton") else None
    device = _end(on_device) if on_device else None
    emulated = _end(interpreted) if interpreted else {}
    return (
        driver(gpus, len(seen)),
        *devices(gpus, states),
        clocks(gpus, states),
        torch_on_gpu(device),
        graph(device or {}),
        triton(device or {}),
        interpreter(emulated),
        cuda_compiler(served_major(), _architecture(seen)),
        cupy(),
        emulator(),
    )


# -- the driver and its devices --------------------------------------------------------------------


def driver(gpus: Gpus, seen: int) -> Capability:
    """The driver, and how many GPUs CUDA sees through it; its management library may be missing."""
    needed = "measuring on a GPU at all"
    if gpus.devices and seen:
        return Capability(DRIVER, True, f"{gpus.driver}, serves CUDA {gpus.cuda}, {seen} visible", needed)
    if seen:
        return Capability(DRIVER, True, f"{seen} visible to CUDA, but {gpus.problem}", needed)
    if gpus.devices:
        remedy = "unset CUDA_VISIBLE_DEVICES, or restart the container with --gpus all"
        return Capability(DRIVER, False, f"{gpus.driver}, but CUDA sees none of its GPUs", needed, remedy)
    remedy = "a machine with an NVIDIA GPU and its driver, where nvidia-smi lists it"
    return Capability(DRIVER, False, "CUDA sees no GPU", needed, remedy)


def devices(gpus: Gpus, states: Sequence[GpuState]) -> list[Capability]:
    """Each GPU, and who is using it."""
    by_index = {state.index: state for state in states}
    found = []
    for gpu in gpus.devices:
        state = by_index.get(gpu.index)
        memory = f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "memory unknown"
        detail = f"{gpu.name}, {memory}, compute capability {gpu.compute_capability}{_use(state)}"
        busy = bool(state and (state.processes or (state.utilization or 0) > 0))
        remedy = "nvidia-smi shows whose they are; wait for them, or take another by CUDA_VISIBLE_DEVICES"
        needed = "readings that others do not disturb"
        found.append(Capability(f"GPU {gpu.index}", not busy, detail, needed, remedy if busy else ""))
    return found


def _use(state: GpuState | None) -> str:
    if state is None or state.processes is None:
        return "; who uses it is not known"
    if not state.processes and not state.utilization:
        return "; nobody uses it"
    many = "1 process" if state.processes == 1 else f"{state.processes} processes"
    return f"; {many} on it, in use {state.utilization or 0} % of the time"


def clocks(gpus: Gpus, states: Sequence[GpuState]) -> Capability:
    """Whether clocks, power and throttle reasons can be read."""
    needed = "discarding throttled readings, energy as a metric"
    if not states:
        remedy = f"see {DRIVER}" if _installed("pynvml") else "pip install nvidia-ml-py"
        return Capability(CLOCKS, False, gpus.problem, needed, remedy)
    kinds: dict[str, list[float | int | None]] = {
        "SM clock": [s.sm_clock_mhz for s in states],
        "temperature": [s.temperature_c for s in states],
        "power": [s.power_watts for s in states],
        "throttle reasons": [s.throttle_reasons for s in states],
    }
    missing = [kind for kind, values in kinds.items() if None in values]
    if missing:
        detail = f"the driver does not report: {', '.join(missing)}"
        remedy = "in a container: --gpus all,capabilities=utility; in a virtual machine ask its host"
        return Capability(CLOCKS, False, detail, needed, remedy)
    first, reasons = states[0], states[0].throttle_reasons or 0
    detail = f"SM {first.sm_clock_mhz} MHz, {first.temperature_c} °C, {first.power_watts:.0f} W"
    detail += f", throttle reasons {reasons:#x}"
    return Capability(CLOCKS, True, detail, needed)


# -- PyTorch and Triton ------------------------------------------------------------------------


def torch_on_gpu(device: Steps | None) -> Capability:
    """What came of trying it; ``None`` where it was not tried, as there is no GPU."""
    needed = "timing by events, inputs and oracles on the GPU"
    remedy = "pip install torch, in a build for this driver's CUDA: pytorch.org says which"
    if not _installed("torch"):
        return Capability(TORCH, False, "PyTorch is not installed", needed, remedy)
    if device is None:
        detail = f"torch {_version('torch')}, but no GPU to run on"
        return Capability(TORCH, False, detail, needed, f"see {DRIVER}")
    works, detail = device.get("torch", (False, "its process gave no answer"))
    return Capability(TORCH, works, detail, needed, "" if works else remedy)


def graph(device: Steps) -> Capability:
    needed = "kernels shorter than their launch"
    works, detail = device.get("graph", (False, "not tried: PyTorch does not work on a GPU here"))
    remedy = "" if works else "a newer driver and PyTorch; without it short kernels are launched one by one"
    return Capability("graph capture", works, detail, needed, remedy)


def triton(device: Steps) -> Capability:
    """On a GPU whether it runs a kernel; without one whether it can compile for GPUs that are elsewhere."""
    needed = "objectives triton-*; without a GPU: compiling only"
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return Capability(TRITON, False, "not installed", needed, "pip install torch triton")
    if "triton" in device:
        works, detail = device["triton"]
        remedy = "" if works else "it needs a C compiler and Python's headers: apt install gcc python3-dev"
        return Capability(TRITON, works, detail, needed, remedy)
    assembler = sorted(Path(spec.origin).parent.glob("backends/nvidia/bin/ptxas*"))
    detail = f"{_version('triton')}, {'with its own ptxas' if assembler else 'without ptxas'}"
    remedy = "" if assembler else "pip install --force-reinstall triton"
    return Capability(TRITON, bool(assembler), detail, needed, remedy)


def interpreter(emulated: Steps) -> Capability:
    """Run a kernel in Triton's interpreter. Some releases cannot do it with the newest numpy."""
    needed = "answers of triton-* without a GPU"
    remedy = 'pip install "triton>=3.7.1", or "numpy<2.4" for triton 3.6'
    if not (_installed("torch") and _installed("triton")):
        absent = " and ".join(name for name in ("torch", "triton") if not _installed(name))
        return Capability(INTERPRETER, False, f"{absent} not installed", needed, "pip install torch triton")
    works, detail = emulated.get("interpreter", (False, "its process gave no answer"))
    return Capability(INTERPRETER, works, detail, needed, "" if works else remedy)


# -- CUDA C ------------------------------------------------------------------------------------


def cuda_compiler(newest: int | None, wanted: str = _ELSEWHERE) -> Capability:
    """Compile a kernel for the architecture ``wanted``; ``newest``: the CUDA that the driver serves."""
    needed = "objectives cuda-*; without a GPU: compiling only"
    remedy = f"pip install {package(newest)}"
    try:
        compiler: CudaCompiler | None = find_compiler(newest)
        if compiler is None:
            served = "" if newest is None else f" as old as the driver, which serves CUDA {newest}"
            return Capability(COMPILER, False, f"neither NVRTC nor nvcc is here{served}", needed, remedy)
        identity = compiler.identity.splitlines()[0]
    except (CompilerRefusal, OSError) as error:
        return Capability(COMPILER, False, str(error)[:300], needed, remedy)
    try:
        cubin, _ = compiler.compile(_KERNEL, "twice.cu", options(wanted, {}))
    except (CompilerRefusal, OSError) as error:
        detail = f"{identity} does not compile for {wanted}: {' '.join(str(error).split())}"[:300]
        remedy = f"a release of CUDA's compiler that knows {wanted}, in place of this one"
        return Capability(COMPILER, False, detail, needed, remedy)
    return Capability(COMPILER, True, f"{identity}: {len(cubin)} bytes for {wanted}", needed)


def cupy() -> Capability:
    needed = "your own kernels written with CuPy; nothing here needs it"
    for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        if version := _version(name):
            return Capability("cupy", True, f"{name} {version}", needed)
    return Capability("cupy", False, "not installed", needed, "pip install cupy-cuda13x")


def emulator() -> Capability:
    needed = "answers of cuda-* without a GPU"
    missing = [] if shutil.which("g++") else ["g++"]
    missing += [] if _installed("torch") else ["torch"]
    remedies = {"g++": "apt install g++", "torch": "pip install torch"}
    if missing:
        remedy = " && ".join(remedies[name] for name in missing)
        return Capability(EMULATOR, False, f"{' and '.join(missing)} missing", needed, remedy)
    return Capability(EMULATOR, True, "g++ and PyTorch", needed)


# -- helpers -----------------------------------------------------------------------------------


def _begin(what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", probing.__file__, what],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _end(process: subprocess.Popen[str]) -> Steps:
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return read_steps(said)


def read_steps(said: str) -> Steps:
    """The steps in the output of a probing process; other lines are ignored."""
    steps = {}
    for line in said.splitlines():
        try:
            found = json.loads(line)
            steps[str(found["step"])] = (bool(found["works"]), str(found["detail"]))
        except (ValueError, KeyError, TypeError):
            continue
    return steps


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _architecture(seen: Sequence[Mapping[str, object]]) -> str:
    """That of the first GPU, which a search measures on; releases of the compiler do not know every GPU."""
    if not seen or "major" not in seen[0]:
        return _ELSEWHERE
    return architecture(float(f"{seen[0]['major']}.{seen[0].get('minor', 0)}"))
