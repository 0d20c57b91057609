"""What a strategy is: ask and tell.

A strategy is a pure function of the problem, the seed and what it was told: it reads no clock, no
file and no global state, and draws every random number from the generator it is handed. So a
resumed or replayed session proposes the same.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import ClassVar, TypeAlias

import numpy as np

from autotune import errors
from autotune.search.candidates.untried import untried
from autotune.space.configuration import Configuration
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

Option: TypeAlias = float | int | str | bool
"""What an option of a strategy can be set to."""

Reason: TypeAlias = Mapping[str, object]
"""Why a configuration was proposed, as JSON: at least ``{"strategy": ..., "kind": ...}``, then what
the strategy knew (``parent``, ``predicted``, ``spread``, ``arm`` ...). Stored with the trial, and put into
words by :mod:`autotune.report.words.reasons`.

``predicted`` is in the metric's own unit. ``spread`` is the standard deviation of the prediction: of the
metric's natural logarithm where ``logarithmic`` is true, else in its unit. With several goals each is a
mapping by the metric's name. ``sources`` says how much each earlier study weighed, by its label."""


@dataclass(frozen=True)
class Problem:
    """What is searched: the space and the metrics. Of metrics with a goal the first is the most important."""

    space: Space
    metrics: tuple[MetricSpec, ...]
    budget: int | None = None
    """How many trials there will be at most, where that is known."""
    options: Mapping[str, Option] = field(default_factory=dict)
    """The strategy's own options from ``search: {options: ...}``."""
    sources: tuple[Source, ...] = ()
    """Earlier studies to learn from; a strategy may leave them aside."""
    seconds: float | None = None
    """How long the trials may take together, where that is known."""
    memory: float | None = None
    """The memory cap, in bytes: a trial that needs more runs out of it. ``None``: not known beforehand."""
    default_first: bool = True
    """Whether the space's default is a configuration that somebody uses, and so is tried first."""
    first: tuple[Configuration, ...] = ()
    """Configurations that somebody thinks good: tried next, before the strategy proposes any of its own."""
    judged: str = ""
    """The metric by which trials are stopped early, and that their curves show; empty: the first goal."""

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        return tuple(m for m in self.metrics if m.goal)


