"""Several searches of a study at once spend its budget together, and no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autotune.search.contract import Proposal
from autotune.session.api import capture_environment, open_many, open_session
from autotune.session.ledger import Ledger
from autotune.session.opening.loading import load_spec
from autotune.session.opening.opening import open_study
from autotune.session.opening.overrides import Overrides
from autotune.session.reproduction.derivation import derive
from autotune.space.spec import StudySpec
from autotune.store.records import NewTrial, Place, TrialRecord
from autotune.store.store import Store
from tests.session.bowl import bowl, spec
from tests.session.families.planted import Planted, family


class Beaten(Store):
    """A store in which others are always a moment quicker: they propose what ``others`` does first."""

    others: Callable[[], object] = staticmethod(lambda: None)

    def propose(self, place: Place, proposals: Sequence[NewTrial], **how: Any) -> list[TrialRecord | None]:
        self.others()
        return super().propose(place, proposals, **how)


@contextmanager
def another(given: StudySpec, file: Path) -> Iterator[Ledger]:
    """Another session of the study, which proposes and never ends a trial."""
    environment = capture_environment(given)
    with Store.open(file) as store:
        ledger = Ledger(given, store, open_study(given, store, environment), environment)
        yield ledger
        ledger.close("closed")


@pytest.fixture
def given(tmp_path: Path) -> StudySpec:
    return load_spec(spec(tmp_path), Overrides(trials=6, strategy="random"))


def test_no_trial_is_proposed_beyond_the_limit(tmp_path: Path, given: StudySpec) -> None:
    file = tmp_path / "study.db"
    with another(given, file) as first, another(load_spec(given, Overrides(seed=1)), file) as second:
        assert len(second.propose(1, limit=6)) == 1
        _beat(first, lambda: second.propose(2, limit=6))
        assert [len(first.propose(2, limit=6)), first.full] == [2, False]
        assert [len(first.propose(2, limit=6)), first.full] == [0, True]
        assert first.propose(3, limit=6) == second.propose(3, limit=6) == []
        assert first.spent.trials == second.spent.trials == 6


def test_proposals_that_found_no_room_follow_from_the_record(tmp_path: Path, given: StudySpec) -> None:
    file = tmp_path / "study.db"
    with another(given, file) as first, another(load_spec(given, Overrides(seed=1)), file) as second:
        assert len(second.propose(1, limit=6)) == 1
        _beat(first, lambda: second.propose(3, limit=6))
        assert len(first.propose(3, limit=6)) == 2
        derivation = derive(first.store, first.study.record)
        assert (derivation.follows, derivation.trials, derivation.compared) == (True, 6, 6)


def _beat(ledger: Ledger, others: Callable[[], object]) -> None:
    """Let ``others`` propose while the strategy thinks."""
    ask = ledger.strategy.ask

    def beaten(n: int = 1) -> list[Proposal]:
        proposals = ask(n)
        others()
        return proposals

    ledger.strategy.ask = beaten  # type: ignore[method-assign]


def test_a_search_whose_budget_others_spend_ends_by_it(tmp_path: Path, given: StudySpec) -> None:
    file = tmp_path / "study.db"
    with another(given, file) as rival, Beaten.open(file) as store:
        assert isinstance(store, Beaten)
        store.others = lambda: rival.propose(2, limit=6)
        result = open_session(given, store, objective=bowl).run()
        assert result.reason == "6 trials"
        assert store.count_trials(result.study.id) == 6


def test_the_budget_over_several_workloads_holds_as_well(tmp_path: Path) -> None:
    planted, file = family(tmp_path, "[{m: 64}, {m: 16}]", trials=12, finalists=0), tmp_path / "study.db"
    with Store.open(file) as plain, Beaten.open(file) as store:
        assert isinstance(store, Beaten)
        rivals: list[object] = []

        def others() -> None:  # a whole search, which looks at the same moment and sees as much room
            if not rivals:
                rivals.append(open_many(planted, plain, objective=Planted).run())

        store.others = others
        result = open_many(planted, store, objective=Planted).run()
        assert result.reason == "12 trials"
        assert sum(store.count_trials(study.id) for study in store.studies()) == 12
