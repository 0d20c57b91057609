"""Where a search measures: lanes, each with cores of its own and, where one is wanted, a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from autotune.measure.cores.pinning import Cores
from autotune.measure.cores.turns import Place, Turn, find_place
from autotune.measure.gpu.claims import VISIBLE, GpuClaim, find_gpus
from autotune.provenance.device import query_gpus
from autotune.provenance.host.gpus import GpuState, read_gpus
from autotune.space.spec import MeasureSettings


@dataclass(frozen=True)
class Lane:
    """A place where one measurement runs at a time. Close it in the end."""

    place: Place
    gpu: GpuClaim | None = None

    @property
    def turn(self) -> Turn:
        return self.place.turn

    @property
    def shared(self) -> bool:
        """Whether other searches measure here as well."""
        return self.place.cores.shared or (self.gpu is not None and self.gpu.shared)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the workers that measure here."""
        return {} if self.gpu is None else {VISIBLE: self.gpu.visible}

    @property
    def facts(self) -> Mapping[str, object]:
        """What is recorded with a trial that was measured here."""
        return {} if self.gpu is None else {"gpu": self.gpu.key}

    def close(self) -> None:
        self.place.close()
        if self.gpu is not None:
            self.gpu.close()


def find_lanes(settings: MeasureSettings) -> tuple[Lane, ...]:
    """A lane for each GPU that is wanted and exists; a single one without a GPU if there is none."""
    gpus = find_gpus(settings.gpus, query_gpus()) if settings.gpus else ()
    if not gpus:
        return (Lane(find_place(settings.cores)),)
    lanes: list[Lane] = []
    with ExitStack() as failed:  # if one lane cannot be had, or the user interrupts, the others are released
        for gpu in gpus:
            failed.callback(gpu.close)
        for gpu in gpus:
            lanes.append(Lane(find_place(settings.cores, gpu=gpu.key), gpu))
            failed.callback(lanes[-1].close)
        failed.pop_all()
    return tuple(lanes)


def cores_of(lanes: Sequence[Lane]) -> Cores:
    """The cores on which any of the lanes measures, and those to prepare on beside them."""
    measuring = {core for lane in lanes for core in lane.place.cores.measuring}
    first = lanes[0].place.cores.preparing
    preparing = [core for core in first if core not in measuring] or first
    shared = any(lane.place.cores.shared for lane in lanes)
    return Cores(tuple(sorted(measuring)), tuple(preparing), shared)


def remark_on(lanes: Sequence[Lane], settings: MeasureSettings) -> str:
    """What the user should know about the cores and GPUs; empty if all are as asked for."""
    remarks = []
    if len(cores := lanes[0].place.cores.measuring) < settings.cores:
        usable = f"{len(cores)} {'core' if len(cores) == 1 else 'cores'}"
        remarks.append(
            f"measure.cores is {settings.cores}, and no more than {usable} can be used here: what is measured"
            " holds for that"
        )
    remarks += [lane.place.remark for lane in lanes[:1] if lane.place.remark]
    claims = [lane.gpu for lane in lanes if lane.gpu is not None]
    if settings.gpus and not claims:
        remarks.append("there is no GPU here: the objective measures without one, if it can")
    if any(claim.shared for claim in claims):
        remarks.append("other searches measure on every GPU: this one takes turns with them")
    if claims:
        remarks += strangers(claims, *_states())
    return "; ".join(remarks)


def strangers(
    claims: Sequence[GpuClaim], uuids: Sequence[str | None], states: Sequence[GpuState]
) -> list[str]:
    """Remarks on GPUs that processes other than searches are using."""
    said = []
    for claim in claims:
        for uuid, state in zip(uuids, states, strict=True):
            if uuid == claim.key and state.processes and not claim.shared:
                use = "" if state.utilization is None else f", in use {state.utilization} % of the time"
                count = f"{state.processes} other process{'es' if state.processes > 1 else ''}"
                said.append(f"{claim.name} ({claim.key}) has {count} on it{use}: readings may be disturbed")
    return said


def _states() -> tuple[list[str | None], list[GpuState]]:
    gpus, states = read_gpus()
    by_index = {device.index: device.uuid for device in gpus.devices}
    return [by_index.get(state.index) for state in states], list(states)
