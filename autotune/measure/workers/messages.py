"""What a session and its workers say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.errors import Problem
from autotune.measure.objective import Baseline, Context
from autotune.measure.outcome import Estimate, Outcome, Reading, Report
from autotune.measure.reports import Curve
from autotune.measure.workers.limits import MemoryCap
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec, ObjectiveSpec, Share


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: what it will prepare or measure."""

    objective: ObjectiveSpec
    context: Context
    metrics: tuple[MetricSpec, ...]
    settings: MeasureSettings
    knobs: tuple[str, ...] = ()
    """Names of all knobs, which the parameters of a function have to fit; empty: not known."""
    cores: tuple[int, ...] = ()
    """Hardware threads to be pinned to; empty: not pinned."""
    cap: MemoryCap | None = None
    repeats: bool = True
    """Whether it repeats readings until they are enough, and so loads the rules for that before its first
    trial. Workers that prepare do not, nor do those of a re-measurement."""
    hash_seed: int = 0
    """Seed of Python's hashes of texts, unless the user has set one. The order of sets and the time of their
    look-ups depend on it, so workers whose readings are compared have the same seed."""
    stands_by: bool = False
    """Whether :meth:`autotune.measure.objective.Objective.stand_by` is called before its first request."""
    curve: Curve | None = None
    """How the run of a trial is followed, under early stopping; ``None``: a reading is no such run."""
    share: Share = field(default_factory=Share)
    """The time for the readings of one trial; see :attr:`~autotune.space.spec.Budget.share`."""


# -- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepare:
    """Prepare a configuration; answered by :class:`Prepared`."""

    configuration: Configuration


@dataclass(frozen=True)
class Check:
    """Load and check a configuration ahead of its turn; answered by :class:`Checked`."""

    configuration: Configuration
    prepared: bytes
    seed: int


@dataclass(frozen=True)
class Measure:
    """Load, check and read one configuration within ``seconds``; answered by :class:`Measured`."""

    configuration: Configuration
    prepared: bytes | None
    """The pickle that :class:`Prepared` brought; ``None``: nothing was prepared ahead of its turn."""
    seed: int
    seconds: float
    incumbent: Estimate | None = None
    curve: Curve | None = None
    """How its one run is followed; ``None``: it is read until it is known well enough."""
    checked: tuple[Reading, ...] | None = None
    """What a :class:`Check` has read before; ``None``: it still has to be checked."""
    paid: float = 0.0
    """Seconds that preparing it took."""


@dataclass(frozen=True)
class Enter:
    """Load and check ``what`` and keep it, for later readings; answered by :class:`Measured`."""

    what: Configuration | Baseline
    prepared: bytes | None
    seed: int
    warm_up: bool = True
    """Whether it is read once to warm it up; not while others enter, beside which that says nothing."""


@dataclass(frozen=True)
class Read:
    """One reading of what :class:`Enter` has loaded; answered by :class:`Measured`."""

    seed: int


Request = Prepare | Check | Measure | Enter | Read


# -- while a request is answered ---------------------------------------------------------------


@dataclass(frozen=True)
class Reported:
    """How far the run has come. Where it ``waits``, :class:`Decided` answers; nothing else does."""

    report: Report
    waits: bool


@dataclass(frozen=True)
class Decided:
    """The decision on a report that waits: ``why`` the run must end; empty: it may go on."""

    why: str = ""


# -- answers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    """The objective is made; the worker waits for requests, or first sends :class:`StoodBy`."""

    prepares: bool
    """Whether there is anything to prepare ahead of a configuration's turn."""
    checks_ahead: bool
    """Whether what was prepared may be checked ahead of its turn, too."""
    baselines: tuple[Baseline, ...]
    stands_by: bool = False
    """Whether it has something to do before its first request."""


@dataclass(frozen=True)
class StoodBy:
    """The objective has done what it does before the first request; the worker waits for requests."""


@dataclass(frozen=True)
class Refused:
    """The objective cannot be used at all; the user's input is at fault."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Prepared:
    """``prepared`` is the pickle of what was made, ``None`` where that failed as ``outcome`` says."""

    outcome: Outcome
    prepared: bytes | None = None
    leftovers: str = ""


@dataclass(frozen=True)
class Checked:
    """``ok``, with what the check has read, or how it failed."""

    outcome: Outcome
    leftovers: str = ""


@dataclass(frozen=True)
class Measured:
    """``leftovers``, in all answers: what a trial left behind, if its worker is to end for that."""

    outcome: Outcome
    leftovers: str = ""


Answer = Prepared | Checked | Measured


@dataclass(frozen=True)
class Noted:
    """What a worker noted during a request: all that is left of a trial whose process died."""

    phase: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each phase that was finished, and of ``phase`` so far."""
    readings: tuple[Reading, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
