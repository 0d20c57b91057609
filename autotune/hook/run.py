"""``autotune.run``: a few lines in a training script that let a search tune it, and later read the winner.

::

    with autotune.run("train-digits") as run:
        lr = run.knob("lr", default=1e-3)
        for step in range(1, steps + 1):
            ...
            run.report(step, loss=loss)      # may end the trial early
            if run.should_stop:
                break

Without a search, each knob has its default and nothing else happens. Only the standard library is imported,
and as little of it as possible.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from autotune.hook.runs.knobs import Knobs

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from pathlib import Path
    from types import TracebackType

    from autotune.hook.runs.link import Link
    from autotune.hook.runs.ranks import Rank, Stop
    from autotune.hook.runs.reports import Reports

T = TypeVar("T")

_DOCUMENT = "AUTOTUNE_RUN"
_FOLDER = "AUTOTUNE_FOLDER"
_SEED = "AUTOTUNE_SEED"


class Run:
    """One training, from its knobs to its result; see :func:`run`. Use ``with``, or call :meth:`close`."""

    def __init__(
        self,
        name: str,
        *,
        recipes: bool = False,
        workload: Mapping[str, object] | None = None,
        rank: int | None = None,
        ranks: int | None = None,
    ) -> None:
        self.name = name
        self._knobs = Knobs(name, workload, recipes=recipes)
        self._link: Link | None = None
        self._place = _place(rank, ranks)
        self._rank: Rank | None = None
        """The rank when the run was opened; set under a search only."""
        self._is_open = False
        """Whether a search started this run and it is not closed yet."""
        self._stop: Stop | None = None
        """Made when first needed: a framework may start its ranks only after the run was opened."""
        self._reports: Reports | None = None
        """Set in the process that reports (rank 0) only."""
        self._reported = 0
        """The last step that this rank reported."""
        self._polite = False
        """Whether the script reads :attr:`should_stop`; then no report raises ``Stopped``."""
        self._stopped = False
        if document := os.environ.get(_DOCUMENT):
            self._open(document)

    def _open(self, document: str) -> None:
        import atexit

        from autotune.hook.runs.link import Link, LinkError, warn
        from autotune.hook.runs.ranks import find_rank
        from autotune.hook.runs.reports import Reports

        rank = find_rank(self._place)
        try:
            link = Link(document, reports=rank.number == 0)
        except LinkError as error:
            warn(f"{error}; the run {self.name!r} has its defaults")
            return
        if link.again:
            warn(
                f"the run {self.name!r} is opened after another one of the same trial: its reports continue"
                " those, and its last value counts. For folds or repeats, open one run and report their mean"
            )
        if link.role == "nested":
            warn(f"the run {self.name!r} is inside another one: only that is tuned, this has its defaults")
            link.close()
            return
        if link.role == "other":
            warn(f"another process of this trial reports: the run {self.name!r} has its knobs, but no report")
        self._rank = rank
        self._link = link
        self._knobs.searched = link.facts["knobs"]
        self._is_open = True
        if link.role == "reporter":
            self._reports = Reports(link, self.name)
        atexit.register(self.close)

    # -- knobs ---------------------------------------------------------------------------------

    def knob(self, name: str, default: T) -> T:
        """The value to use for the knob ``name``, in the type of ``default`` if that is a plain value.

        It is the first of these that there is: what ``--set`` says (:meth:`add_arguments`), the value that
        the search tries, the recipe's value if recipes were asked for, and ``default``. A text that the
        search tries stays a text. A text given by ``--set`` is parsed; if it cannot be, the script ends
        with the usage of its parser (``ValueError`` if the parser has ``exit_on_error=False``).

        Raises :class:`~autotune.InputError` for a knob that is both set and searched: the search would record
        another value than the one that ran.
        """
        return self._knobs.knob(name, default)

    @property
    def searching(self) -> bool:
        """Whether a search has started this process and chooses its knobs."""
        return self._link is not None

    @property
    def source(self) -> str:
        """Where the knobs asked for so far are from: ``search``, ``recipe``, ``--set``, ``default``."""
        return self._knobs.source

    def describe(self) -> str:
        """One line for each knob asked for so far: its value, where it is from, and its default.

        If any is from a recipe, a last line says how the recipe was chosen.
        """
        return self._knobs.describe()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Give ``parser`` the argument ``--set NAME=VALUE``, to be parsed before the knobs are asked for."""
        self._knobs.add_arguments(parser)

    # -- under a search ------------------------------------------------------------------------

    @property
    def steps(self) -> int | None:
        """How many steps a complete trial has; ``None`` where no search says that."""
        return self._link.facts.get("steps") if self._link is not None else None

    @property
    def seed(self) -> int | None:
        """A number that differs between repetitions of a trial; ``None`` without a search."""
        text = os.environ.get(_SEED) if self.searching else None
        return int(text) if text else None

    @property
    def folder(self) -> Path | None:
        """A folder for the checkpoints of this configuration; ``None`` without a search.

        It is kept while the search lasts, so that a paused trial that goes on finds what it saved.
        """
        text = os.environ.get(_FOLDER) if self.searching else None
        if not text:
            return None
        from pathlib import Path

        return Path(text)

    def may_pause(self, step: SupportsIndex) -> bool:
        """Whether the search may pause the training at the report of ``step``, to go on from there later.

        If so, save a checkpoint in :attr:`folder` before that report. All ranks get the same answer.
        """
        if not self._is_open or self._link is None or not self._link.facts.get("pauses"):
            return False
        whole = _whole(step)
        return any(self._reported < rung <= whole for rung in self._link.facts["decide_at"])

    def report(self, step: SupportsIndex, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Report that ``step`` steps are done, and the metrics so far: numbers, or what ``float`` accepts.

        All ranks should call it; only the report of rank 0 reaches the search. It does not wait, except at a
        step where the trial may be paused, for the answer. If the search ends the trial and the script has
        never read :attr:`should_stop`, this raises :class:`~autotune.measure.stopped.Stopped`, which the
        ``with`` block of the run catches.

        Raises ``TypeError`` for a step that is no whole number, and for metrics without names.
        """
        if not self._is_open:
            return
        step = _whole(step)
        if self._reports is not None:
            self._reports.take(step, _by_name(metrics, named))
        self._reported = step
        if self._stopper().after(step):
            self._stopped = True
            if not self._polite:
                from autotune.measure.stopped import Stopped
                from autotune.status import Status

                raise Stopped(Status.PRUNED, f"the search ends this trial after step {step}")

    def result(self, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Give the metrics of the whole run if they are not those of its last report (the best loss, say)."""
        if self._reports is not None:
            self._reports.result(_by_name(metrics, named))

    def fact(self, name: str, value: object) -> None:
        """Keep something with the trial that is no metric: where its checkpoint lies, which path it took.

        ``value`` is JSON; scalars of numpy and torch become numbers. All ranks may call it; only the facts of
        rank 0 reach the search, at once. The last value of a name counts. Raises ``TypeError`` for a value
        that is no JSON, and ``ValueError`` for a name that autotune uses itself, or one that is too large.
        """
        if self._reports is not None and self._is_open:
            self._reports.fact(name, value)

    @property
    def should_stop(self) -> bool:
        """Whether the search ends the trial: then leave the loop. All ranks see it after the same step."""
        if self._is_open:
            self._polite = True
            self._stopped = self._stopper().asked() or self._stopped
        return self._stopped

    def _stopper(self) -> Stop:
        if self._stop is None:
            from autotune.hook.runs.ranks import Stop, find_rank

            assert self._link is not None
            self._stop = Stop(self._link.words, self._link.board, find_rank(self._place))
        return self._stop

    @property
    def dropped(self) -> int:
        """How many messages to the search were dropped: the socket was full, or they were too large."""
        return self._link.dropped if self._link is not None else 0

    # -- the end -------------------------------------------------------------------------------

    def close(self, error: BaseException | None = None) -> None:
        """End the run: send the search its last values, and the ``error`` that ended it if there was one.

        A second call does nothing, and neither does one in a process that was forked from the run's.
        """
        if not self._is_open or self._link is None or not self._link.own:
            return
        import atexit

        atexit.unregister(self.close)
        self._is_open = False
        if self._stop is not None:
            self._stop.forget()
        try:
            if self._reports is not None:
                self._reports.end(self._knobs.defaults, error)
            elif not self._link.has_reporter:
                self._say_that_nobody_reports()
        finally:
            self._link.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:  # a run that failed may not have asked for all its knobs yet
            self._knobs.say_what_was_not_asked()
        stopped = self._stopped and error is not None and _is_stop(error)
        self.close(None if stopped else error)
        return stopped

    def _say_that_nobody_reports(self) -> None:
        """Warn that no rank 0 opened a run. A stale ``RANK`` makes a rank of a process that is alone."""
        from autotune.hook.runs.link import warn

        assert self._rank is not None
        warn(
            f"the run {self.name!r} is of rank {self._rank.number} of {self._rank.count}, and only rank 0"
            " reports, which opened no run (the rank is from RANK or the like, or rank= of autotune.run)"
        )


def run(
    name: str,
    *,
    recipes: bool = False,
    workload: Mapping[str, object] | None = None,
    rank: int | None = None,
    ranks: int | None = None,
) -> Run:
    """Open a run: the hook of a training script. Use it as a context.

    ``name`` is the name of the study whose recipe is wanted; messages use it too. With ``recipes=True`` and
    without a search, knobs have the values of the best recipe known for ``workload`` on this device
    (:func:`autotune.recipe`), or else their defaults. ``rank`` (from 0) and ``ranks`` (their number) say
    which process of a distributed training this is, if no launcher says so by ``RANK`` and ``WORLD_SIZE``.

    Raises :class:`~autotune.InputError` for a rank that is not between 0 and ``ranks - 1``.
    """
    return Run(name, recipes=recipes, workload=workload, rank=rank, ranks=ranks)


def _place(rank: SupportsIndex | None, ranks: SupportsIndex | None) -> tuple[int, int] | None:
    """The rank and the number of ranks, if given; without ``ranks``, the smallest number that is possible."""
    if rank is None:
        return None
    try:
        number = operator.index(rank)
        count = number + 1 if ranks is None else operator.index(ranks)
    except TypeError:
        number, count = 0, 0
    if not 0 <= number < count:
        from autotune.errors import InputError, Problem

        of = "" if ranks is None else f" of {ranks!r:.40}"
        raise InputError(
            Problem(f"rank is {rank!r:.40}{of}", expected="0, 1, 2 ... below the number of ranks")
        )
    return number, count


def _by_name(metrics: Mapping[str, Any] | None, named: dict[str, Any]) -> dict[str, Any]:
    if metrics is None:
        return named
    from autotune.arguments import by_name

    return by_name(metrics, named)


def _whole(step: SupportsIndex) -> int:
    try:
        return operator.index(step)
    except TypeError:
        from autotune.arguments import no_step

        raise no_step(step) from None


def _is_stop(error: BaseException) -> bool:
    from autotune.measure.stopped import Stopped

    return isinstance(error, Stopped)
