"""What a space.yaml says, as frozen data: the space, and what is tuned, measured and spent.

:func:`autotune.space.reading.reader.read_spec` makes a :class:`StudySpec` from a file; it can be built in
Python just as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from autotune.errors import Location
from autotune.space.configuration import FrozenMap, Value, plain

if TYPE_CHECKING:
    from autotune.space.space import Space


@dataclass(frozen=True)
class MetricSpec:
    """A named number. ``goal`` is ``None`` for one that is only recorded or bounded.

    A value past ``at_most`` or ``at_least`` makes the outcome ``wrong``.
    """

    name: str
    goal: Literal["minimize", "maximize"] | None = None
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """Which values are better: smaller ones, for a metric without a goal."""
        return self.goal or "minimize"

    @property
    def is_judged(self) -> bool:
        """Whether a trial without a value of it cannot be judged: it has a goal or a bound."""
        return self.goal is not None or self.at_most is not None or self.at_least is not None

    @property
    def sign(self) -> float:
        """The factor after which a smaller value is the better one: 1, or -1 for a metric to maximize."""
        return -1.0 if self.goal == "maximize" else 1.0


TIME = (MetricSpec("time", "minimize", "s"),)
"""The metrics of a study that says nothing of them."""


TIMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    # Both letters that look like a micro sign are in use.
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
"""Units of time that a metric may have, in seconds."""


def is_speed(goal: str | None, unit: str) -> bool:
    """Whether a better value of a metric is a faster one: less time, or more of something a second."""
    return (goal == "minimize" and unit in TIMES) or (goal == "maximize" and unit.endswith("/s"))


def ratio_title(goal: str | None, unit: str) -> str:
    """What the ratio of two values of a metric is called."""
    return "speed-up" if is_speed(goal, unit) else "gain"


@dataclass(frozen=True)
class PythonObjective:
    """``objective: ../objectives/gemm_c.py:Gemm``: a class (or function) in a file or module."""

    target: str
    """As written: ``path.py:Name`` or ``package.module:Name``."""
    base: Path
    """The folder that a relative path starts from."""
    where: Location | None = field(default=None, compare=False, repr=False)
    """Where a file names it."""


@dataclass(frozen=True)
class CommandObjective:
    """``command: [./bench, --tile, "{tile_m}"]``: a program run once a reading.

    ``{knob}``, ``{workload.NAME}`` and ``{config}`` (the path of the written config file) are
    replaced in ``arguments``, ``environment``, ``config_text`` and ``metrics_file``.
    """

    arguments: tuple[str, ...]
    base: Path
    """The folder the command runs in."""
    prepare: tuple[str, ...] = ()
    """A command run once before the readings (a compiler, say); empty: none."""
    check: tuple[str, ...] = ()
    """A command whose exit code other than 0 makes the outcome ``wrong``; empty: none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    config_file: str = ""
    """A file name written before each run with the configuration: .json, .yaml, .toml or .env by its
    ending, or ``config_text`` with its placeholders filled in."""
    config_text: str = ""
    metrics_from: Literal["json-line", "file", "pattern", "wall"] = "json-line"
    """Where metrics are read: the last JSON object line of stdout, a JSON file, patterns, the wall clock."""
    metrics_file: str = ""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """A regular expression a metric, with one group, searched in stdout then stderr."""
    grace: float = 2.0
    """Seconds that a program which has to end gets from SIGTERM to SIGKILL; 0: it is killed outright."""
    where: Location | None = field(default=None, compare=False, repr=False)
    """Where a file names it."""


@dataclass(frozen=True)
class ReplayObjective:
    """``replay: FILE``: a recorded space (Kernel Tuner cache or T4, gzipped or not)."""

    file: Path
    where: Location | None = field(default=None, compare=False, repr=False)
    """Where a file names it."""


@dataclass(frozen=True)
class CallableObjective:
    """What a Python program passed as the objective, in the place of what a space file names."""

    name: str
    """``module:qualified name``."""
    code: str
    """16 hexadecimal digits that stand for its code: an objective whose code differs is another one."""
    file: Path | None = None
    """The file that has its code; ``None``: no file."""


ObjectiveSpec = PythonObjective | CommandObjective | ReplayObjective | CallableObjective

GIVEN = CallableObjective("the objective", "")
"""Stands for the objective that is passed to ``autotune.search(..., objective=...)``."""


@dataclass(frozen=True)
class EarlyStopping:
    """``search: {early_stopping: ...}``: which trials end before they have used their whole resource."""

    max: int
    """The whole resource: after so many steps a trial is complete."""
    policy: str = "asha"
    """See :data:`autotune.space.reading.early_stopping.POLICIES`."""
    resource: str = "steps"
    """What a step is, for people: ``epochs``."""
    min: int = 1
    """No trial is stopped before this step."""
    factor: int = 3
    """One trial in this many goes on past a rung."""
    metric: str = ""
    """The reported metric that is judged, one with a goal; empty: the first that has one."""
    options: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    """The options of an Optuna pruner, under Optuna's names."""

    @property
    def rungs(self) -> tuple[int, ...]:
        """The steps ``min * factor^k`` that are at most ``max / factor``."""
        steps = []
        step = self.min
        while step * self.factor <= self.max:
            steps.append(step)
            step *= self.factor
        return tuple(steps)


