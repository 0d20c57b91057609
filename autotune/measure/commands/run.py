"""One configuration of a command: its folder and texts, and how its programs are run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.leftovers import Leftovers
from autotune.measure.commands.metrics import reported_metrics
from autotune.measure.commands.placeholders import config_text, placeholder_values
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import VARIABLE as RUN_VARIABLE
from autotune.measure.memory import PeakMemory
from autotune.measure.objective import Context, Infeasible, Lost
from autotune.measure.own_folder import own_folder
from autotune.measure.phases.mistakes import mistake_in
from autotune.measure.program import Finished, run_program
from autotune.measure.reports import SILENT, Reporter
from autotune.provenance.code.files import is_file
from autotune.space.configuration import Configuration
from autotune.space.placeholders import FOLDER, fill, fill_arguments, lacks_all_values
from autotune.space.spec import CommandObjective

INFEASIBLE_EXIT = 78
"""``EX_CONFIG`` of ``sysexits.h``: the program refuses the configuration."""

LOST_EXIT = 75
"""``EX_TEMPFAIL`` of ``sysexits.h``: something else failed for now, and the program is to be run again."""

FOLDER_VARIABLE = "AUTOTUNE_FOLDER"
CONFIG_VARIABLE = "AUTOTUNE_CONFIG"
SEED_VARIABLE = "AUTOTUNE_SEED"
STEPS_VARIABLE = "AUTOTUNE_STEPS"


@dataclass(frozen=True)
class CommandRun:
    """One configuration, ready to be run: what the placeholders stand for, and where its files are."""

    spec: CommandObjective
    configuration: Configuration
    values: Mapping[str, str]
    cache: Path
    folder: Path
    config: Path | None
    memory: PeakMemory | None
    """Notes the peak of each program."""

    @classmethod
    def of(
        cls,
        spec: CommandObjective,
        context: Context,
        configuration: Configuration,
        memory: PeakMemory | None = None,
    ) -> CommandRun:
        folder = own_folder(context.cache, configuration).absolute()
        config = folder / Path(spec.config_file).name if spec.config_file else None
        values = placeholder_values(
            configuration, context.workload, str(folder), str(config) if config else ""
        )
        return cls(spec, configuration, values, context.cache, folder, config, memory)

    @property
    def metrics_file(self) -> Path | None:
        """The file that the command writes its metrics to, if it does."""
        if self.spec.metrics_from != "file":
            return None
        return self.spec.base / fill(self.spec.metrics_file, self.values)

    @property
    def leftovers(self) -> Leftovers:
        return Leftovers(self.folder, self.folder.with_name(f"{self.folder.name}.before"))

    @property
    def read_before(self) -> Path:
        """A file that exists once ``prepare`` or ``check`` has read the knobs in any worker."""
        return self.cache / "runs" / f"{self.configuration.hash}.read"

    def listener(
        self,
        report: Reporter = SILENT,
        goals: Collection[str] = (),
        note_facts: Callable[[Mapping[str, object]], None] | None = None,
    ) -> RunListener:
        """The other end of :func:`autotune.run`, should the program open it."""
        return RunListener(self.cache / "runs", self.configuration, report, goals, note_facts)

    def assist(self, command: Sequence[str], rng: np.random.Generator | None = None) -> Finished:
        """Run ``prepare`` or ``check``, whose reports are ignored."""
        with self.listener() as listener:
            ended = self.execute(command, rng, listener)
        if listener.was_read:
            self.read_before.touch()
        return ended

    def execute(
        self,
        command: Sequence[str],
        rng: np.random.Generator | None,
        listener: RunListener,
        metrics: Collection[str] = (),
    ) -> Finished:
        """Run a program to its end, or until ``listener`` ends the trial.

        ``metrics`` are the names of those that its printed reports may have in inner objects.

        An exit code of 78 raises :class:`Infeasible`, and one of 75 :class:`Lost`, unless the trial was being
        ended anyway.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.config is not None:
            self._write_config(self.config)
        arguments = fill_arguments(command, self.values)
        environment = {**os.environ, **self._variables(rng, listener)}
        reports = listener.report.steps is not None
        try:
            on_line = partial(_report_line, listener, metrics) if reports else None
            base, grace = self.spec.base, self.spec.grace
            ended = run_program(arguments, base, environment, on_line, listener, self.memory, grace)
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            program = fill(command[0], {**self.values, FOLDER: f"{{{FOLDER}}}"})  # the same in every trial
            why = _why_not_run(error, self.spec.base / arguments[0])
            said = f"cannot run {program!r} in {self.spec.base}: {why}"
            is_mistake = mistake_in(error) or getattr(error, "errno", 0) == errno.ENOEXEC
            raise CommandCrashed(said, mistake=said if is_mistake else "") from error
        if ended.exit_code == INFEASIBLE_EXIT and listener.stopped is None:
            raise Infeasible(f"{command[0]} refuses it ({ended.how}){ended.last_words}")
        if ended.exit_code == LOST_EXIT and listener.stopped is None:
            raise Lost(f"{command[0]} asks to be run again ({ended.how}){ended.last_words}")
        return ended

    def _variables(self, rng: np.random.Generator | None, listener: RunListener) -> dict[str, str]:
        variables = {FOLDER_VARIABLE: str(self.folder), RUN_VARIABLE: listener.document}
        if self.config is not None:
            variables[CONFIG_VARIABLE] = str(self.config)
        if rng is not None:
            variables[SEED_VARIABLE] = str(int(rng.integers(2**31)))
        if listener.report.steps is not None:
            variables |= {STEPS_VARIABLE: str(listener.report.steps), "PYTHONUNBUFFERED": "1"}
        asked = self.spec.environment.items()
        return variables | {
            name: fill(text, self.values) for name, text in asked if not lacks_all_values(text, self.values)
        }

    def _write_config(self, file: Path) -> None:
        text = config_text(self.spec, self.configuration, self.values)
        # Under another name first: the same configuration may be running in another process.
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)


def _why_not_run(error: OSError | ValueError, program: Path) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ENOEXEC:
        return "as a script it needs a first line such as #!/bin/sh, and a program of this machine it is not"
    if error.errno == errno.ENOENT and is_file(program):
        return "the program that its first line (#!) names is not there, or that line ends as on Windows"
    return error.strerror or str(error)


def _report_line(listener: RunListener, metrics: Collection[str], line: str) -> None:
    """Report a line that is a JSON object with a ``step``, whose metrics are found as in a last object.

    Other lines are ignored, and so are all lines of a program that has opened a run: it reports there.
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
    curve = listener.report.curve
    if curve is not None and isinstance(step, int) and not isinstance(step, bool):
        numbers = reported_metrics(found, metrics, curve.metric)
        try:
            listener.report(step, numbers)
        except (TypeError, ValueError) as error:
            raise CommandCrashed(f"{error}: {line.strip()[:200]}") from error
