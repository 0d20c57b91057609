"""Whether trials fail for a reason that no configuration can mend, so that going on is useless.

Hidden limits can make the first dozens of trials fail, all with the same message. So a search only ends if
every trial of its study has failed by the same *mistake* (:mod:`autotune.measure.phases.mistakes`), the
default included, in configurations that differ in every knob. A mistake that certainly does not depend on
the configuration (no knob reaches the program, say) ends it sooner. If all trials fail otherwise, the user
is only told so.

A trial that was stopped early may have shown a mistake as well: until then it had not asked for a knob. It
counts beside one that failed by that mistake, which shows that it would not have asked later either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from autotune.measure.facts import MISTAKE, SURE
from autotune.session.liveness import lives
from autotune.session.observing import Finished
from autotune.space.configuration import Configuration, Value
from autotune.status import Status
from autotune.store.records import StudyRecord
from autotune.store.store import Store

MISTAKEN = "the same mistake in every trial"
"""The reason of a search that ended for it."""

ENOUGH = 10
"""How many failures are enough: a mistake of half the configurations only ends one search in a thousand."""

ENOUGH_SURE = 3
"""How many are enough of a mistake that certainly does not depend on the configuration. Not 1 or 2: a
program may by chance end too soon with an exit code of 0."""


@dataclass
class SameFailure:
    """Is told every result of a study. ``default``, if feasible, must be among them to end the search."""

    default: Configuration | None
    _with_default: bool = False
    _unvaried: dict[str, Value] | None = None
    """The knobs that had a single value so far; a knob that sometimes does not exist counts as varied."""
    _mistakes: set[str] = field(default_factory=set)
    _statuses: Counter[Status] = field(default_factory=Counter)
    _sure: bool = True
    """Whether all mistakes so far certainly do not depend on the configuration."""

    def hear(self, trial: Finished) -> None:
        """A trial has ended. Lost trials have no result, and are not told."""
        tried = trial.configuration
        self._with_default = self._with_default or tried == self.default
        before = tried if self._unvaried is None else self._unvaried
        self._unvaried = {name: value for name, value in before.items() if tried.get(name) == value}
        mistake = str(trial.facts.get(MISTAKE, ""))
        self._statuses[trial.status] += 1
        self._mistakes.add(mistake)
        self._sure = self._sure and trial.facts.get(SURE) is True

    @property
    def mistake(self) -> str:
        """The mistake by which all trials failed, once there are enough; else empty."""
        ends = self._statuses.keys() - {Status.PRUNED}
        if not (len(self._mistakes) == len(ends) == 1 and all(status.failed for status in ends)):
            return ""
        shown = self._tried >= ENOUGH_SURE if self._sure else self._tried >= ENOUGH and self._differ
        return next(iter(self._mistakes)) if shown else ""

    @property
    def doubt(self) -> str:
        """What to tell the user if all trials have failed, for whatever reasons; else empty."""
        if self._tried < ENOUGH or not all(status.failed for status in self._statuses):
            return ""
        among = ", the default among them," if self._with_default else ""
        counted = [f"{count} as {status}" for status, count in self._statuses.most_common()]
        how = f"all ended as {next(iter(self._statuses))}"
        if len(counted) > 1:
            how = f"all failed: {', '.join(counted[:-1])} and {counted[-1]}"
        return (
            f"the first {self._tried} trials{among} {how}. "
            "If no configuration can mend that, end the search with Ctrl-C"
        )

    @property
    def _tried(self) -> int:
        return self._statuses.total()

    @property
    def _differ(self) -> bool:
        """Whether the default was tried, and each knob has had several values, or there were many trials."""
        if self.default is not None and not self._with_default:
            return False
        return not self._unvaried or self._tried >= 2 * ENOUGH


def only_mistake(store: Store, study: StudyRecord) -> str:
    """The first mistake of a study in which every trial has failed by a mistake, or was stopped with it.

    Empty for any other study, and while a search of it is running.
    """
    ended = {status for status in store.study(study.id).counts if Status(status).finished}
    if ended - {Status.PRUNED} != {Status.CRASHED} or any(
        session.finished_at is None and lives(session) is not False for session in store.sessions(study.id)
    ):
        return ""
    trials = [trial for trial in store.trials(study.id, "search") if trial.status in ended]
    mistakes = [str(trial.facts.get(MISTAKE, "")) for trial in trials]
    return mistakes[0] if all(mistakes) else ""
