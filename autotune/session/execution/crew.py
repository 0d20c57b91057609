"""The workers of a search: which ones there are, where they run, and waiting for any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from autotune.measure.cores.turns import LOOK_AGAIN_SECONDS
from autotune.measure.objective import Baseline, Context
from autotune.measure.ownership import make_scratch
from autotune.measure.reports import whole_run
from autotune.measure.workers.limits import sweep_groups
from autotune.measure.workers.messages import Ready, Setup
from autotune.measure.workers.process import wait_for_any
from autotune.session.execution.entrant import WorkerEntrant, enter_together
from autotune.session.execution.executor import Entrant
from autotune.session.execution.flight import Flight
from autotune.session.execution.lane import Lane, cores_of, find_lanes, remark_on
from autotune.session.execution.slot import MEASURE, PREPARE, Post, Slot, WorkerFactory
from autotune.space.configuration import Configuration, Value
from autotune.space.spec import StudySpec

MOST_PREPARERS = 8
"""The most preparers by default."""

SPARE = 2
"""How many prepared trials may wait for the measuring worker, since times of preparing and measuring vary.
Simulated, with one preparer as fast as the measuring worker, 0, 1, 2, 3 and 8 spare ones take 0.74, 0.67,
0.64, 0.61 and 0.58 of the time without overlap. But for each of them a proposal knows one result less."""


def _setup(spec: StudySpec, device: Mapping[str, Value], compiled: Path | None) -> Setup:
    """What every worker is told, with a new folder for what they compile."""
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
    """Slots for workers that prepare, and one that measures in each lane.

    Its life::

        lanes claimed ─▶ slots made ─▶ first worker ready ─▶ [give, wait, renew ... ─▶ entrants] ─▶ close

    :meth:`close` undoes each step that was taken, even if the next one failed. The first worker knows whether
    there is anything to prepare; if there is nothing, the preparers are ended.

    For the parameters see :class:`~autotune.session.execution.workers.WorkerExecutor`.
    """

    def __init__(
        self,
        spec: StudySpec,
        device: Mapping[str, Value],
        prepare_workers: int | None,
        compiled: Path | None,
        lanes: tuple[Lane, ...] | None,
        meanwhile: Callable[[], object],
    ) -> None:
        sweep_groups()
        self._spec = spec
        self.measurers: list[Slot[Flight]] = []
        self.preparers: list[Slot[Flight]] = []
        self._entrants: list[WorkerEntrant] = []
        self._renewed = False
        self._closing = ExitStack()
        """What is given back after the last worker: the folders of compiled files, then the lanes."""
        self._lanes = find_lanes(spec.measure) if lanes is None else lanes
        for lane in self._lanes:
            self._closing.callback(lane.close)
        try:
            self.cores = cores_of(self._lanes)
            self.remark = remark_on(self._lanes, spec.measure)
            self._factory = WorkerFactory(_setup(spec, device, compiled), self.cores)
            self._closing.callback(self._factory.close)
            self.measurers = [self._measurer(lane) for lane in self._lanes]
            self.preparers = self._made_preparers(prepare_workers)
            self.ready = self._first_ready(meanwhile)
        except BaseException:
            self.close()
            raise

    def _measurer(self, lane: Lane) -> Slot[Flight]:
        post = Post(MEASURE, lane.place.cores.measuring, lane.environment)
        return Slot(self._factory, post, stands_by=not lane.shared)  # standing by does not wait for a turn

    def _made_preparers(self, wanted: int | None) -> list[Slot[Flight]]:
        """At least one. Of the first lane they have only the environment, so that they see its GPU."""
        count = min(len(self.cores.preparing), MOST_PREPARERS) if wanted is None else wanted
        post = Post(PREPARE, self.cores.preparing, self._lanes[0].environment)
        return [Slot(self._factory, post) for _ in range(max(count, 1))]

    def _first_ready(self, meanwhile: Callable[[], object]) -> Ready:
        """Start the first measuring worker, and end the preparers if it says that nothing is prepared."""
        self.measurers[0].fill()
        if self._lanes[0].gpu is not None:
            # Objectives on a GPU mostly load a large library and compile, so preparers start at once as well.
            for slot in self.preparers:
                slot.fill()
        meanwhile()
        ready = self.measurers[0].ready()
        if not ready.prepares:
            for slot in self.preparers:
                slot.stop()
            self.preparers = []
        return ready

    def baselines(self) -> tuple[Baseline, ...]:
        """The baselines of the source as it is now. If it has changed, no trial may be in flight."""
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

        One is measured in each lane, and one prepared by each preparer, and :data:`SPARE` wait. With nothing
        to prepare one waits, so that the measuring core does not stand idle while the session thinks.
        """
        count = len(self.preparers)
        return len(self._lanes) + (count + SPARE if count else 1)

    def number_of(self, slot: Slot[Flight]) -> int:
        """Its number among those of its role."""
        return (self.preparers if slot.post.role == PREPARE else self.measurers).index(slot)

    def facts_of(self, slot: Slot[Flight]) -> Mapping[str, object] | None:
        """Facts about the lane in which a measuring worker runs; ``None`` for a preparer."""
        return self._lanes[self.measurers.index(slot)].facts if slot in self.measurers else None

    def wait(self, seconds: float, *, for_turn: bool) -> None:
        """Wait until a worker sends something or passes its deadline, for up to ``seconds``.

        ``for_turn``: look again soon, since another search may end its turn and tells nobody.
        """
        looks = [due for slot in self.slots if (due := slot.look()) is not None]
        workers = [slot.worker for slot in self.slots if slot.worker is not None]
        wait_for_any(workers, min([LOOK_AGAIN_SECONDS if for_turn else seconds, *looks]))

    def entrants(self, wanted: Sequence[Configuration | Baseline], run: int = 0) -> list[Entrant]:
        """Entrants in processes of their own. They start side by side: loading a large library takes seconds.

        They also prepare side by side, unless they are pinned: on the same core that would take each as long
        as all of them together. For that reason they load and check side by side on a GPU only: elsewhere
        checks need the cores.
        """
        lane, first = self._lanes[0], self.measurers[0]  # the same for all, so that they can be compared
        turn, pinned = lane.turn, bool(lane.place.cores.measuring)
        settings, stands_by = self._spec.measure, first.stands_by
        made = [
            WorkerEntrant(self._factory, lane, settings, what, stands_by=stands_by, hash_seed=run)
            for what in wanted
        ]
        self._entrants += made
        with turn.taken():  # starting uses the measuring cores, as entering does
            for entrant in made:
                entrant.start()
            for entrant in made:
                entrant.wait()
            for entrant in made:
                entrant.stand_by()
            if self.ready.stands_by:
                first.give_way()
            if not pinned:
                for entrant in made:
                    entrant.begin()
            if lane.gpu is not None and not pinned:
                enter_together(made)
        for entrant in made:
            if entrant.outside:
                with turn.taken():
                    entrant.enter()
        return list(made)

    def together(self) -> AbstractContextManager[None]:
        """Keep the turn between readings of entrants, inside the block."""
        return self._lanes[0].turn.kept()

    def renew(self) -> None:
        """Replace each worker, since the source has changed; a measuring one finishes its trial before."""
        for slot in self.preparers:
            slot.stop()
        for slot in self.measurers:
            slot.stop_when_idle()
        self._factory.forget(make_scratch(self._spec.name))
        self._renewed = True

    def tidy(self, configuration: Configuration) -> None:
        """Remove what was made for the configuration alone."""
        self._factory.tidy(configuration)

    def close(self) -> None:
        for slot in self.slots:
            slot.stop()
        for entrant in self._entrants:
            entrant.close()
        self._closing.close()
