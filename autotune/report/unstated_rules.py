"""Constraints that a space seems to lack, guessed from the failures of its study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autotune.provenance.document import part_of
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import ResultRecord, StudyRecord, TrialRecord

if TYPE_CHECKING:
    from autotune.search.models.arrays import Floats
    from autotune.search.models.hypotheses import Suspects

SURE = 0.5
"""The least probability of a rule that is reported, among all that explain the same failures."""
WORKED = 3
"""So many settings of the whole numbers have to have worked. About one alone a dozen rules can be made up,
and who copies such a rule shuts out whatever else works."""
HEARD = frozenset([Status.OK, Status.PRUNED, Status.INFEASIBLE, Status.CRASHED, Status.WRONG])


@dataclass(frozen=True)
class Tried:
    """A trial, as far as rules are concerned."""

    configuration: Mapping[str, Any]
    status: Status
    measured: bool
    """Whether it has a metric. A ``wrong`` trial with one is past a bound, and says nothing about rules."""


@dataclass(frozen=True)
class UnstatedRule:
    """A rule that seems to hold, though the space does not state it."""

    constraint: str
    """The rule as a space file states it; of several that explain the failures equally, the likeliest."""
    breaking: int
    """How many failures break it, and none of the rules before it."""
    failures: int
    """How many failures it might have explained: the infeasible, the crashed and the wrong ones."""
    keeping: int
    """How many trials succeeded; all of them keep the rule."""


def unstated_rules_of(
    study: StudyRecord, trials: Iterable[TrialRecord | ResultRecord]
) -> tuple[UnstatedRule, ...]:
    """Those that the ``trials`` of a study give away."""
    tried = (Tried(t.configuration, t.status, bool(t.metrics)) for t in trials)
    return unstated_rules(tried, part_of(study.document, "space"))


def unstated_rules(trials: Iterable[Tried], space: Mapping[str, Any]) -> tuple[UnstatedRule, ...]:
    """Rules that separate the trials that worked from those that failed, the most certain first; mostly none.

    A rule is a guess, however many failures it explains: what two true rules forbid together may look like a
    third. Only rules about products and quotients of whole numbers are looked for
    (:mod:`autotune.search.models.hypotheses`). ``space`` is that of the study's document. Failures that its
    present constraints forbid are explained by these, and do not count.
    """
    heard = [t for t in trials if t.status in HEARD and not (t.status is Status.WRONG and t.measured)]
    workload = part_of(space, "workload")
    found = _found(heard, workload)
    if not found or not space.get("constraints"):
        return found
    from autotune.space.from_document import space_from_document

    allowed = space_from_document(space)
    left = [t for t in heard if not t.status.failed or Configuration(t.configuration) in allowed]
    return _found(left, workload)


def _found(heard: Sequence[Tried], workload: Mapping[str, Any]) -> tuple[UnstatedRule, ...]:
    failures = sum(t.status.failed for t in heard)
    if not 0 < failures < len(heard):
        return ()
    import numpy as np

    from autotune.search.models.hypotheses import LEAST, suspected
    from autotune.search.models.products import divisible
    from autotune.search.models.rule_text import constraint
    from autotune.search.models.thinning import spread

    names, facts = _whole_numbers([t.configuration for t in heard]), divisible(workload)
    tried = [[float(t.configuration.get(name, 1)) for name in names] for t in heard]
    logs = np.log2([[*row, *facts.values()] for row in tried])
    names += [name if name not in names else f"workload.{name}" for name in facts]
    good = np.array([not t.status.failed for t in heard])
    if len(set(map(tuple, logs[good].tolist()))) < WORKED:
        return ()
    unexplained = ~good
    rows = spread(~good)
    found = []
    for looked_for in suspected(logs[rows], good[rows], facts=len(facts)):
        suspects = looked_for.without(~np.asarray(looked_for.kept(logs[good]).all(axis=0)))
        if not len(suspects.odds):  # trials that were not sampled refute them all
            continue
        breaks = unexplained & ~suspects.kept(logs)[:, 0]
        unexplained &= ~breaks
        if _probability(suspects, logs) < SURE or breaks.sum() < LEAST:
            continue
        text = constraint(names, suspects, logs[good])
        found.append(UnstatedRule(text, int(breaks.sum()), failures, int(good.sum())))
    return tuple(found)


def _probability(suspects: Suspects, logs: Floats) -> float:
    """That of the likeliest rule in any form: among powers of two, what is no larger divides as well."""
    kept, knobs = suspects.kept(logs), suspects.exponents != 0.0
    alike = (kept == kept[:, :1]).all(axis=0) & (knobs == knobs[:, :1]).all(axis=0)
    return float(suspects.probabilities[alike].sum())


def _whole_numbers(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of knobs with several values, all of which are positive whole numbers."""
    from autotune.search.models.products import is_count

    names = dict.fromkeys(name for values in configurations for name in values)
    seen = {name: [values[name] for values in configurations if name in values] for name in names}
    return [name for name, values in seen.items() if all(map(is_count, values)) and len(set(values)) > 1]


def say_rule(rule: UnstatedRule) -> str:
    """The evidence for a rule, in one line."""
    return f"{rule.breaking} of {rule.failures} that failed break it, all {rule.keeping} that worked keep it"
