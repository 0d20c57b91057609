"""Where a study, trial or recipe comes from, and what came of it: a tree up and a tree down."""

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
    "learned from": "its strategy began with what that study had measured",
    "taught": "the strategy of that study began with what this one had measured",
    "leaned on": "what that study had measured weighed in the choice of the trial",
    "follows": "goes on after an earlier study of its name, from which it differs in what the brackets say",
    "followed by": "a later study of its name, from which something differs",
    "verdict": "what came of measuring the best and the default again, side by side",
    "recipe": "the answer as autotune.recipe and autotune.run(recipes=True) take it",
    "made from": "the strategy changed that trial's configuration, or crossed it with another's",
    "made into": "the strategy changed this configuration, or crossed it with another's",
    "measured again as": "a reading of the same configuration for a verdict",
    "replayed as": "a later measurement by autotune replay or verify",
    "of the same family": "the same objective and metrics with another workload",
}
"""What the relations mean that do not speak for themselves."""


@dataclass(frozen=True)
class Lineage:
    """What the subject comes from (``up``), and what came of it (``down``)."""

    subject: Node
    up: Sequence[Node]
    down: Sequence[Node]

    @property
    def meanings(self) -> dict[str, str]:
        """What the words mean that occur in it, in the order of :data:`MEANINGS`."""
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
    """Of a study: earlier ones that it follows or learned from; verdicts, recipes and later studies."""
    family = Family(store)
    return Lineage(family.study(study, ""), family.above(study), family.below(study))


def of_trial(store: Store, trial: TrialRecord) -> Lineage:
    """Of a trial: the trials and studies that it was made from; those made from it, verdicts, repeats."""
    family = Family(store)
    study = store.study(trial.study_id)
    own = [family.study(study, "tried in", family.above(study))]
    return Lineage(
        family.trial(study, trial, ""),
        [*family.parents(study, trial), *own],
        family.offspring(study, trial),
    )


def of_recipe(store: Store, recipe: Recipe) -> Lineage:
    """Of a recipe: the study that it is the verdict of, with all that is above it."""
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
