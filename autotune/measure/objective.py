"""What an objective is: the thing tuned, and how one configuration of it is prepared and measured.

The way of a configuration::

    prepare  in a preparing process, on any idle core, ahead of its turn  ─▶ a picklable result
    load     in the measuring process                                     ─▶ whatever can be run
    check    its answer; raise WrongAnswer, or return metrics such as the error (may be ahead, too)
    measure  one reading; called again until the interval is narrow enough

An objective says that a configuration cannot be used by raising one of the four signals below.
Any other exception makes the outcome ``crashed``, with the traceback's last lines kept; one that says that
there was not enough memory makes it ``out-of-memory``. Processes that a configuration has started and left
behind are killed when its trial is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from pathlib import Path
from types import MappingProxyType
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

    Where it stands for a program that has ended, ``stderr``, ``exit_code`` and ``signal`` say how; they
    become part of the outcome.
    """

    status: ClassVar[Status]
    stderr: str = ""
    exit_code: int | None = None
    signal: int | None = None
    mistake: str = ""
    """See :data:`autotune.measure.facts.MISTAKE`."""
    sure: bool = False
    """See :data:`autotune.measure.facts.SURE`."""


class Infeasible(Signal):
    """The compiler or the device refuses this configuration."""

    status = Status.INFEASIBLE


