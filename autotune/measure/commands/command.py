"""``command:``: an objective that is a program, run once for each reading.

What an exit code means:

========================  ====================================================================
exit                      outcome
========================  ====================================================================
0                         its metrics are read
78 (``EX_CONFIG``)        ``infeasible``: the program says that it cannot run this configuration
75 (``EX_TEMPFAIL``)      ``lost``: the program says that something else failed; it is tried again
another, or a signal      ``crashed`` for the command itself, and ``out-of-memory`` where it says that it had
                          too little; ``wrong`` for an exit of ``check``; ``infeasible`` for an exit of
                          ``prepare``: its compiler refused
========================  ====================================================================

Both codes are from BSD's ``sysexits.h``; shells, test harnesses and interpreters do not produce them by
accident.

Each configuration has a private folder, ``{folder}``, named to every command by ``AUTOTUNE_FOLDER`` too. The
config file is written there, and ``AUTOTUNE_CONFIG`` is its path. ``AUTOTUNE_SEED`` is another number for
each run, for fresh inputs.

Under early stopping ``AUTOTUNE_STEPS`` is the number of steps of a complete trial, and each JSON object with
a ``step`` that is printed on a line is a report (:mod:`autotune.measure.reports`). The program may be killed
at a report, so one that keeps checkpoints in ``AUTOTUNE_FOLDER`` writes them before it reports. A run that
does not go on from a pause finds no files of earlier runs there.

A program in Python may open :func:`autotune.run` instead of using placeholders and printed lines. It then
takes its knobs from there, must ask for each knob that it does not get otherwise, and is told to stop before
it is killed.

A ``prepare`` command that keeps what it makes in that folder runs ahead of its turn on another core. One that
does not (``make TILE=8`` builds ``./bench`` for every configuration) could be overtaken by the next one, and
the wrong program would be measured. It therefore runs just before the readings, and again whenever another
configuration was prepared in between, or another search has prepared anything there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import InputError
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.handing import Missed, missed_knobs
from autotune.measure.commands.heard import Heard
from autotune.measure.commands.left_running import ended_with_run
from autotune.measure.commands.metrics import mark_as_old, read_metrics
from autotune.measure.commands.problems import problems
from autotune.measure.commands.python_program import say_another_python
from autotune.measure.commands.run import FOLDER_VARIABLE, CommandRun
from autotune.measure.commands.run_listener import Overlong, RunListener
from autotune.measure.commands.shared_folder import BuildStamp, alone_at
from autotune.measure.commands.stale_build import built_with, say_nothing_built
from autotune.measure.facts import LEFT_RUNNING, MISTAKE
from autotune.measure.objective import Context, Diverged, Infeasible, Objective, WrongAnswer
from autotune.measure.phases.mistakes import mistake_of_program
from autotune.measure.program import Finished
from autotune.measure.readings import Sample
from autotune.measure.rules.worth import SHORT_SECONDS
from autotune.measure.stopped import Stopped
from autotune.space.configuration import Configuration
from autotune.space.placeholders import FOLDER, names
from autotune.space.spec import CommandObjective, MetricSpec
from autotune.status import Status


class CommandRunner(Objective):
    """Runs a :class:`CommandObjective`. Raises :class:`InputError` for a program that does not exist."""

    def __init__(self, spec: CommandObjective, context: Context, metrics: tuple[MetricSpec, ...]) -> None:
        super().__init__(context)
        self.spec = spec
        self.metrics = metrics
        self.private_prepare = bool(spec.prepare) and _mentions_folder(spec)
        if found := problems(spec, metrics):
            raise InputError(found)

    @property
    def prepares(self) -> bool:
        return self.private_prepare

    def prepare(self, configuration: Configuration) -> Configuration:
        """Run the ``prepare`` command where its results are private; otherwise :meth:`load` runs it."""
        if self.private_prepare:
            run = self._run(configuration)
            with run.leftovers.apart_from():
                _prepare(run)
        return configuration

    def load(self, prepared: Any) -> CommandRun:
        """Run the ``prepare`` command where its results are shared."""
        run = self._run(prepared)
        with self._prepared(run):
            return run

    def check(self, loaded: CommandRun, rng: np.random.Generator) -> Mapping[str, float]:
        """Run the ``check`` command: any exit but 0 (or 78, or 75) says that the answer is wrong."""
        if self.spec.check:
            with self._prepared(loaded), loaded.leftovers.apart_from():
                ended = loaded.assist(self.spec.check, rng)
            if ended.signal is not None:
                raise CommandCrashed(f"the check was {ended.how}{ended.last_words}", ended)
            if not ended.succeeded:
                raise WrongAnswer(f"the check failed with {ended.how}{ended.last_words}")
        return {}

    def measure(self, loaded: CommandRun, rng: np.random.Generator) -> Mapping[str, float] | Sample:
        """Run the command once and read its metrics.

        If no knob of the configuration reached the program, the trial fails by a mistake. If only some did
        not, they are named in the facts: there may be knobs that only rules use.

        If a training that goes on from a pause crashes before it reports anything, its checkpoint is of its
        last step or incomplete, since it ran on until it was killed. It is then run again without the
        checkpoint.
        """
        try:
            return self._measure(loaded, rng)
        except CommandCrashed as crashed:
            if not self._goes_on() or self.report.last is not None:
                raise
            print(
                f"autotune: it could not go on from its checkpoint, and begins anew: {crashed}",
                file=sys.stderr,
            )
            loaded.leftovers.clear()
            return self._measure(loaded, rng)

    def _measure(self, run: CommandRun, rng: np.random.Generator) -> Mapping[str, float] | Sample:
        file = run.metrics_file
        with self._prepared(run), nullcontext() if file is None else alone_at(file, self.waiting):
            if file is not None:
                mark_as_old(file)
            self._clear_leftovers(run)
            goals = [metric.name for metric in self.metrics if metric.goal]
            listener = run.listener(self.report, goals, self.note_facts)
            try:
                ended, left = self._execute(run, rng, listener)
            except Overlong:
                return Sample({goals[0]: self.worth_seconds}, cut_off=True)
            except Stopped as stopped:
                return self._stopped(run, listener, stopped)
            if not ended.succeeded or listener.heard.has_failed:
                raise listener.heard.failure() or self._crash(ended, listener.heard)
            missed = self._missed(run, listener)
            if missed.mistake:
                raise _unreached(missed, ended)
            metrics = read_metrics(self.spec, self.metrics, ended, file, listener.heard)
            facts = {**listener.heard.facts, **missed.facts, **({LEFT_RUNNING: left} if left else {})}
            return Sample(metrics, facts=facts) if facts else metrics

    def _execute(
        self, run: CommandRun, rng: np.random.Generator, listener: RunListener
    ) -> tuple[Finished, Sequence[str]]:
        """Run the command; returns how it ended, and what it left running.

        Raises :class:`Stopped` if the run was ended on purpose.
        """
        with listener, ended_with_run(self.spec.grace) as left:
            if self.spec.metrics_from == "wall":
                listener.give(self.worth_seconds)
            names = [metric.name for metric in self.metrics]
            ended = run.execute(self.spec.arguments, rng, listener, names)
        if listener.heard.runs:
            self._has_runs.touch()
        if ended.seconds >= SHORT_SECONDS:
            self._has_run_for_long.touch()
        if listener.stopped is not None:
            raise listener.stopped
        return ended, left

    def _stopped(self, run: CommandRun, listener: RunListener, stopped: Stopped) -> Sample:
        """What a run has come to that was ended on purpose; raises an error if that is a failure."""
        missed = self._missed(run, listener)
        if missed.none_arrived or (missed.mistake and stopped.status is Status.OK):
            raise _unreached(missed) from stopped  # how good it was means nothing then
        if stopped.status is Status.DIVERGED and self.report.curve is None:
            raise Diverged(stopped.message) from stopped
        facts = listener.heard.facts
        if missed.mistake and stopped.status is Status.PRUNED:  # it may have asked later
            facts |= {MISTAKE: missed.mistake}
        return Sample({}, facts=facts)

    def _crash(self, ended: Finished, heard: Heard) -> CommandCrashed:
        if ended.succeeded:
            return CommandCrashed(f"{heard.message}: it ended the run, and the program caught it", ended)
        program, mistake = self.spec.arguments[0], mistake_of_program(ended, self.spec.arguments)
        why = say_another_python(program, ended.last_words, self.spec.environment.get("PATH"))
        said = f"{program}: {ended.how}{ended.last_words}{why}"
        return CommandCrashed(said, ended, f"{mistake}{why}" if mistake else "")

    def _run(self, configuration: Configuration) -> CommandRun:
        return CommandRun.of(self.spec, self.context, configuration, self.memory)

    def _missed(self, run: CommandRun, listener: RunListener) -> Missed:
        return missed_knobs(self.spec, run.configuration, listener, run.read_before)

    @property
    def is_warm(self) -> bool:
        """True once a run took long: a new process finds files in memory, and nothing else stays warm."""
        return self._has_run_for_long.exists()

    @property
    def _has_run_for_long(self) -> Path:
        """A file that exists once the program has taken long in any worker.

        A short program is never warm in this sense: its time depends on what is in the caches.
        """
        return self.context.cache / "warm"

    # -- trainings -----------------------------------------------------------------------------

    @property
    def _has_runs(self) -> Path:
        """A file that exists once the program has opened a run in any worker."""
        return self.context.cache / "opened"

    def _goes_on(self) -> bool:
        """Whether this run goes on from a pause."""
        return self.report.curve is not None and self.report.curve.done > 0

    def _clear_leftovers(self, run: CommandRun) -> None:
        """Let a training that does not go on from a pause find nothing of earlier ones.

        Any other program may keep in its folder what it made once, for all readings.
        """
        run.leftovers.note()
        is_training = self.report.curve is not None or self._has_runs.exists()
        if is_training and not self._goes_on():
            run.leftovers.clear()

    # -- preparing -----------------------------------------------------------------------------

    @contextmanager
    def _prepared(self, run: CommandRun) -> Iterator[None]:
        """Inside, what is in the folder was prepared for ``run`` and no other configuration."""
        if not self.spec.prepare or self.private_prepare:
            yield
            return
        with alone_at(self.spec.base, self.waiting):
            stamp = BuildStamp(self.spec.base, self.context.cache)
            built = stamp.read()
            wanted = f"{run.configuration.hash}\n{built_with(self.spec, run.values)}"
            if built != wanted:
                stamp.clear()  # should the command be killed, what is there counts for no configuration
                ended = _prepare(run)
                other = bool(built) and built.partition("\n")[2] != wanted.partition("\n")[2]
                if other and (said := say_nothing_built(ended)):
                    stamp.write(built)
                    raise CommandCrashed(said, ended, said)
                stamp.write(wanted)
            yield


def _unreached(missed: Missed, ended: Finished | None = None) -> CommandCrashed:
    return CommandCrashed(missed.mistake, ended, missed.mistake, sure=missed.none_arrived)


def _prepare(run: CommandRun) -> Finished:
    ended = run.assist(run.spec.prepare)
    if ended.signal is not None:
        raise CommandCrashed(f"the prepare command was {ended.how}{ended.last_words}", ended)
    if not ended.succeeded:
        raise Infeasible(f"the prepare command failed with {ended.how}{ended.last_words}")
    return ended


def _mentions_folder(spec: CommandObjective) -> bool:
    """Whether ``prepare`` is given the private folder of the configuration."""
    texts = (*spec.prepare, *spec.environment.values())
    return any(FOLDER_VARIABLE in text or FOLDER in dict(names(text)) for text in texts)
