"""The workers of a search: which there are, where they run, and waiting for any of them."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from autotune.measure.cores.turns import LOOK_AGAIN_SECONDS
from autotune.measure.objective import Baseline, Context
from autotune.measure.ownership import make_scratch
from autotune.measure.reports import whole_run
from autotune.measure.workers.limits import sweep_groups
from autotune.measure.workers.messages import Setup
from autotune.session.execution.entrant import WorkerEntrant, enter_together
from autotune.session.execution.executor import Entrant, nothing
from autotune.session.execution.flight import Flight
from autotune.session.execution.lane import Lane, cores_of, find_lanes, remark_on
from autotune.session.execution.slot import MEASURE, PREPARE, Slot, WorkerFactory
from autotune.space.configuration import Configuration, Value
from autotune.space.spec import StudySpec

MOST_PREPARERS = 8

SPARE = 2
"""Trials that wait, prepared, for the measuring worker. Times of preparing and measuring vary: simulated,
with a preparer as fast as the measuring worker, 0, 1, 2, 3 and 8 spare ones take 0.74, 0.67, 0.64, 0.61 and
0.58 of the time without overlap. But each is proposed before one more result is known."""

STOOD_STILL_SECONDS = 2.0
"""A session that wakes up so much later than it asked to was itself stopped (Ctrl-Z, a frozen container),
and perhaps its workers too: that time does not count for their limits."""


def _setup(spec: StudySpec, device: Mapping[str, Value], compiled: Path | None) -> Setup:
    """What each worker is told, with a new folder for what they compile."""
    scratch = make_scratch(spec.name)
    context = Context(spec.workload, device, scratch, spec.search.seed, compiled, spec.space.ruled)
    return Setup(
        spec.objective,
        context,
        spec.metrics,
        spec.measure,
        tuple(knob.name for knob in spec.space.knobs),
        curve=whole_run(spec),
        share=spec.budget.share,
    )


class Crew:
    """Slots for workers that prepare, and one that measures in each lane. Close it in the end.

    For the parameters see :class:`~autotune.session.execution.workers.WorkerExecutor`.
    """

    def __init__(
        self,
        spec: StudySpec,
        device: Mapping[str, Value],
        prepare_workers: int | None = None,
        compiled: Path | None = None,
        lanes: tuple[Lane, ...] | None = None,
        meanwhile: Callable[[], object] = nothing,
    ) -> None:
        sweep_groups()
        self._spec = spec
        self.measurers: list[Slot[Flight]] = []
        self.preparers: list[Slot[Flight]] = []
        self._entrants: list[WorkerEntrant] = []
        self._renewed = False
        self._closing = ExitStack()
        self._lanes = find_lanes(spec.measure) if lanes is None else lanes
        with ExitStack() as failed:
            failed.callback(self.close)
            for lane in self._lanes:
                self._closing.callback(lane.close)
            self.cores = cores_of(self._lanes)
            self.remark = remark_on(self._lanes, spec.measure)
            self._factory = WorkerFactory(_setup(spec, device, compiled), self.cores)
            self._closing.callback(self._factory.close)
            self.measurers += [
                Slot[Flight](
                    self._factory,
                    lane.place.cores.measuring,
                    MEASURE,
                    lane.environment,
                    stands_by=not lane.shared,  # it would not wait for its turn
                )
                for lane in self._lanes
            ]
            usual = min(len(self.cores.preparing), MOST_PREPARERS)
            count = max(usual if prepare_workers is None else prepare_workers, 1)
            seen = self._lanes[0].environment
            self.preparers += [Slot(self._factory, self.cores.preparing, PREPARE, seen) for _ in range(count)]
            self.measurers[0].fill()
            if self._lanes[0].gpu is not None:
                # What is tuned on a GPU mostly has a large library to load, and something to compile.
                for slot in self.preparers:
                    slot.fill()
            meanwhile()
            self.ready = self.measurers[0].ready()
            failed.pop_all()
        if not self.ready.prepares:
            for slot in self.preparers:
                slot.stop()
            self.preparers = []

    def baselines(self) -> tuple[Baseline, ...]:
        """Those of the source as it is now. No trial may be in flight where that has changed."""
        if self._renewed:
            self.measurers[0].stop()
            self.measurers[0].fill()
            self.ready, self._renewed = self.measurers[0].ready(), False
        return self.ready.baselines

    @property
    def slots(self) -> list[Slot[Flight]]:
        return [*self.measurers, *self.preparers]

    @property
    def measuring(self) -> Iterable[tuple[Lane, Slot[Flight]]]:
        return zip(self._lanes, self.measurers, strict=True)

    @property
    def busy(self) -> bool:
        return any(slot.job for slot in self.slots)

    @property
    def capacity(self) -> int:
        """How many trials are worth having in flight.

        One is measured in each lane, and one prepared by each preparer. With nothing to prepare, the next one
        waits, so that the measuring core does not stand idle while the session thinks.
        """
        count = len(self.preparers)
        return len(self._lanes) + (count + SPARE if count else 1)

    def number_of(self, slot: Slot[Flight]) -> int:
        """Its number among those of its role."""
        return (self.preparers if slot.role == PREPARE else self.measurers).index(slot)

    def facts_of(self, slot: Slot[Flight]) -> Mapping[str, object] | None:
        """Of the lane in which it measures; ``None`` where it prepares."""
        return self._lanes[self.measurers.index(slot)].facts if slot in self.measurers else None

    def wait(self, seconds: float, *, for_turn: bool) -> None:
        """Wait until a worker sends something or passes its deadline, for up to ``seconds``.

        ``for_turn``: look again soon, since another search may end its turn and tells nobody.
        """
        poll = select.poll()
        deadlines = [time.monotonic() + (LOOK_AGAIN_SECONDS if for_turn else seconds)]
        for slot in self.slots:
            if slot.worker is not None:
                slot.worker.watch(poll)
                deadlines.append(slot.worker.deadline)
            if (due := slot.look()) is not None:
                deadlines.append(time.monotonic() + due)
        began = time.monotonic()
        wait = max(0.0, min(deadlines) - began)
        poll.poll(wait * 1000 + 1)
        late = time.monotonic() - began - wait
        if late > STOOD_STILL_SECONDS:
            for slot in self.slots:
                if slot.worker is not None:
                    slot.worker.forgive(late)

    def entrants(self, wanted: Sequence[Configuration | Baseline], run: int = 0) -> list[Entrant]:
        """Their processes start side by side, since each takes seconds where it loads a large library.

        They also prepare side by side where they are not pinned: on one core, each would take as long as all
        together. For the same reason they load and check side by side only on a GPU: elsewhere checks need
        the cores.
        """
        lane = self._lanes[0]  # the same for all, so that they can be compared
        cores, turn = lane.place.cores.measuring, lane.turn
        made = [self._entrant(what, lane, run) for what in wanted]
        with turn.taken():  # starting uses the measuring cores, as entering does
            for entrant in made:
                entrant.start()
            for entrant in made:
                entrant.wait()
            for entrant in made:
                entrant.stand_by()
            if self.ready.stands_by:
                self.measurers[0].give_way()
            if not cores:
                for entrant in made:
                    entrant.begin()
            if lane.gpu is not None and not cores:
                enter_together(made)
        for entrant in made:
            if entrant.outside:
                with turn.taken():
                    entrant.enter()
        return list(made)

    def together(self) -> AbstractContextManager[None]:
        """Keep the turn between readings of entrants, inside the block."""
        return self._lanes[0].turn.kept()

    def _entrant(self, what: Configuration | Baseline, lane: Lane, run: int) -> WorkerEntrant:
        cores, stands_by = lane.place.cores.measuring, self.measurers[0].stands_by
        settings = self._spec.measure
        entrant = WorkerEntrant(
            self._factory,
            cores,
            lane.turn,
            settings,
            what,
            lane.environment,
            stands_by=stands_by,
            hash_seed=run,
        )
        self._entrants.append(entrant)
        return entrant

    def renew(self) -> None:
        """The source has changed: each worker is replaced, a measuring one after the trial that it is at."""
        for slot in self.preparers:
            slot.stop()
        for slot in self.measurers:
            slot.stop_when_idle()
        self._factory.forget(make_scratch(self._spec.name))
        self._renewed = True

    def close(self) -> None:
        for slot in self.slots:
            slot.stop()
        for entrant in self._entrants:
            entrant.close()
        self._closing.close()  # the folders of compiled files, then the cores
