"""What studies, trials and recipes come from, and what came of them, however much that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autotune.hook.recipes.stored import recipe_of
from autotune.report.lineage.lineage import of_recipe, of_study, of_trial
from autotune.report.lineage.links import DEEPEST, MOST, Node
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewTrial
from autotune.store.store import Store
from tests.report.studies import Written
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


def labels(nodes: Sequence[Node]) -> dict[str, object]:
    return {node.label.split(" of ")[0]: labels(node.children) for node in nodes}


def told(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    return [(node.relation, node.label) for node in nodes]


def test_what_was_made_from_a_trial_is_told_once_each(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        first = bred(store, 6, children=2)
        down = of_trial(store, store.trial(first)).down
    # Each has the first for its other parent, so all hang on it or on what was made before them.
    assert labels(down) == {"trial 1": {"trial 3": {}, "trial 4": {}}, "trial 2": {"trial 5": {}}}
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


ONE, OTHER = {"tile": 4, "layout": "row"}, {"tile": 8, "layout": "row"}


def test_a_winner_is_told_with_what_was_measured_of_it_again(tmp_path: Path) -> None:
    """And with its verdict, which is not of what it won over, nor of a baseline with its configuration."""
    own = Written(tmp_path)
    own.trial(ONE, 0.5)
    own.trial(OTHER, 0.7)
    final, baseline = (own.trial(ONE, 0.5, purpose=purpose) for purpose in ("final", "baseline"))
    own.verdict(ONE, remark="on a busy machine")
    own.session = own.store.open_session(own.study.id, {"verified": [0]}, "", 1, "host1")
    again = own.trial(ONE, 0.5, purpose="final")
    first, other, finalist, vendor = (
        of_trial(own.store, own.store.numbered(own.study.id, [number])[0])
        for number in (0, 1, final, baseline)
    )
    assert told(first.down) == [
        ("measured again as", f"trial {final} of gemm#1"),
        ("measured again as", f"trial {baseline} of gemm#1"),
        ("replayed as", f"trial {again} of gemm#1"),
        ("verdict", "trial 1 won gemm#1"),
    ]
    assert first.down[-1].said == (
        "time 500 ms [450, 550]; 2x [1.8, 2.2] over the default; on host0, 2023-11-14; on a busy machine"
    )
    assert list(first.meanings) == ["verdict", "measured again as", "replayed as"]
    assert (told(other.down), told(other.up)) == ([], [("tried in", "gemm#1")])
    assert told(finalist.up) == [("the same configuration as", "trial 0 of gemm#1"), ("tried in", "gemm#1")]
    assert "verdict" not in [relation for relation, _ in told(vendor.down)]


def test_a_verdict_for_the_default_is_not_said_to_be_over_it(tmp_path: Path) -> None:
    own = Written(tmp_path)
    number = own.trial(ONE, 0.5)
    own.verdict(ONE, label="the default", is_default=True)
    own.no_verdict({})
    [trial] = own.store.numbered(own.study.id, [number])
    [won] = of_trial(own.store, trial).down
    assert (won.label, won.said) == ("the default won gemm#1", "time 500 ms [450, 550]; on host0, 2023-11-14")
    assert told(of_study(own.store, own.study).down)[:2] == [
        ("verdict", "nobody won gemm#1"),  # the newest first
        ("verdict", "the default won gemm#1"),
    ]


def test_a_verdict_without_a_ratio_says_what_was_gained(tmp_path: Path) -> None:
    """Of values below 0, nothing had been said of what was won."""
    own = Written(tmp_path)
    own.verdict(ONE, speedup=None, gain={"against": "the default", "estimate": 3.0, "low": 2.9, "high": 3.1})
    verdict = of_study(own.store, own.study).down[0]
    assert "better than the default by 3 s [2.9, 3.1]" in verdict.said


def test_a_failed_trial_has_no_value(tmp_path: Path) -> None:
    own = Written(tmp_path)
    kinds = [
        (Status.OK, "time 1 s [0.9, 1.1]"),
        (Status.WRONG, "wrong"),
        (Status.PRUNED, "time 1 s [0.9, 1.1] (pruned)"),
    ]
    for tile, (status, said) in enumerate(kinds):
        number = own.trial({"tile": 2**tile, "layout": "row"}, 1.0, status)
        [trial] = own.store.numbered(own.study.id, [number])
        assert of_trial(own.store, trial).subject.said == f"{said}, uniform"


def test_a_recipe_comes_from_its_study_where_that_is_in_the_store(tmp_path: Path) -> None:
    own, kin = Written(tmp_path), Written(tmp_path, workload={"m": 4, "dtype": "float32"})
    own.trial(ONE, 0.5)
    own.verdict(OTHER)
    own.verdict(ONE)
    recipe = recipe_of(own.store, own.study)
    assert recipe is not None
    found = of_recipe(own.store, recipe)
    assert found.subject.label == "gemm for m 960, dtype float32" and "defended" in found.subject.said
    assert told(found.up) == [("verdict", "trial 1 won gemm#1"), ("won in", "gemm#1")]
    assert told(found.down) == [("of the same family", kin.study.label)]
    # Of a file from elsewhere: a study of that label here is another one.
    for other in ({"configuration": OTHER}, {"machine": ""}, {"study": "gemm#7"}):
        away = of_recipe(own.store, replace(recipe, **other))
        label = f"study {other.get('study', 'gemm#1')} of another store"
        assert told(away.up) == [("made in", label)] and not away.down
    assert told(of_recipe(own.store, replace(recipe, study="")).up) == [
        ("made in", "study ? of another store")
    ]


def test_a_long_line_of_studies_or_trials_is_followed_so_far(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store:
        newest = store.create_study(new_study())
        for _ in range(DEEPEST + 3):
            newest = store.create_study(new_study(parent_id=newest.id, differs={"source": ["a", "b"]}))
        [node] = of_study(store, newest).up
        assert [one.said for one in line(node)][-1] == "..." and len(line(node)) == DEEPEST + 1
        first = bred(store, DEEPEST + 3, children=1)
        [node] = of_trial(store, store.trial(first)).down[:1]
        assert len(line(node)) == DEEPEST


def line(node: Node) -> list[Node]:
    """The node, its first child, the first child of that and so on."""
    return [node, *(line(node.children[0]) if node.children else [])]