@dataclass(frozen=True)
class Observation:
    """What one trial taught. ``metrics`` holds means; it is empty where the trial failed.

    ``errors`` holds the standard error of a mean where it is known; ``resources`` what was used
    of a bounded resource (peak memory in bytes, say); ``seconds`` what the trial cost. It ``began`` and
    ``ended`` at these times, in seconds since some moment; both are 0 where that is not known.
    ``bounded`` holds what was measured in a trial that is ``wrong``: no result, but it says how far past a
    bound the trial is.

    A trial that was stopped early used a ``fraction`` of its resource, and its metrics are those of that
    moment. ``curve`` holds ``(fraction, value)`` of the judged metric at the rungs that a trial has passed.

    A trial that is ``paused`` may go on; then a later observation replaces this one.

    ``reason`` is that of the proposal from which the trial came; empty for a trial that nobody proposed.
    """

    configuration: Configuration
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    bounded: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    fraction: float = 1.0
    curve: tuple[tuple[float, float], ...] = ()
    paused: bool = False
    reason: Reason = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """An earlier study of the same thing elsewhere: on another device, of another workload or version.

    Its trials may lie outside the space that is searched now; what they taught need not hold here.
    """

    label: str
    observations: tuple[Observation, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What is known of where it was measured, for people: ``{"device": ..., "workload": ...}``."""
    apart: float | None = None
    """How unlike the two workloads are, if nothing else differs between the studies; else ``None``."""


@dataclass(frozen=True)
class Proposal:
    """A configuration to try next, and why."""

    configuration: Configuration
    reason: Reason


class Strategy(ABC):
    """Proposes configurations. Subclasses implement :meth:`propose` and may override :meth:`learn`.

    The base class keeps the books: what was asked, what was told, and that no configuration is
    proposed twice. ``propose`` is handed a generator seeded by ``(seed, number of the ask)`` so
    that nothing random has to be carried from one ask to the next. What a subclass keeps between
    asks is a cache: it must follow from :attr:`usable`, in its order, and from nothing else.

    The first proposal of every strategy is the space's default, where that is feasible: it is what
    the user has today, what the answer will be compared with, and often not bad. Next come the
    configurations that the user wants tried first.
    """

    name: ClassVar[str]
    defaults: ClassVar[Mapping[str, Option]] = {}
    """The options that the strategy understands, with the value each has unless the user says otherwise."""
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """The smallest and the largest value of an option that is a number; one without an entry is 0 or more."""
    hears_paused: ClassVar[bool] = False
    """Whether it learns from trials that are paused; if not, they do not count before they have ended."""
    learns_from_sources: ClassVar[bool] = False
    """Whether it makes use of :attr:`Problem.sources`."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        """Raises :class:`~autotune.errors.InputError` for options that :meth:`checked` refuses."""
        self.problem = problem
        self.space = problem.space
        self.seed = seed
        self.options = self.checked(problem.options)
        self.told: list[Observation] = []
        """All observations so far, in the order in which their trials finished; never of a ``lost`` one."""
        self.usable: list[Observation] = []
        """Those of configurations in this space; others were tried before the space was narrowed."""
        self.taken: set[str] = set()
        """Canonical hashes of all configurations that were proposed, told or reserved."""
        self.pending: dict[str, Configuration] = {}
        """Proposed and not yet told, by hash, in the order of proposing."""
        self.asks = 0

    @classmethod
    def checked(cls, given: Mapping[str, Option]) -> Mapping[str, Option]:
        """All options, as ``given`` or by default.

        Raises :class:`~autotune.errors.InputError` for one that the strategy does not have, that has another
        type than the default, or that is past its limits.
        """
        problems = []
        for name, value in given.items():
            if name not in cls.defaults:
                known = ", ".join(sorted(cls.defaults)) or "no options"
                message = f"the strategy {cls.name!r} has no option {name!r}"
                problems.append(
                    errors.Problem(message, expected=known, hint=errors.nearest(name, cls.defaults))
                )
                continue
            default, (low, high) = cls.defaults[name], cls.limits.get(name, (0.0, math.inf))
            if not _fits(value, default, low, high):
                message = f"the option {name!r} of the strategy {cls.name!r} cannot be {value!r:.60}"
                problems.append(errors.Problem(message, expected=_said(default, low, high)))
        if problems:
            raise errors.InputError(problems)
        return {**cls.defaults, **given}

    def ask(self, n: int = 1) -> list[Proposal]:
        """Up to ``n`` configurations never proposed before; fewer where the space is exhausted."""
        rng = np.random.default_rng((self.seed, self.asks))
        self.asks += 1
        fresh = list(islice(self._opening(), n))
        if len(fresh) < n:
            for proposal in self.propose(n - len(fresh), rng):
                if proposal.configuration.hash not in self.taken:
                    self._take(proposal.configuration)
                    fresh.append(proposal)
                if len(fresh) == n:
                    break
        return fresh

    def tell(self, observations: Iterable[Observation]) -> None:
        """Learn from finished trials, in the order in which they finished.

        A configuration that the strategy never proposed is as welcome as its own. A ``lost`` trial
        says nothing about its configuration, which stays pending until it has been tried again.
        """
        heard = (o for o in observations if o.status is not Status.LOST)
        batch = [o for o in heard if self.hears_paused or not o.paused]
        for observation in batch:
            self.taken.add(observation.configuration.hash)
            self.pending.pop(observation.configuration.hash, None)
        inside = [o for o in batch if o.configuration in self.space]
        self.told.extend(batch)
        self.usable.extend(inside)
        self.learn(inside)

    def reserve(self, configurations: Iterable[Configuration]) -> None:
        """Others have proposed these: they are in flight, and are not to be proposed again."""
        for configuration in configurations:
            if configuration.hash not in self.taken:
                self._take(configuration)

    def expected(self) -> Mapping[str, float]:
        """What a model expects of the best configurations told, by hash: lower is better, without a unit.

        A noisy reading may be a lucky one; a model has also seen what similar configurations came to. Empty
        where there is no model.
        """
        return {}

    def restore(self, asks: int, proposed: Sequence[Configuration], told: Sequence[Observation]) -> None:
        """Take up the state of an earlier session that asked ``asks`` times, and was told this."""
        self.reserve(proposed)
        self.asks = asks
        self.tell(told)

    @property
    def known(self) -> list[Configuration]:
        """The configurations behind :attr:`taken`: told ones, then pending ones."""
        return [*(o.configuration for o in self.told), *self.pending.values()]

    def newcomers(self, rng: np.random.Generator) -> Iterator[Configuration]:
        """What was never proposed, drawn uniformly from the feasible configurations until none is left."""

        def known() -> Iterator[Configuration]:
            yield from self.known  # listed once it is needed: late in a small space, never in a large one

        return untried(self.space, rng, self.taken, known())

    @cached_property
    def _default(self) -> Configuration:
        return self.space.configuration({})

    def _opening(self) -> Iterator[Proposal]:
        """What is tried before the strategy proposes anything of its own, as far as it was not tried yet."""
        opening = [(one, "given") for one in self.problem.first]
        if self.problem.default_first:
            opening.insert(0, (self._default, "default"))
        for configuration, kind in opening:
            if configuration.hash not in self.taken and configuration in self.space:
                self._take(configuration)
                yield Proposal(configuration, {"strategy": self.name, "kind": kind})

    def _take(self, configuration: Configuration) -> None:
        self.taken.add(configuration.hash)
        self.pending[configuration.hash] = configuration

    @abstractmethod
    def propose(self, n: int, rng: np.random.Generator) -> Iterable[Proposal]:
        """Candidates for the next ``n`` trials, best first, none of them in :attr:`taken`.

        It may be a generator: what it yields is in :attr:`taken` and :attr:`pending` by the time
        it goes on. An empty answer says that the strategy has nothing left to propose.
        """

    def learn(self, observations: Sequence[Observation]) -> None:  # noqa: B027
        """Hook: new observations, each of a configuration in the space, have joined :attr:`usable`."""


def _fits(value: object, default: Option, low: float, high: float) -> bool:
    """Whether ``value``, which may be anything, has the type of ``default`` and is within limits.

    An integer will do for a float. Numbers that no float holds are not within any limits.
    """
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(value, str) or isinstance(default, str):
        return isinstance(value, str) and isinstance(default, str)
    if not isinstance(value, int if isinstance(default, int) else int | float):
        return False
    return low <= value <= high and abs(value) <= sys.float_info.max


def _said(default: Option, low: float, high: float) -> str:
    """What an option with this default and these limits must be, in words."""
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, str):
        return f"a text, such as {default!r}"
    kind = "a number" if isinstance(default, float) else "a whole number"
    reach = f"{low:g} or more" if math.isinf(high) else f"from {low:g} to {high:g}"
    return f"{kind}, {reach}, such as {default!r}"
