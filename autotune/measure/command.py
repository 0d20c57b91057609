"""``command:``: an objective that is a program, run once for each reading.

What an exit code means:

========================  ====================================================================
exit                      outcome
========================  ====================================================================
0                         its metrics are read
78 (``EX_CONFIG``)        ``infeasible``: the program says that it cannot run this configuration
another, or a signal      ``crashed`` for the command itself; ``wrong`` for an exit of ``check``;
                          ``infeasible`` for an exit of ``prepare``: its compiler refused
========================  ====================================================================

78 is what BSD's ``sysexits.h`` has for a configuration that cannot be used; shells, test harnesses and
interpreters do not produce it by accident.

Each configuration has a private folder, named to every command by the variable ``AUTOTUNE_FOLDER``. The
config file is written there, and ``AUTOTUNE_CONFIG`` is its path. ``AUTOTUNE_SEED`` is another number for
each run, for fresh inputs.

Under early stopping ``AUTOTUNE_STEPS`` is the number of steps of a complete trial, and each JSON object
with a ``step`` that is printed on a line is a report (:mod:`autotune.measure.reports`). The program is
killed where the trial is to end: whoever keeps checkpoints in ``AUTOTUNE_FOLDER`` writes one, then reports.
A run that does not go on from a pause finds nothing there of the runs before it.

A program in Python may open :func:`autotune.run` in the place of placeholders and printed lines. It then
takes its knobs from there, must ask for each that is not handed to it otherwise, and is told to end
before it is killed.

A ``prepare`` command that keeps what it makes in that folder runs ahead of its turn on another core. One
that does not (``make TILE=8`` builds ``./bench`` for everybody) could be overtaken by the next one, and
the wrong program be measured. It therefore runs just before the readings, and again whenever another
configuration was prepared in between, or another search has prepared anything there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import InputError
from autotune.measure.command_crashed import CommandCrashed
from autotune.measure.command_metrics import mark_as_old, read_metrics
from autotune.measure.command_problems import problems
from autotune.measure.handing import Missed, missed_knobs
from autotune.measure.leftovers import Leftovers
from autotune.measure.mistakes import mistake_in, mistake_of_program
from autotune.measure.objective import Context, Infeasible, Objective, WrongAnswer
from autotune.measure.placeholders import config_document, placeholder_values
from autotune.measure.program import Finished, run_program
from autotune.measure.readings import Sample
from autotune.measure.reports import SILENT, Reporter
from autotune.measure.run_listener import RunListener
from autotune.measure.run_protocol import VARIABLE as RUN_VARIABLE
from autotune.measure.shared_folder import BuildStamp, alone_at
from autotune.measure.stopped import Stopped
from autotune.space.configuration import Configuration
from autotune.space.placeholders import fill
from autotune.space.spec import CommandObjective, MetricSpec

INFEASIBLE_EXIT = 78
"""``EX_CONFIG`` of ``sysexits.h``: the program refuses the configuration."""

FOLDER_VARIABLE = "AUTOTUNE_FOLDER"
CONFIG_VARIABLE = "AUTOTUNE_CONFIG"
SEED_VARIABLE = "AUTOTUNE_SEED"
STEPS_VARIABLE = "AUTOTUNE_STEPS"


@dataclass(frozen=True)
class Run:
    """One configuration, ready to be run: what the placeholders stand for, and where its files are."""

    configuration: Configuration
    values: Mapping[str, str]
    folder: Path
    config: Path | None


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
        """Run the ``prepare`` command where its results are private; else it waits for its turn."""
        if self.private_prepare:
            run = self._run(configuration)
            with self._leftovers(run).apart_from():
                self._prepare(run)
        return configuration

    def load(self, prepared: Any) -> Run:
        """Run the ``prepare`` command where its results are shared."""
        run = self._run(prepared)
        with self._prepared(run):
            return run

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Run the ``check`` command: any exit but 0 (or 78) says that the answer is wrong."""
        if self.spec.check:
            with self._prepared(loaded), self._leftovers(loaded).apart_from():
                ended = self._execute(loaded, self.spec.check, rng)
            if ended.signal is not None:
                raise CommandCrashed(f"the check was {ended.how}{ended.last_words}", ended)
            if not ended.succeeded:
                raise WrongAnswer(f"the check failed with {ended.how}{ended.last_words}")
        return {}

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float] | Sample:
        """Run the command once and read its metrics.

        Where no knob of the configuration got to it, it has measured nothing: that is a mistake, for sure.
        Where only some did not, the facts name them: there may be knobs that serve rules alone.

        A training that goes on from a pause, and reports nothing, has found a checkpoint of its last step or
        half of one: it had run on until it was killed. It begins again, without.
        """
        try:
            return self._measure(loaded, rng)
        except CommandCrashed as crashed:
            if not self._went_on() or self.report.last is not None:
                raise
            print(
                f"autotune: it begins anew, since from its checkpoint it did not go on: {crashed}",
                file=sys.stderr,
            )
            self._leftovers(loaded).clear()
            return self._measure(loaded, rng)

    def _measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float] | Sample:
        file = self.spec.base / self.spec.metrics_file if self.spec.metrics_from == "file" else None
        with self._prepared(loaded), nullcontext() if file is None else alone_at(file):
            if file is not None:
                mark_as_old(file)
            self._begin(loaded)
            listener = self._listener(loaded, self.report)
            try:
                with listener:
                    ended = self._execute(loaded, self.spec.arguments, rng, listener)
                if listener.heard.runs:
                    self._has_runs.touch()
                if listener.stopped is not None:
                    raise listener.stopped
            except Stopped as stopped:  # what stands behind is no worse, where no knob has got there
                if (missed := self._missed(loaded, listener)).none_arrived:
                    raise CommandCrashed(missed.mistake, None, missed.mistake, sure=True) from stopped
                raise
            if not ended.succeeded:
                said = f"{self.spec.arguments[0]}: {ended.how}{ended.last_words}"
                crash = CommandCrashed(said, ended, mistake_of_program(ended, self.spec.arguments))
                raise listener.failure() or crash
            missed = self._missed(loaded, listener)
            if missed.mistake:
                raise CommandCrashed(missed.mistake, ended, missed.mistake, sure=missed.none_arrived)
            metrics = read_metrics(self.spec, self.metrics, ended, file, listener.heard)
            return Sample(metrics, facts=missed.facts) if missed.facts else metrics

    def _missed(self, run: Run, listener: RunListener) -> Missed:
        return missed_knobs(self.spec, run.configuration, listener, self._read_before(run))

    # -- running -------------------------------------------------------------------------------

    def _run(self, configuration: Configuration) -> Run:
        folder = self.context.cache / "command" / configuration.hash
        name = Path(self.spec.config_file).name
        config = (folder / name).absolute() if name else None
        values = placeholder_values(configuration, self.context.workload, str(config) if config else "")
        return Run(configuration, values, folder.absolute(), config)

    def _listener(self, run: Run, report: Reporter = SILENT) -> RunListener:
        """What a program that opens :func:`autotune.run` finds."""
        return RunListener(self.context.cache / "runs", run.configuration, report)

    def _leftovers(self, run: Run) -> Leftovers:
        return Leftovers(run.folder, run.folder.with_name(f"{run.folder.name}.before"))

    @property
    def _has_runs(self) -> Path:
        """A file that is there once the program has opened a run, in whatever worker."""
        return self.context.cache / "command" / "opened"

    def _begin(self, run: Run) -> None:
        """Let a training that does not go on from a pause find nothing of earlier ones.

        Any other program may keep in its folder what it made once, for all readings.
        """
        leftovers = self._leftovers(run)
        leftovers.note()
        is_training = self.report.curve is not None or self._has_runs.exists()
        if is_training and not self._went_on():
            leftovers.clear()

    def _went_on(self) -> bool:
        """Whether this run goes on from a pause."""
        return self.report.curve is not None and self.report.curve.done > 0

    def _read_before(self, run: Run) -> Path:
        """A file that is there once ``prepare`` or ``check`` has read the knobs, in whatever worker."""
        return self.context.cache / "runs" / f"{run.configuration.hash}.read"

    def _execute(
        self,
        run: Run,
        command: Sequence[str],
        rng: np.random.Generator | None,
        listener: RunListener | None = None,
    ) -> Finished:
        """Run one command for a configuration; what it reports is the ``listener``'s, if there is one.

        An exit of 78 raises :class:`Infeasible`, unless the trial was to end anyway.
        """
        if listener is None:
            with self._listener(run) as knobs_only:
                ended = self._execute(run, command, rng, knobs_only)
            if knobs_only.was_read:
                self._read_before(run).touch()
            return ended
        reports = listener.report.steps is not None
        run.folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, FOLDER_VARIABLE: str(run.folder), RUN_VARIABLE: listener.document}
        if run.config is not None:
            self._write_config(run, run.config)
            environment[CONFIG_VARIABLE] = str(run.config)
        if rng is not None:
            environment[SEED_VARIABLE] = str(int(rng.integers(2**31)))
        if reports:
            environment |= {STEPS_VARIABLE: str(self.report.steps), "PYTHONUNBUFFERED": "1"}
        environment |= {name: fill(text, run.values) for name, text in self.spec.environment.items()}
        arguments = [fill(argument, run.values) for argument in command]
        try:
            on_line = partial(self._report_line, listener) if reports else None
            ended = run_program(arguments, self.spec.base, environment, on_line, listener)
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            said = f"cannot run {arguments[0]!r} in {self.spec.base}: {error}"
            raise CommandCrashed(said, mistake=said if mistake_in(error) else "") from error
        if ended.exit_code == INFEASIBLE_EXIT and listener.stopped is None:
            raise Infeasible(f"{arguments[0]} refuses it ({ended.how}){ended.last_words}")
        return ended

    def _report_line(self, listener: RunListener, line: str) -> None:
        """Pass on a JSON object with a ``step``; all else that the program prints is no report.

        One that has opened a run reports there, and its lines are for people.
        """
        if not line.lstrip().startswith("{"):
            return
        listener.attend()
        if listener.heard.runs:
            return
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return
        step = found.pop("step", None)
        if isinstance(step, float) and step.is_integer():
            step = int(step)
        if isinstance(step, int) and not isinstance(step, bool):
            numbers = {name: value for name, value in found.items() if isinstance(value, (int, float))}
            try:
                self.report(step, numbers)
            except (TypeError, ValueError) as error:
                raise CommandCrashed(f"{error}: {line.strip()[:200]}") from error

    def _write_config(self, run: Run, file: Path) -> None:
        if self.spec.config_text:
            text = fill(self.spec.config_text, run.values)
        else:
            text = config_document(file.suffix or file.name, run.configuration)
        # Under another name first: the same configuration may be running in another process.
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)

    # -- preparing -----------------------------------------------------------------------------

    def _prepare(self, run: Run) -> None:
        ended = self._execute(run, self.spec.prepare, None)
        if ended.signal is not None:
            raise CommandCrashed(f"the prepare command was {ended.how}{ended.last_words}", ended)
        if not ended.succeeded:
            raise Infeasible(f"the prepare command failed with {ended.how}{ended.last_words}")

    @contextmanager
    def _prepared(self, run: Run) -> Iterator[None]:
        """While this lasts, what stands in the folder was prepared for ``run`` and for no other."""
        if not self.spec.prepare or self.private_prepare:
            yield
            return
        with alone_at(self.spec.base):
            stamp = BuildStamp(self.spec.base, self.context.cache)
            if not stamp.says(run.configuration.hash):
                stamp.clear()  # what stands there is nobody's, should the command be killed
                self._prepare(run)
                stamp.write(run.configuration.hash)
            yield


def _mentions_folder(spec: CommandObjective) -> bool:
    """Whether ``prepare`` is told where to keep what it makes."""
    texts = (*spec.prepare, *spec.environment.values())
    return any(FOLDER_VARIABLE in text for text in texts)
