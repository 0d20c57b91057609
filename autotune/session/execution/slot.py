"""A place for one worker at a time: filled when there is work, and empty again once the worker has ended."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from autotune.errors import AutotuneError
from autotune.measure.cores.oversubscription import ReadyThreads
from autotune.measure.cores.pinning import Cores
from autotune.measure.own_folder import remove_own_folder
from autotune.measure.workers.limits import make_cap
from autotune.measure.workers.messages import Ready, Request, Setup
from autotune.measure.workers.postmortem import Death, start_failure
from autotune.measure.workers.process import Said, Worker
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective

Job = TypeVar("Job")

PREPARE, MEASURE, FINALE = "prepare", "measure", "finale"
"""What a worker is for. The first two are also the names of the phase that a trial begins with there."""


@dataclass(frozen=True)
class Post:
    """What a worker is for, and where it works."""

    role: str
    cores: tuple[int, ...]
    """Hardware threads that it is pinned to; empty: not pinned."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that are added to those of this process."""


class WorkerFactory:
    """Starts workers for one objective, each with a memory cap of its own."""

    def __init__(self, setup: Setup, cores: Cores) -> None:
        self._setup = setup
        self._cores = cores
        self._scratch = [setup.context.cache]

    def start(self, post: Post, *, stands_by: bool = False, hash_seed: int = 0) -> Worker:
        """Begin to start a worker; its guardian stays off the cores that are measured on.

        ``stands_by``: its objective makes itself ready before the first request.
        """
        memory = self._setup.settings.memory
        cap = None if memory is None else make_cap(memory, post.role)
        setup = replace(
            self._setup,
            cores=post.cores,
            cap=cap,
            repeats=post.role == MEASURE,
            stands_by=stands_by,
            hash_seed=hash_seed,
        )
        try:
            return Worker(setup, post.environment, guardian_cores=self._cores.preparing)
        except BaseException:
            if cap is not None:
                cap.remove()  # there is no guardian that would
            raise

    def has_others(self, cores: tuple[int, ...]) -> bool:
        """Whether the search was given cores beside these."""
        return not set(self._cores.preparing) <= set(cores)

    @property
    def own_generations(self) -> int:
        """How many generations of a worker's processes, its guardian first, run no code of the objective."""
        return 2 if isinstance(self._setup.objective, CommandObjective) else 1

    def forget(self, scratch: Path) -> None:
        """From now on give workers the folder ``scratch`` for compiled files; present ones keep theirs."""
        self._scratch.append(scratch)
        self._setup = replace(self._setup, context=replace(self._setup.context, cache=scratch))

    def tidy(self, configuration: Configuration) -> None:
        """Remove the folder that the configuration has of its own."""
        for folder in self._scratch:
            remove_own_folder(folder, configuration)

    def close(self) -> None:
        """Remove the folders of compiled files, after the last worker has ended."""
        for folder in self._scratch:
            shutil.rmtree(folder, ignore_errors=True)


class Slot(Generic[Job]):
    """One worker after another, and the job that the present one is doing.

    Its life::

        empty ──fill──▶ starting ──attend: Ready──▶ free ──give──▶ at a job ──attend: answer; take──▶ free
          ▲                │                         │                │
          └────────────────┴──────────stop───────────┴────────────────┘  the job stays until it is taken
    """

    def __init__(self, factory: WorkerFactory, post: Post, *, stands_by: bool = False) -> None:
        self.post = post
        self.stands_by = stands_by
        """Whether workers stand by before their first job. Set to false once one has died of that."""
        self.worker: Worker | None = None
        self.job: Job | None = None
        self.began = 0.0
        """When the job was given, in seconds since the epoch."""
        self.ends_when_idle = False
        self.failed_starts = 0
        """In a row."""
        self.ready_threads: ReadyThreads | None = None
        """Counts the threads of the worker that are ready to run, while it measures and is kept off other
        cores of the search."""
        self._factory = factory

    @property
    def name(self) -> str:
        return self.worker.name if self.worker is not None else ""

    def ready(self) -> Ready:
        """Wait until the worker that was begun by :meth:`fill` is ready. Raises where it cannot start."""
        assert self.worker is not None
        came = self.worker.wait()
        if isinstance(came, Ready):
            return came
        assert isinstance(came, Death)
        raise AutotuneError(start_failure(came))

    def fill(self) -> None:
        """Begin to start a worker where there is none."""
        if self.worker is None:
            self.ends_when_idle = False
            self.worker = self._factory.start(self.post, stands_by=self.stands_by)

    @property
    def free(self) -> bool:
        """Whether a job can be given now."""
        return self.job is None and self.worker is not None and not self.worker.busy

    def give(self, job: Job, request: Request, seconds: float) -> None:
        assert self.worker is not None and self.job is None
        self.job, self.began = job, time.time()
        cores, measures = self.post.cores, self.post.role == MEASURE
        kept_apart = measures and cores and self._factory.has_others(cores)
        self.ready_threads = ReadyThreads(cores, self._factory.own_generations) if kept_apart else None
        self.worker.ask(request, seconds)

    def attend(self) -> Said | Death | None:
        if self.worker is None:
            return None
        came = self.worker.attend()
        if isinstance(came, Ready):
            self.failed_starts = 0
        if isinstance(came, Death) and self.worker.standing_by:
            self.stands_by = False  # or the next one dies as well, and no trial ever begins
        return came

    def give_way(self) -> None:
        """End a worker that has not yet come to its first job, so that others can be measured here."""
        if self.worker is not None and self.job is None:
            self.attend()
            if self.worker.busy:
                self.stop()

    def look(self) -> float | None:
        """Count the worker's threads, if it is time to do so.

        Returns the seconds until the next count; ``None`` if there is none.
        """
        if self.ready_threads is None or self.job is None or self.worker is None:
            return None
        self.ready_threads.look(self.worker.pid)
        return self.ready_threads.timeout()

    def take(self) -> Job:
        """Take the job out of the slot, which is then free for another one."""
        assert self.job is not None
        job, self.job = self.job, None
        return job

    def stop(self) -> None:
        """End the worker, if there is one. Its job stays in the slot until :meth:`take`."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def stop_when_idle(self) -> None:
        """End the worker now, or after the job that it is at."""
        if self.job is None:
            self.stop()
        else:
            self.ends_when_idle = True
