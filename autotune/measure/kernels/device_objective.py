"""Objectives that are kernels over tensors on a device: inputs, guarded outputs, an oracle, its clock."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from autotune.measure.gpu.apparatus import find_apparatus
from autotune.measure.gpu.monitor import SETTLING, UNSETTLED, Monitor
from autotune.measure.gpu.nvml import open_nvml
from autotune.measure.gpu.peaks import device_uuid, known_peaks
from autotune.measure.gpu.power_limit import UNKNOWN_SECONDS
from autotune.measure.gpu.tensors import (
    CheckedInputs,
    GuardedTensor,
    Tensor,
    copies,
    tensor_bytes,
    tensor_error,
)
from autotune.measure.gpu.timing import Apparatus, Caches, Timer, most_sets, plan, rough_seconds
from autotune.measure.kernels.kernel_objective import KernelObjective
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.kernels.roofline import Peaks, Roofline, roofline
from autotune.measure.objective import Context, Infeasible
from autotune.measure.readings import Sample

CHECKS = 3
"""How often a kernel is compared with its reference on a GPU: a missing barrier does not show every time."""

GAP_BYTES, MOST_GAPS = 2 << 20, 32
"""In each round of a finale tensors lie at other addresses, behind a gap of up to so many pages: a kernel
that is bound by memory takes up to a tenth longer in one process than in another (H100), but always the same
in one."""

_DEVICE = re.compile(r"cpu|cuda(:\d+)?")
"""The names that a workload may use for a device."""

_Set = tuple[Mapping[str, Tensor], Mapping[str, GuardedTensor]]
"""Inputs and outputs of one call."""


@dataclass
class _Round:
    """The tensors and timer with which one trial is read."""

    loaded: Any
    rng: np.random.Generator
    timer: Timer
    seconds: float
    """The rough time of a call."""
    roof: Roofline | None
    facts: dict[str, object]
    """Facts to store with the trial."""
    times: list[float] = field(default_factory=list)

    @property
    def batch_seconds(self) -> float:
        """The rough time between two marks."""
        return self.seconds * self.timer.plan.calls

    @property
    def reading_seconds(self) -> float:
        """The rough time of a reading."""
        return self.batch_seconds * self.timer.plan.batches

    @property
    def lasts(self) -> bool:
        """Whether a reading is already as long as the mean of many that is taken at the power limit."""
        return self.reading_seconds >= UNKNOWN_SECONDS


class DeviceObjective(KernelObjective):
    """Base class of kernels over ``torch`` tensors. Metrics: ``time`` (seconds a call) and ``error``.

    Where the workload has ``energy: true``, ``energy`` (joules a call) is a third one, on a GPU that counts
    energy; each reading then takes up to two seconds. For energy the calls of a reading, each with its own
    tensors, follow each other without a flush between: a small problem is in the cache by then.

    Subclasses define ``make_inputs`` (on :attr:`device`; :meth:`generator` makes PyTorch's from ``rng``),
    ``outputs``, ``reference`` (on whatever device) and ``call``, and may define ``work``. ``call`` uses
    PyTorch's current stream and may be captured in a CUDA graph, so it must neither wait for the device nor
    copy to the host. A baseline may be a :class:`~autotune.measure.kernels.library_call.LibraryCall`, which
    is not passed to ``call``.

    The workload may have ``device`` (``cuda:1``, of the GPUs that the process sees, which with ``measure:
    {gpus: 1}`` is only one; default: the first GPU, else the CPU) and ``caches``: ``cold`` (the default on a
    GPU: no input of a call is in a cache) or ``warm``.
    """

    device_facts: ClassVar[tuple[str, ...]] = ("device", "caches", "energy")
    """The facts of a workload about the device, to be part of a subclass's ``workload_facts``, if it has
    any."""

    caches: ClassVar[Caches | None] = None
    """The default of the fact ``caches``; ``None``: cold on a GPU, else warm."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        named = context.workload.get("device")
        if named is not None and not (isinstance(named, str) and _DEVICE.fullmatch(named)):
            raise Infeasible(f"device should be cpu, cuda or a GPU such as cuda:1, and is {named!r}")
        self._declared = context.choice("caches", ("cold", "warm"), default="")
        self._counts_energy = context.flag("energy")
        self._device: Any = None
        self._apparatus: Apparatus | None = None
        self._monitor: Monitor | None = None
        self._peaks: Peaks | None = None
        self._round: _Round | None = None

    # -- the device ----------------------------------------------------------------------------

    @property
    def device(self) -> Any:
        """The ``torch.device``. The first use of it loads PyTorch, but makes no context on a GPU."""
        if self._device is None:
            import torch

            named = self.context.workload.get("device") or ("cuda" if torch.cuda.is_available() else "cpu")
            device = torch.device("cuda:0" if named == "cuda" else named)  # PyTorch goes by number
            if device.type == "cuda" and 0 < (seen := torch.cuda.device_count()) <= device.index:
                raise Infeasible(
                    f"there is no {named}: the last GPU that this process sees is cuda:{seen - 1}; with "
                    "measure: {gpus: N} a worker sees its own alone, as cuda:0: CUDA_VISIBLE_DEVICES chooses"
                )
            self._device = device
        return self._device

    def require_gpu(self) -> None:
        """Raise :class:`Infeasible` where PyTorch sees no GPU, although the driver may see one."""
        if self.device.type != "cuda":
            raise Infeasible("PyTorch sees no GPU here to run it on: autotune doctor says what is missing")

    def generator(self, rng: np.random.Generator) -> Any:
        """A ``torch.Generator`` on the device, seeded from ``rng``."""
        import torch

        return torch.Generator(device=self.device).manual_seed(int(rng.integers(2**62)))

    @property
    def apparatus(self) -> Apparatus:
        """Events, flushes and graph capture on the device."""
        if self._apparatus is None:
            self._apparatus = find_apparatus(self.device)
        return self._apparatus

    @property
    def monitor(self) -> Monitor:
        """The monitor that warms the device up and watches it."""
        if self._monitor is None:
            uuid = device_uuid(self.device) if self.device.type == "cuda" else ""
            self._monitor = Monitor(open_nvml(uuid) if uuid else None)
        return self._monitor

    def stand_by(self) -> None:
        """On a GPU: make its context and the buffer that flushes its cache, open NVML, and measure its peaks.

        The reference is computed once, since the first call of a library takes a fifth of a second. In a
        re-measurement the last two are left out: other processes use the device, and the search has the
        peaks.
        """
        if self.device.type != "cuda":
            return
        self.apparatus.flush()
        self.apparatus.events.synchronise()
        self.monitor.company()
        if not self.final:
            self._roof()
            self.reference(self.make_inputs(np.random.default_rng(0)))
            self.apparatus.events.synchronise()

    # -- checking ------------------------------------------------------------------------------

    def _varied(self, facts: Mapping[str, Any]) -> Self:
        other = super()._varied(facts)
        other._device, other._apparatus = self.device, self.apparatus
        return other

    def _check(self, loaded: Any, rng: np.random.Generator) -> float:
        inputs = CheckedInputs(self.make_inputs(rng))
        self.constant_inputs = inputs.constant()
        expected = self.reference(copies(inputs.tensors))
        once = partial(self._check_once, inputs, expected, self._guarded())
        error = max(once(loaded) for _ in range(CHECKS if self.device.type == "cuda" else 1))
        self._provoke(loaded, once)
        return error

    def _check_once(
        self,
        inputs: CheckedInputs,
        expected: Mapping[str, Tensor],
        guarded: Mapping[str, GuardedTensor],
        loaded: Any,
    ) -> float:
        """The error of one call on ``inputs``."""
        for output in guarded.values():
            output.poison()
        self._answer(loaded, inputs.tensors, guarded)
        self.apparatus.events.synchronise()
        for name, output in guarded.items():
            output.verify(name)
        inputs.verify()
        errors = [self._error(name, output.tensor, expected) for name, output in guarded.items()]
        return max(errors, default=0.0)

    def _provoke(self, loaded: Any, once: Callable[[Any], float]) -> None:
        """Run variants that may show a hidden error. ``once`` checks what it is given on the same inputs."""

    def _call_unseen(self, loaded: Any, rng: np.random.Generator) -> None:
        self._answer(loaded, CheckedInputs(self.make_inputs(rng)).tensors, self._guarded())
        self.apparatus.events.synchronise()

    def _answer(
        self, loaded: Any, inputs: Mapping[str, Tensor], outputs: Mapping[str, GuardedTensor]
    ) -> bool:
        """One call whose answer is then in ``outputs``. Returns whether it had to be copied there."""
        tensors = {name: output.tensor for name, output in outputs.items()}
        if isinstance(loaded, LibraryCall):
            return loaded.answer(self, inputs, tensors)
        self.call(loaded, inputs, tensors)
        return False

    def _error(self, name: str, answer: Tensor, expected: Mapping[str, Tensor]) -> float:
        allowed = self._allowed(name, str(answer.dtype).removeprefix("torch."), expected)
        return tensor_error(name, answer, expected[name], allowed)

    def _guarded(self) -> dict[str, GuardedTensor]:
        return {
            name: GuardedTensor(shape, dtype, self.device) for name, (shape, dtype) in self.outputs().items()
        }

    # -- measuring -----------------------------------------------------------------------------

    def measure(self, loaded: Any, rng: np.random.Generator) -> Sample:
        """One reading, in seconds a call. Each ``rng`` has fresh inputs."""
        held = self._round
        fresh = held is None or held.loaded is not loaded or held.rng is not rng
        del held  # its tensors may go before the new ones come
        if fresh:
            self._begin(loaded, rng)
        assert self._round is not None
        this, monitor = self._round, self.monitor
        if self.device.type == "cuda" and (fresh or monitor.asleep):
            self._warm_up(this, settle=self.final)
        watch = monitor.watch_at_limit if monitor.at_limit and not this.lasts else monitor.watch
        watched = watch(partial(self._read_once, this))
        this.times.append(watched.seconds)
        values = {"time": watched.seconds, **self._energy(this)}
        facts = {**this.facts, **self._share(this)} | ({"throttled": watched.why} if watched.why else {})
        return Sample(values, watched.context, watched.discarded, facts)

    @property
    def warms_up(self) -> bool:
        """True on a GPU, which is warmed up for longer than caches take, above all after another entrant."""
        return bool(self.device.type == "cuda")

    @property
    def averaged(self) -> bool:
        """True at a GPU's power limit, where a reading takes 0.2 s, unless energy is counted."""
        if self.device.type != "cuda" or self._counts_energy:
            return False
        return self.monitor.window is not None

    @property
    def unsettled(self) -> float:
        """Above 0 on a GPU, whose first milliseconds say little: see :mod:`autotune.measure.gpu.monitor`."""
        return UNSETTLED if self.device.type == "cuda" else 0.0

    @property
    def shared_error(self) -> float:
        """Above 0 on a GPU that has not settled, or is at its power limit."""
        if self.device.type != "cuda":
            return 0.0
        return self.monitor.shared_error

    def settle(self, loaded: Any) -> bool:
        """Run it until the device is steady, unless that was done or the readings took as long anyway."""
        this = self._round
        if this is None or this.loaded is not loaded or self.monitor.settled:
            return False
        if len(this.times) * this.reading_seconds < SETTLING.least_seconds:
            self._warm_up(this, settle=True)
        else:
            self.monitor.settled = True
            if this.lasts or not self.monitor.at_limit:
                return False
        this.times.clear()
        return True

    def _warm_up(self, this: _Round, *, settle: bool) -> None:
        monitor, timer = self.monitor, this.timer
        this.facts |= monitor.company()  # first: it takes some milliseconds, in which the device rests
        monitor.warm_up(timer.batch, self.apparatus.events, this.batch_seconds, settle=settle)
        this.facts["warmed"] = round(monitor.warmed, 3)

    def _read_once(self, this: _Round) -> float:
        return this.timer.read(partial(self._bridge, this))

    def _bridge(self, this: _Round) -> None:
        self.monitor.bridge(this.timer.batch, this.batch_seconds, this.reading_seconds)

    def _energy(self, this: _Round) -> dict[str, float]:
        if not self._counts_energy:
            return {}
        timer = this.timer
        found = self.monitor.energy(timer.batch, self.apparatus.events.synchronise, this.batch_seconds)
        if found is None:
            this.facts["energy"] = "not known: this device does not count it, or too seldom for this run"
            return {}
        this.facts["energy"] = {"seconds": round(found.seconds, 3), "steps": found.steps}
        return {"energy": found.joules / timer.plan.calls, "power": found.watts}

    def _share(self, this: _Round) -> dict[str, object]:
        """How near the readings so far come to the peaks of the device."""
        if this.roof is None:
            return {}
        share = round(this.roof.share(statistics.median(this.times)), 4)
        return {"roofline": {"floor": this.roof.floor, "bound": this.roof.bound, "share": share}}

    def _roof(self) -> Roofline | None:
        work = self.work()
        if work is not None and self._peaks is None:
            self._peaks = known_peaks(self.device, self.apparatus, self.context.cache)
        return roofline(work, self._peaks) if work is not None and self._peaks is not None else None

    def _begin(self, loaded: Any, rng: np.random.Generator) -> None:
        """Make a new round: fresh tensors, and a timer for them."""
        self.apparatus.events.synchronise()  # the device may still do the work that bridges a pause
        earlier, self._round = self._round, None
        known = earlier.seconds if earlier is not None and earlier.loaded is loaded else 0.0
        del earlier  # its tensors may go before the new ones come
        if self.final:
            self.apparatus.relocate(int(rng.integers(1, MOST_GAPS)) * GAP_BYTES)
        roof = self._roof()  # first: the probe takes much memory, and its random numbers no failed capture
        sets: list[_Set] = [(self.make_inputs(rng), self._guarded())]
        seconds = known or rough_seconds(self.apparatus, self._bind(loaded, *sets[0]))
        timer = self._timer(loaded, rng, sets, seconds)
        if not known and (launched_together := timer.read()) < 0.5 * seconds:
            seconds = launched_together  # launching one by one had taken longer than running
            timer = self._timer(loaded, rng, sets, seconds)
        self._round = _Round(loaded, rng, timer, seconds, roof, {"timing": timer.describe()})

    def _timer(self, loaded: Any, rng: np.random.Generator, sets: list[_Set], seconds: float) -> Timer:
        """A timer of a kernel of about ``seconds``; adds as many sets of tensors as its plan asks for."""
        inputs, outputs = sets[0]
        size = tensor_bytes(inputs) + tensor_bytes({name: o.tensor for name, o in outputs.items()})
        caches = self._caches()
        most = most_sets(size, self.apparatus.free_bytes(), caches)
        chosen = plan(seconds, most, caches, self.apparatus.events.resolution)
        while len(sets) < chosen.sets:
            sets.append((self.make_inputs(rng), self._guarded()))
        calls = [self._bind(loaded, *one) for one in sets[: chosen.sets]]
        return Timer(self.apparatus, calls, chosen, caches, partial(self._replayed, loaded, sets[0]))

    def _bind(self, loaded: Any, inputs: Mapping[str, Tensor], outputs: Mapping[str, GuardedTensor]) -> Any:
        tensors = {name: output.tensor for name, output in outputs.items()}
        if isinstance(loaded, LibraryCall):
            return partial(loaded.run, self, inputs, tensors)
        return partial(self.call, loaded, inputs, tensors)

    def _replayed(self, loaded: Any, one: _Set, replay: Any) -> str:
        """What is wrong if replaying a graph writes no output: work on other streams is not in it."""
        inputs, outputs = one
        for output in outputs.values():
            output.poison()
        replay()
        self.apparatus.events.synchronise()
        untouched = any(output.untouched() for output in outputs.values())
        if untouched and not self._answer(loaded, inputs, outputs):
            return "replaying its CUDA graph writes no output: does it launch on the current stream?"
        return ""

    def _caches(self) -> Caches:
        declared = self._declared or self.caches or ("cold" if self.device.type == "cuda" else "warm")
        return "warm" if declared == "warm" else "cold"