@dataclass(frozen=True)
class SearchSettings:
    """``search:``: the strategy and its seed, whether it learns from earlier studies, what is tried first,
    and what ends a trial early."""

    strategy: str = "auto"
    seed: int = 0
    transfer: bool = True
    options: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    first: Sequence[Mapping[str, Value]] = ()
    """Configurations to try right after the default, in this order; a knob left out has its default."""
    early_stopping: EarlyStopping | None = None


USUAL_READINGS = 5
"""With this many readings an interval does not hinge on a single one of them."""


@dataclass(frozen=True)
class MeasureSettings:
    """``measure:``: how readings are taken. Seconds, bytes and fractions.

    Readings stop once the half-width of the confidence interval is ``precision`` times the value.
    """

    precision: float = 0.01
    confidence: float = 0.95
    timeout: float = 60.0
    """Seconds for the check and the readings of one trial together."""
    prepare_timeout: float = 120.0
    memory: int | None = None
    """Bytes a trial's process may use; ``None``: no cap."""
    warmup: int | None = None
    """Readings that are thrown away first; ``None``: one, or none where the objective needs no warming up."""
    min_readings: int | None = None
    """``None``: :data:`USUAL_READINGS`, or fewer of a slow configuration where time is limited."""
    max_readings: int = 100
    reject: bool = True
    """Stop reading a configuration that is worse than the incumbent beyond doubt (``pruned``)."""
    cores: int = 1
    """Cores a measurement is pinned to; 0: not pinned."""
    gpus: int = 0
    """GPUs to measure on at once, one measurement each; 0: none is claimed."""
    finalists: int = 5
    """How many of the best are measured again beside the default at the end; 0: none."""

    @property
    def fewest(self) -> int:
        """The fewest readings of a trial, unless it is slow or beyond doubt worse than the best so far."""
        return min(USUAL_READINGS, self.max_readings) if self.min_readings is None else self.min_readings


AFFORDED = 50
"""A time limit has to be enough for this many trials, or for ``trials`` where those are fewer."""


@dataclass(frozen=True)
class Share:
    """How much of a search's time the readings of one trial may take, in seconds."""

    most: float = math.inf
    """A trial that has the fewest readings and took longer than this gets no more."""
    least: float = math.inf
    """A trial whose usual number of readings fits into this is not cut short, however slow it is."""


@dataclass(frozen=True)
class Budget:
    """``budget:``: when to stop; ``None`` is no limit. ``time`` in seconds."""

    trials: int | None = None
    time: float | None = None
    patience: int | None = None
    """Trials without an improvement."""
    target: float | None = None
    """A value of the goal that is good enough: a trial whose whole interval is as good ends the search."""

    @property
    def share(self) -> Share:
        """The time that the readings of one trial may take.

        More readings of one trial mean fewer trials. With a time limit the share is such that ``trials``, or
        :data:`AFFORDED` where those are fewer or not given, fit in however noisy they are; the finale reads
        the best ones again. Where ``trials`` is not given, ``least`` is 0, since another trial teaches more
        than another reading.
        """
        if self.time is None:
            return Share()
        each = self.time / self.trials if self.trials else 0.0
        return Share(self.time / min(self.trials or AFFORDED, AFFORDED), each)


@dataclass(frozen=True)
class StudySpec:
    """Everything that a space.yaml says."""

    name: str
    space: Space
    objective: ObjectiveSpec = GIVEN
    metrics: tuple[MetricSpec, ...] = TIME
    workload: FrozenMap = field(default_factory=lambda: FrozenMap({}))
    search: SearchSettings = SearchSettings()
    measure: MeasureSettings = MeasureSettings()
    budget: Budget = Budget()
    source: Path | None = None
    """The file it was read from."""
    text: str = ""
    """That file's text, kept with the study."""

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        """The metrics with a goal; the first is the one that ``best`` is judged by."""
        return tuple(m for m in self.metrics if m.goal)


@dataclass(frozen=True)
class Family:
    """The studies that one space.yaml asks for: one, or one for each of its ``workloads``."""

    specs: tuple[StudySpec, ...]
    """They differ in the workload, and in what the rules make of it."""
    held_out: tuple[bool, ...]
    """Which of them are not searched, only measured."""
    several: bool
    """Whether the file has ``workloads``."""

    @property
    def name(self) -> str:
        """The name that all its studies have."""
        return self.specs[0].name

    def label(self, place: int) -> str:
        """What tells one workload from the others, in words."""
        own, first = self.specs[place].workload, self.specs[0].workload
        differing = [n for n in own if any(spec.workload.get(n) != first[n] for spec in self.specs)]
        return say_workload({name: own[name] for name in differing or own})


def say_workload(workload: Mapping[str, Value]) -> str:
    """``m 960, n 64``; always one line, whatever lines a text has."""
    said = ", ".join(f"{name} {plain(value)}" for name, value in workload.items())
    return "\\n".join(said.splitlines())
