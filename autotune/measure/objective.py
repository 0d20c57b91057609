"""What an objective is: the thing tuned, and how one configuration of it is prepared and measured.

The way of a configuration::

    prepare  in a preparing process, on any idle core, ahead of its turn  ─▶ a picklable result
    load     in the measuring process                                     ─▶ whatever can be run
    check    its answer; raise WrongAnswer, or return metrics such as the error (may be ahead, too)
    measure  one reading; called again until the interval is narrow enough

An objective says that a configuration cannot be used by raising one of the four signals below.
Any other exception makes the outcome ``crashed``, with the traceback's last lines kept; one called
``MemoryError`` or ``OutOfMemoryError`` makes it ``out-of-memory``. Processes that a configuration has
started and left behind are killed when its trial is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.errors import Problem
from autotune.measure.kernels.compile_cache import CompileCache
from autotune.measure.memory import PeakMemory
from autotune.measure.prepared_data import PreparedData
from autotune.measure.readings import Sample
from autotune.measure.reports import SILENT, Reporter
from autotune.space.configuration import Configuration
from autotune.status import Status


class Signal(Exception):  # noqa: N818 - no error, but an answer
    """Raised by an objective to end a trial with a typed status.

    One that stands for a program of its own which has ended may set how; the outcome will say so.
    """

    status: ClassVar[Status]
    stderr: str = ""
    exit_code: int | None = None
    signal: int | None = None
    mistake: str = ""
    """See :data:`autotune.measure.outcome.MISTAKE`."""
    sure: bool = False
    """See :data:`autotune.measure.outcome.SURE`."""


class Infeasible(Signal):
    """The compiler or the device refuses this configuration."""

    status = Status.INFEASIBLE


class WrongAnswer(Signal):
    """The configuration computes something else than it should.

    ``metrics`` are what was measured of it all the same: a strategy learns how far past its bound one is.
    """

    status = Status.WRONG

    def __init__(self, message: str = "", metrics: Mapping[str, float] | None = None) -> None:
        super().__init__(message)
        self.metrics = dict(metrics or {})


class OutOfMemory(Signal):
    """The configuration needs more memory than there is."""

    status = Status.OUT_OF_MEMORY


class Diverged(Signal):
    """A metric became NaN or infinite, or a training loss exploded."""

    status = Status.DIVERGED


@dataclass(frozen=True)
class Context:
    """What an objective is given besides the configuration."""

    workload: Mapping[str, Any]
    """The problem: shape, model, data; from the space file."""
    device: Mapping[str, Any]
    """Facts of the device: ``cores``, ``l1_bytes`` ..."""
    cache: Path
    """A folder for compiled files, shared by all processes of a session and empty when it begins. A new
    one is used when the objective's source changes, so that nothing stale is ever measured."""
    seed: int = 0
    """Seeds fresh random inputs; another one for each trial and each round."""
    compiled: Path | None = None
    """The folder of :attr:`Objective.compile_cache`; ``None``: nothing is kept between searches."""
    ruled: frozenset[str] = frozenset()
    """The facts of the workload that rules of the space use: they are known there, if nowhere else."""

    def size(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A size of the workload, as :func:`size_in` reads it."""
        return size_in(self.workload, name, default, least=least)

    def amount(self, name: str, above: float = 0.0) -> float:
        """A number of the workload that need not be whole. Raises :class:`Infeasible` for any other."""
        value = self.workload.get(name)
        if not isinstance(value, Real) or isinstance(value, bool) or not above < float(value) < math.inf:
            raise Infeasible(f"{name} should be a number above {above:g}, and is {value!r}")
        return float(value)

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """A fact that is one of a few texts; ``default`` where the workload does not say, or ``null``."""
        value = self.workload.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            raise Infeasible(f"{name} should be one of {', '.join(choices)}, and is {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """A fact that is true or false; false where the workload does not say. The text ``no`` is neither."""
        value = self.workload.get(name, False)
        if not isinstance(value, bool):
            raise Infeasible(f"{name} should be true or false, and is {value!r}")
        return value


def size_in(workload: Mapping[str, Any], name: str, default: int | None = None, *, least: int = 1) -> int:
    """A size of a workload: a whole number, ``least`` or more; ``default`` where the workload does not say.

    Raises :class:`Infeasible` for anything else. ``int`` alone takes 1.5 for 1, and the product of nothing is
    soon computed.
    """
    if name not in workload and default is None:
        raise Infeasible(f"the workload has no {name!r}")
    value = workload.get(name, default)
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not float(value).is_integer() or value < least:
        raise Infeasible(f"{name} should be a whole number, {least} or more, and is {value!r}")
    return int(value)


@dataclass(frozen=True)
class Code:
    """What is known of a prepared configuration before it runs; each part may be missing."""

    fingerprint: str = ""
    """Equal for configurations whose runs are the same: the same machine code, launched in the same way. The
    first of them is measured, and the others share what came of it. Empty: nothing is shared."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What it takes, by name: ``registers``, ``spilled_bytes``, ``shared_bytes`` ...; strategies see it."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What else is worth keeping with the trial, as JSON."""
    hopeless: str = ""
    """Why running it is not worth a launch, where that is sure; its trial then ends as ``pruned``."""


@dataclass(frozen=True)
class Baseline:
    """Something to hold a winner against, measured like a trial but not a configuration of the space.

    ``environment`` is set for the process that measures it (``OPENBLAS_CORETYPE``, say).
    """

    name: str
    description: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


class Objective:
    """Base class of objectives written in Python. Only :meth:`measure` must be overridden.

    One instance lives in each process that prepares or measures; ``__init__`` must be cheap. What a
    configuration changes of its process (folder, environment variables, output, limits) is undone behind it;
    what is to stay is set in ``__init__``, or where the module is loaded.
    """

    sources: ClassVar[tuple[str, ...]] = ()
    """Further files that belong to the frozen source, relative to the one of the class that names them. Read
    without running it, also from base classes and constants of the same project: one by one, as texts."""

    workload_facts: ClassVar[tuple[str, ...] | None] = None
    """The facts that a workload may have; ``None``: any. Others are an error before the first trial, unless a
    rule of the space uses them: see :mod:`autotune.measure.loading.facts`."""

    checks_ahead: ClassVar[bool] = False
    """Whether :meth:`load` and :meth:`check` also work in a preparing process, as code does that needs no
    device of its own. The measuring core then does not spend its time on checks."""

    worth_seconds: float = math.inf
    """A run that takes longer is far worse than the best so far. Where the goal is the very time that it
    takes, :meth:`measure` may end it there and return a :class:`Sample` that is ``cut_off``."""

    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """``with self.waiting():`` while another search is waited for (a lock, say): time that is not the trial's
    own, and does not count for its limit."""

    report: Reporter = SILENT
    """For early stopping: call ``self.report(step, loss=...)`` in :meth:`measure`, which may end the trial
    there. One call of :meth:`measure` is then the whole trial, and it may return nothing."""

    memory: PeakMemory | None = None
    """What is watching the memory of a trial: for an objective that runs programs, to note what each took."""

    final: bool = False
    """Whether this is the re-measurement that defends a winner. What a search must not see, a test split say,
    is looked at only then; a bound of such a metric holds for the winner."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def is_warm(self) -> bool:
        """Whether a warm-up would warm nothing that is not warm already; default: never."""
        return False

    @property
    def warms_up(self) -> bool:
        """Whether :meth:`measure` warms up by itself before the first reading with another ``rng``.

        Default: no. Where it does, a reading of a re-measurement does not follow one that only warms caches.
        """
        return False

    @cached_property
    def compile_cache(self) -> CompileCache:
        """What was compiled in this and in earlier searches, by all that went in: for :meth:`prepare`."""
        return CompileCache(self.context.compiled)

    @cached_property
    def prepared_data(self) -> PreparedData:
        """Data sets as they were prepared in this and in earlier searches, or in this search alone."""
        return PreparedData((self.context.compiled or self.context.cache) / "data")

    @property
    def prepares(self) -> bool:
        """Whether there is anything to prepare ahead of a configuration's turn, in a process for that."""
        return type(self).prepare is not Objective.prepare

    def standing(self) -> frozenset[int]:
        """Processes that it keeps from one configuration to the next: no leftovers of it. Default: none."""
        return frozenset()

    def stand_by(self) -> None:
        """Do now what would take the first trial seconds: wake a device, load a library. Default: nothing.

        Called in a process that measures, before its first trial, which may still be prepared meanwhile, and
        not where the place is shared with other searches: so nothing may depend on it. What it raises is let
        go; where its process dies of it or it does not end, another process does without. In a re-measurement
        (:attr:`final`) others do the same on the same device at that moment: nothing may be timed then.
        """

    def knob_problems(self, knobs: Collection[str]) -> list[Problem]:
        """What it expects of the knobs of a space, and these lack. Default: nothing."""
        return []

    def prepare(self, configuration: Configuration) -> Any:
        """Compile or otherwise make ready. Must return something picklable; default: the configuration."""
        return configuration

    def code(self, prepared: Any) -> Code:
        """What is known of what :meth:`prepare` has just made, in the same process. Default: nothing."""
        return Code()

    def load(self, prepared: Any) -> Any:
        """Open what :meth:`prepare` made, in the process that runs it. Default: ``prepared`` itself."""
        return prepared

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Verify the answer on fresh inputs from ``rng``; raise :class:`WrongAnswer`, or return metrics."""
        return {}

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float] | float | Sample | None:
        """Take one reading: a number for the first goal, a number a metric, or these in a ``Sample``."""
        raise NotImplementedError(f"{type(self).__name__} must define measure()")

    @property
    def unsettled(self) -> float:
        """How far the first readings of a configuration may be off, as a share; default: 0, not at all.

        Where they may be, a search takes some to see whether it is far worse than the best. If not, it calls
        :meth:`settle`, and reads it anew.
        """
        return 0.0

    def settle(self, loaded: Any) -> bool:
        """Bring what is measured into the state in which it stays while it is used. Default: nothing.

        Returns whether readings before that do not count. A re-measurement (:attr:`final`) does not ask:
        there each reading has to be of the settled state.
        """
        return False

    @property
    def shared_error(self) -> float:
        """How far the readings just taken may all be off together, as a share; default: 0, not at all.

        A standard deviation, of what a device is like for as long as one configuration is read, say. It is in
        what is known of the configuration, and readings end where more would hardly tell more beside it.
        """
        return 0.0

    @property
    def averaged(self) -> bool:
        """Whether the last reading was a mean of many, off by :attr:`shared_error` and hardly more.

        Default: no. Where it was, a search reads a configuration once, or as often as the ``min_readings`` of
        the space file, and readings of the same trial from before the first such one do not count.
        """
        return False

    def baselines(self) -> tuple[Baseline, ...]:
        """The vendor's and other baselines that can be run on this machine; default: none."""
        return ()

    def load_baseline(self, baseline: Baseline) -> Any:
        """What :meth:`measure` and :meth:`check` are to be handed for ``baseline``."""
        raise NotImplementedError(f"{type(self).__name__} must define load_baseline()")


MeasureFunction = Callable[..., Mapping[str, float] | float | None]
"""A plain function ``f(**knobs)`` (or ``f(configuration)``) that returns a metric or several."""