class WrongAnswer(Signal):
    """The configuration computes something else than it should.

    ``metrics`` are what was measured all the same: a strategy learns from them how far a bound was missed.
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


class Lost(Signal):
    """Something else failed than the configuration: a server, a network, a file that another program holds.

    Nothing is learned from it, and the configuration is tried again.
    """

    status = Status.LOST


SIGNALS: Mapping[str, type[Signal]] = {
    kind.status: kind for kind in (Infeasible, WrongAnswer, OutOfMemory, Diverged, Lost)
}
"""By the status that it ends a trial with."""


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
    """The seed of fresh random inputs; different for each trial and each round."""
    compiled: Path | None = None
    """The folder of :attr:`Objective.compile_cache`; ``None``: nothing is kept between searches."""
    ruled: frozenset[str] = frozenset()
    """The facts of the workload that rules of the space use, so that the objective need not know them."""

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
        """A fact that is one of a few texts; ``default`` where the workload lacks it or has ``null``."""
        value = self.workload.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            raise Infeasible(f"{name} should be one of {', '.join(choices)}, and is {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """A fact that is true or false; false where the workload lacks it. The text ``no`` is neither."""
        value = self.workload.get(name, False)
        if not isinstance(value, bool):
            raise Infeasible(f"{name} should be true or false, and is {value!r}")
        return value


def size_in(workload: Mapping[str, Any], name: str, default: int | None = None, *, least: int = 1) -> int:
    """A size of a workload: a whole number, ``least`` or more; ``default`` where the workload lacks it.

    Raises :class:`Infeasible` for anything else: ``int`` would turn 1.5 into 1, and a size of 0 would be
    measured as very fast.
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
    first of them is measured, and the others share its result. Empty: nothing is shared."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What it takes, by name: ``registers``, ``spilled_bytes``, ``shared_bytes`` ...; strategies see it."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What else is worth keeping with the trial, as JSON."""
    hopeless: str = ""
    """Why it is certainly not worth running; its trial then ends as ``pruned``. Empty: it may be."""


@dataclass(frozen=True)
class Baseline:
    """Something to compare a winner with, measured like a trial but not a configuration of the space.

    ``environment`` are variables set in the process that measures it (``OPENBLAS_CORETYPE``, say).
    """

    name: str
    description: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


class Objective:
    """Base class of objectives written in Python. Only :meth:`measure` must be overridden.

    One instance lives in each process that prepares or measures; ``__init__`` must be cheap. What a
    configuration changes in its process (folder, environment variables, output, limits) is undone after it;
    set what should stay in ``__init__``, or when the module is loaded.
    """

    sources: ClassVar[tuple[str, ...]] = ()
    """Further files that belong to the frozen source, relative to the file of the class that names them. They
    are read from its text without running it, so name each as a text; base classes and constants of the same
    project may name some too."""

    workload_facts: ClassVar[tuple[str, ...] | None] = None
    """The facts that a workload may have; ``None``: any. Any other fact is an error before the first trial,
    unless a rule of the space uses it: see :mod:`autotune.measure.loading.facts`."""

    checks_ahead: ClassVar[bool] = False
    """Whether :meth:`load` and :meth:`check` also work in a preparing process, which has no device of its
    own. The measuring core then spends no time on checks."""

    worth_seconds: float = math.inf
    """A run that takes longer than this many seconds is far worse than the best so far. Where the goal is the
    time of the run itself, :meth:`measure` may end it then and return a :class:`Sample` that is
    ``cut_off``."""

    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Use ``with self.waiting():`` around a wait for another search (for a lock, say): that time does not
    count towards the trial's limit."""

    note_facts: Callable[[Mapping[str, object]], None] | None = None
    """An objective that runs programs calls this with facts that come while one runs: they are kept with the
    trial however it ends, also if it is killed at its limit."""

    report: Reporter = SILENT
    """For early stopping: call ``self.report(step, loss=...)`` in :meth:`measure`; that call may end the
    trial. One call of :meth:`measure` is then the whole trial, and it may return nothing."""

    memory: PeakMemory | None = None
    """Measures the memory of a trial. An objective that runs programs calls its ``note`` for each of them."""

    final: bool = False
    """Whether this is the re-measurement that defends a winner. Data that a search must not see, a test split
    say, may be used only then; a bound of such a metric holds for the winner."""

    constant_inputs: Mapping[str, float] = MappingProxyType({})
    """The inputs of the last :meth:`check` that were one number throughout, by name: the user is told so."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def is_warm(self) -> bool:
        """Whether everything that a warm-up would warm is warm already; default: never."""
        return False

    @property
    def warms_up(self) -> bool:
        """Whether :meth:`measure` itself warms up when it is given another ``rng``; default: no.

        If so, a re-measurement does not take a reading that only warms caches before the one that counts.
        """
        return False

    @cached_property
    def compile_cache(self) -> CompileCache:
        """What :meth:`prepare` compiled in this and earlier searches, by a key of everything that went in."""
        return CompileCache(self.context.compiled)

    @cached_property
    def prepared_data(self) -> PreparedData:
        """Data sets that were prepared in this search and, given ``context.compiled``, in earlier ones."""
        return PreparedData((self.context.compiled or self.context.cache) / "data")

    @property
    def prepares(self) -> bool:
        """Whether a configuration is prepared ahead of its turn, in a preparing process."""
        return type(self).prepare is not Objective.prepare

    def standing(self) -> frozenset[int]:
        """Ids of processes that it keeps between configurations, and that are not killed. Default: none."""
        return frozenset()

    def stand_by(self) -> None:
        """Do what would cost the first trial seconds: wake a device, load a library. Default: nothing.

        Called in a measuring process before its first trial, perhaps while that is still being prepared. It
        is not called where the device is shared with other searches, so nothing may depend on it. Exceptions
        are ignored; if the process dies or hangs in it, another one takes over without calling it. In a
        re-measurement (:attr:`final`) other processes do the same on the same device at that moment, so
        nothing may be timed in it.
        """

    def knob_problems(self, knobs: Collection[str]) -> list[Problem]:
        """What is wrong with the names of a space's ``knobs`` for this objective; default: nothing."""
        return []

    def prepare(self, configuration: Configuration) -> Any:
        """Compile or otherwise make ready. Must return something picklable; default: the configuration."""
        return configuration

    def code(self, prepared: Any) -> Code:
        """What is known of ``prepared`` before it runs; called in the process that prepared it."""
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
        """How far the first readings of a configuration may be off, as a fraction; default: 0, not at all.

        Where it is above 0, a search takes a few readings to see whether the configuration is far worse than
        the best. If not, it calls :meth:`settle` and reads it anew.
        """
        return 0.0

    def settle(self, loaded: Any) -> bool:
        """Bring what is measured into the steady state that it has in use; default: nothing.

        Returns whether earlier readings are to be discarded. A re-measurement (:attr:`final`) does not call
        it: there each reading has to be of the steady state.
        """
        return False

    @property
    def shared_error(self) -> float:
        """How far all readings just taken may be off together, as a fraction; default: 0, not at all.

        It is a standard deviation: of the state of a device, say, which stays the same while one
        configuration is read. It widens the interval of the configuration, and readings end when more of them
        would hardly narrow it.
        """
        return 0.0

    @property
    def averaged(self) -> bool:
        """Whether the last reading was a mean of many, whose error is :attr:`shared_error` and little more.

        Default: no. If so, a search reads a configuration once, or as often as ``min_readings`` in the space
        file says, and earlier readings of the same trial that were no such means are discarded.
        """
        return False

    def baselines(self) -> Sequence[Baseline]:
        """The vendor's and other baselines that can be run on this machine; default: none."""
        return ()

    def load_baseline(self, baseline: Baseline) -> Any:
        """What is passed to :meth:`check` and :meth:`measure` as ``loaded`` for ``baseline``."""
        raise NotImplementedError(f"{type(self).__name__} must define load_baseline()")


MeasureFunction = Callable[..., Mapping[str, float] | float | None]
"""A plain function ``f(**knobs)`` (or ``f(configuration)``) that returns a metric or several."""
