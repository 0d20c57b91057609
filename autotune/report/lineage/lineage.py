"""What a study, trial or recipe comes from, and what came of it, as two trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError
from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.stored import recipe_of
from autotune.report.lineage.links import Family, Node, recipe_label, say_recipe
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

MEANINGS: Mapping[str, str] = {
    "learned from": "its strategy began with the results of that study",
    "taught": "the strategy of that study began with the results of this one",
    "leaned on": "the results of that study had a part in the choice of the trial",
    "follows": "comes after an earlier study of its name; the brackets say what differs",
    "followed by": "a later study of its name, which differs in something",
    "verdict": "the result of measuring the best and the default again, side by side",
    "recipe": "the answer as autotune.recipe and autotune.run(recipes=True) use it",
    "made from": "the strategy changed that trial's configuration, or crossed it with another's",
    "made into": "the strategy changed this configuration, or crossed it with another's",
    "measured again as": "a reading of the same configuration for a verdict",
    "replayed as": "a later measurement by autotune replay or verify",
    "of the same family": "the same objective and metrics with another workload",
}
"""Explanations of the relations that need one."""


@dataclass(frozen=True)
class Lineage:
    """What the subject comes from (``up``), and what came of it (``down``)."""

    subject: Node
    up: Sequence[Node]
    down: Sequence[Node]

    @property
    def meanings(self) -> dict[str, str]:
        """Explanations of the relations that occur in it, in the order of :data:`MEANINGS`."""
        relations = {node.relation for node in _all([*self.up, *self.down])}
        return {word: said for word, said in MEANINGS.items() if any(r.startswith(word) for r in relations)}

    def to_document(self) -> dict[str, Any]:
        return {
            "subject": self.subject.to_document(),
            "up": [node.to_document() for node in self.up],
            "down": [node.to_document() for node in self.down],
        }


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _all(node.children)


def of_study(store: Store, study: StudyRecord) -> Lineage:
    """Of a study: up, studies that it follows or learned from; down, verdicts, its recipe, later studies."""
    family = Family(store)
    return Lineage(family.study(study, ""), family.above(study), family.below(study))


def of_trial(store: Store, trial: TrialRecord) -> Lineage:
    """Of a trial: up, what it was made from; down, the trials made from it, verdicts and repeats."""
    family = Family(store)
    study = store.study(trial.study_id)
    own = [family.study(study, "tried in", family.above(study))]
    return Lineage(
        family.trial(study, trial, ""),
        [*family.parents(study, trial), *own],
        family.offspring(study, trial),
    )


def of_recipe(store: Store, recipe: Recipe) -> Lineage:
    """Of a recipe: up, its study with all that this comes from; down, studies of the same family."""
    family = Family(store)
    subject = Node("", "recipe", recipe_label(recipe), say_recipe(recipe))
    try:
        study = store.study(recipe.study) if recipe.study and recipe.machine else None
    except InputError:
        study = None
    own = None if study is None else recipe_of(store, study)
    if study is None or own is None or dict(own.configuration) != dict(recipe.configuration):
        away = Node("made in", "note", f"study {recipe.study or '?'} of another store", recipe.device)
        return Lineage(subject, [away], [])
    verdicts = family.verdicts(study)
    return Lineage(
        subject, [*verdicts[:1], family.study(study, "won in", family.above(study))], family.kin(study)
    )
