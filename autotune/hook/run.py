"""``autotune.run``: the few lines in a training script by which it is tuned, and later reads the winner.

::

    with autotune.run("train-digits") as run:
        lr = run.knob("lr", default=1e-3)
        for step in range(1, steps + 1):
            ...
            run.report(step, loss=loss)      # may end the trial early
            if run.should_stop:
                break

Where nobody is tuning, a knob is its default and nothing else happens. Only the standard library is loaded,
and of that as little as the case needs.
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
    """One training, from its knobs to its result: a context, or ended by :meth:`close`. See :func:`run`."""

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
        """As it was when the run was opened, under a search."""
        self._is_open = False
        """Whether a search follows the run; until it is closed."""
        self._stop: Stop | None = None
        """Made at the first look: a framework may start its ranks only after the run was opened."""
        self._reports: Reports | None = None
        """In the process that reports."""
        self._reported = 0
        """The last step that was reported, by this rank."""
        self._polite = False
        """Whether the script asks by itself whether to stop."""
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
                f"the run {self.name!r} is opened after another one of the same trial: its reports go on from"
                " there, and its last value counts. Of folds or repeats open one run, and report their mean"
            )
        if link.role == "nested":
            warn(f"the run {self.name!r} is inside another one, which alone is tuned; it has its defaults")
            link.close()
            return
        if link.role == "other":
            warn(f"another process of this trial reports; the run {self.name!r} has its knobs, and is silent")
        self._rank = rank
        self._link = link
        self._knobs.searched = link.facts["knobs"]
        self._is_open = True
        if link.role == "reporter":
            self._reports = Reports(link, self.name)
        atexit.register(self.close)

    # -- knobs ---------------------------------------------------------------------------------

    def knob(self, name: str, default: T) -> T:
        """The value to use for the knob ``name``: of the type of ``default`` where that is a plain value.
        A text that was searched stays one; one of ``--set`` is read, or ends the script with the usage of its
        parser (``ValueError`` where that has ``exit_on_error=False``).

        It is, in this order: what ``--set`` says (:meth:`add_arguments`), the value under search, the
        recipe's where recipes were asked for, and the default. A knob that is set and searched at once is an
        :class:`~autotune.InputError`: the search would believe in another value than the one that ran.
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
        """One line a knob that was asked for: its value, where it is from, and its default.

        Where any is from the recipe, a last line says how that was chosen.
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
        """Another number for each repetition; ``None`` where nobody is tuning."""
        text = os.environ.get(_SEED) if self.searching else None
        return int(text) if text else None

    @property
    def folder(self) -> Path | None:
        """A folder of this configuration's own for checkpoints, kept while the search lasts; else ``None``.

        A trial that was paused and goes on finds there what it left.
        """
        text = os.environ.get(_FOLDER) if self.searching else None
        if not text:
            return None
        from pathlib import Path

        return Path(text)

    def may_pause(self, step: SupportsIndex) -> bool:
        """Whether the training may be paused at the report of ``step``, to go on from there later.

        What it needs for that is to be saved before, in :attr:`folder`. All ranks are told the same.
        """
        if not self._is_open or self._link is None or not self._link.facts.get("pauses"):
            return False
        whole = _whole(step)
        return any(self._reported < rung <= whole for rung in self._link.facts["decide_at"])

    def report(self, step: SupportsIndex, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """``step`` steps are done, and the metrics are now these: numbers, or what ``float`` makes one of.

        Of several ranks all should call it; rank 0's is passed on. It never waits, but to hear whether the
        trial is paused at this step, where it may be. Where the trial is to end and the script has never
        looked at :attr:`should_stop`, it raises :class:`~autotune.measure.stopped.Stopped`, which the
        ``with`` of the run swallows.
        """
        if not self._is_open:
            return
        step = _whole(step)
        if self._reports is not None:
            self._reports.take(step, {**metrics, **named} if metrics else named)
        self._reported = step
        if self._stopper().after(step):
            self._stopped = True
            if not self._polite:
                from autotune.measure.stopped import Stopped
                from autotune.status import Status

                raise Stopped(Status.PRUNED, f"the search ends this trial after step {step}")

    def result(self, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """The metrics of the whole run, where they are not those of its last reports (the best loss, say)."""
        if self._reports is not None:
            self._reports.result({**(metrics or {}), **named})

    @property
    def should_stop(self) -> bool:
        """Whether the trial is to end; then leave the loop. All ranks see it after the same step."""
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
        """Messages to the search that were left out: they found no room, or were too large."""
        return self._link.dropped if self._link is not None else 0

    # -- the end -------------------------------------------------------------------------------

    def close(self, error: BaseException | None = None) -> None:
        """The run is over: the search is told its last values, and the ``error`` that ended it if one did.

        A second call does nothing, nor does one in a process that was forked from the run's.
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
                self._reports.end(self._knobs.asked, error)
            elif not self._link.has_reporter:
                self._say_that_nobody_reports()
        finally:
            self._link.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:  # one that was broken off may not have got to all its knobs
            self._knobs.say_what_was_not_asked()
        stopped = self._stopped and error is not None and _is_stop(error)
        self.close(None if stopped else error)
        return stopped

    def _say_that_nobody_reports(self) -> None:
        """A variable of a launcher that is long gone makes a rank of a process that is alone."""
        from autotune.hook.runs.link import warn

        assert self._rank is not None
        warn(
            f"the run {self.name!r} is of rank {self._rank.number} of {self._rank.count}, which leaves it to"
            " rank 0 to report, and that opened no run (RANK and the like say so, or rank= of autotune.run)"
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

    ``name`` is that of the study whose recipe is wanted, and stands in messages. ``recipes``: where nobody
    is tuning, knobs have the values of the best known recipe for ``workload`` on this device
    (:func:`autotune.recipe`), else their defaults. ``rank`` of ``ranks`` is which process of a training this
    is, where no launcher says so by ``RANK`` and ``WORLD_SIZE``.

    Raises :class:`~autotune.InputError` for a rank that is none.
    """
    return Run(name, recipes=recipes, workload=workload, rank=rank, ranks=ranks)


def _place(rank: SupportsIndex | None, ranks: SupportsIndex | None) -> tuple[int, int] | None:
    """Number and count, where somebody has said so; a count that was not said is the least that there are."""
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


def _whole(step: SupportsIndex) -> int:
    try:
        return operator.index(step)
    except TypeError:
        from autotune.arguments import no_step

        raise no_step(step) from None


def _is_stop(error: BaseException) -> bool:
    from autotune.measure.stopped import Stopped

    return isinstance(error, Stopped)
