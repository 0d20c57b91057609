"""One workload of a family, from before its study is opened until the search of all has ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune.errors import AutotuneError
from autotune.provenance.environment import Environment
from autotune.session.families.budget import Standing
from autotune.session.families.standing import Follower
from autotune.session.opening.opening import open_study, study_of_source
from autotune.space.spec import Family, StudySpec
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.statements.room import Counted
from autotune.store.store import Store


@dataclass
class Member:
    """One workload of a family and the state of its search: the attributes after the first four change."""

    place: int
    """Its index in the family."""
    spec: StudySpec
    label: str
    held_out: bool
    """Whether it is only measured, not searched."""
    failure: AutotuneError | None = None
    """Why it was given up; ``None`` if it was not."""
    closed: str = ""
    """Why nothing more of it is tried; empty as long as there is anything to try."""
    _opened: tuple[StudyRecord, Follower] | None = field(default=None, repr=False)

    @classmethod
    def all_of(cls, family: Family) -> list[Member]:
        """All workloads of ``family``, in its order."""
        each = zip(family.specs, family.held_out, strict=True)
        return [cls(place, spec, family.label(place), out) for place, (spec, out) in enumerate(each)]

    def open(
        self, store: Store, environment: Environment, *, fresh: bool = False, goes_on: bool = False
    ) -> tuple[str, ...]:
        """Open its study, with options as :func:`open_study` has them; returns notes for the user."""
        opened = open_study(self.spec, store, environment, fresh=fresh, goes_on=goes_on)
        self._opened = opened.record, Follower(store, opened.record.id, self.spec)
        self.closed = ""
        return opened.notes

    def is_edited(self, store: Store, environment: Environment) -> bool:
        """Whether its study is no longer that of the objective's source, which was edited since."""
        now = study_of_source(self.spec, store, environment)
        return now is None or now.id != self.study.id

    @property
    def study(self) -> StudyRecord:
        assert self._opened is not None, "its study was not opened"
        return self._opened[0]

    @property
    def standing(self) -> Standing:
        """Where its search stands now."""
        return self._follower.standing(bool(self.closed))

    def count(self) -> tuple[int, Counted]:
        """How many tries there are, and up to which proposal they were counted."""
        return self._follower.count()

    def tried(self, store: Store) -> list[TrialRecord]:
        """The search trials that its space still contains; no others count, as in any session."""
        trials = store.trials(self.study.id, purpose="search")
        return [trial for trial in trials if trial.configuration in self.spec.space]

    @property
    def _follower(self) -> Follower:
        assert self._opened is not None, "its study was not opened"
        return self._opened[1]
