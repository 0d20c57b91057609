"""What came of a trial: those that were made from it, and from these, however many there are."""

from __future__ import annotations

from pathlib import Path

from autotune.report.lineage.lineage import of_study, of_trial
from autotune.report.lineage.links import MOST, Node
from autotune.space.configuration import Configuration
from autotune.store.records import NewTrial
from autotune.store.store import Store
from tests.store.build import bench, new_study


def bred(store: Store, count: int, children: int) -> int:
    """A study in which each trial is made into so many others; the id of the first."""
    own = bench(store)
    hashes = [Configuration({"tile": number}).hash for number in range(count)]
    new = [
        NewTrial(
            Configuration({"tile": number}),
            reason={"parent": hashes[(number - 1) // children], "other": hashes[0]} if number else {},
        )
        for number in range(count)
    ]
    written = store.propose(own.place, new)
    assert written[0] is not None
    return written[0].id


def labels(nodes: list[Node]) -> dict[str, object]:
    return {node.label.split(" of ")[0]: labels(list(node.children)) for node in nodes}


def test_what_was_made_from_a_trial_is_told_once_each(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        first = bred(store, 6, children=2)
        down = of_trial(store, store.trial(first)).down
    # Each has the first for its other parent, so all hang on it or on what was made before them.
    assert labels(list(down)) == {"trial 1": {"trial 3": {}, "trial 4": {}}, "trial 2": {"trial 5": {}}}
    assert all(node.relation == "made into" for node in down)


def test_of_thousands_of_descendants_some_are_named(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        # 0.4 s; 14 s where each descendant looks at every trial
        down = of_trial(store, store.trial(bred(store, 4000, children=40))).down
    assert len(down) == MOST + 1 and down[-1].label == f"and {40 - MOST} more"


def test_a_study_that_learned_and_follows_is_told_as_both_from_either_side(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        first = bench(store).study
        second = store.create_study(new_study(parent_id=first.id, differs={"source": ["a", "b"]}))
        store.open_session(second.id, {"sources": [{"study": first.id, "trials": 9}]}, "e", 1, "host")
        down, up = of_study(store, first).down, of_study(store, store.study(second.id)).up
    assert [node.relation for node in down] == ["taught", "followed by"]
    assert [node.relation for node in up] == ["learned from 9 trials of", "follows (differs in source)"]
    assert all(node.label == "gemm#2" for node in down) and all(node.label == "gemm#1" for node in up)


def test_a_study_says_how_many_trials_it_has(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        for count, said in ((1, "1 trial, "), (1200, "1,200 trials, ")):
            first = bred(store, count, children=40)
            study = store.study(store.trial(first).study_id)
            assert of_study(store, study).subject.said.startswith(said)
