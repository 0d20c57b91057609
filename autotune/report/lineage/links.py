"""The links between studies, trials, verdicts and recipes of a store, as nodes of a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.stored import day_of, recipe_of
from autotune.measure.outcome import Estimate
from autotune.report.numbers import say_count, say_estimate, say_gain, say_ratio
from autotune.session.opening.identity import are_kin
from autotune.session.opening.sources import SETTING
from autotune.session.searches import repeats_of
from autotune.space.configuration import Configuration
from autotune.space.spec import say_workload
from autotune.store.records import StudyRecord, TrialRecord, VerdictRecord
from autotune.store.store import Store

DEEPEST = 8
"""How many links are followed from the subject."""
MOST = 12
"""The most nodes of one kind below a node; a note says how many more there are."""


@dataclass(frozen=True)
class Node:
    """One thing in a lineage, with the things below it in the tree."""

    relation: str
    """Its relation to the node above: ``learned from``, ``made from``, ``verdict`` ..."""
    kind: str
    """``study``, ``trial``, ``verdict``, ``recipe`` or ``note``."""
    label: str
    said: str = ""
    """Details, on one line."""
    children: Sequence[Node] = ()

    def to_document(self) -> dict[str, Any]:
        return {
            "relation": self.relation,
            "kind": self.kind,
            "label": self.label,
            "said": self.said,
            "children": [child.to_document() for child in self.children],
        }


@dataclass
class Family:
    """Follows links in a store. Each study is expanded once, so that cycles end."""

    store: Store
    seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.studies = {study.id: study for study in self.store.studies()}
        self.learned = {number: list(_sources(self.store, number)) for number in self.studies}

    # -- studies

    def study(self, study: StudyRecord, relation: str, children: Sequence[Node] = ()) -> Node:
        self.seen.add(study.id)
        label = f"{say_count(sum(study.counts.values()), 'trial')}, {day_of(study.created_at)}"
        workload = say_workload(study.workload)
        replayed = ", REPLAYED from a recording" if study.replayed else ""
        said = ", ".join(filter(None, (label, workload))) + replayed
        return Node(relation, "study", study.label, said, children)

    def above(self, study: StudyRecord, depth: int = 0) -> list[Node]:
        self.seen.add(study.id)
        found = []
        for source in self.learned.get(study.id, ()):
            other = self.studies.get(source["study"])
            if other is None:
                named = "a study" if source["study"] is None else f"study #{source['study']}"
                found.append(Node("learned from", "note", named, "no longer in the store"))
            else:
                trials = say_count(source["trials"], "trial")
                found.append(self._link(other, f"learned from {trials} of", depth, up=True))
        parent = self.studies.get(study.parent_id or -1)
        if parent is not None:
            differs = ", ".join(study.differs) or "nothing"
            found.append(self._link(parent, f"follows (differs in {differs})", depth, up=True))
        return _capped(found)

    def below(self, study: StudyRecord, depth: int = 0) -> list[Node]:
        self.seen.add(study.id)
        found = []
        for other in self.studies.values():
            if any(source["study"] == study.id for source in self.learned[other.id]):
                found.append(self._link(other, "taught", depth, up=False))
            if other.parent_id == study.id:
                found.append(self._link(other, "followed by", depth, up=False))
        recipe = recipe_of(self.store, study) if not study.replayed else None
        own = [Node("recipe", "recipe", recipe_label(recipe), say_recipe(recipe))] if recipe else []
        return [*self.verdicts(study), *own, *_capped(found)]

    def _link(self, study: StudyRecord, relation: str, depth: int, *, up: bool) -> Node:
        if study.id in self.seen or depth >= DEEPEST:
            return Node(relation, "study", study.label, "see above" if study.id in self.seen else "...")
        return self.study(study, relation, (self.above if up else self.below)(study, depth + 1))

    def kin(self, study: StudyRecord) -> list[Node]:
        others = [o for o in self.studies.values() if o.id != study.id and are_kin(o, study)]
        return _capped([self.study(other, "of the same family") for other in others])

    def verdicts(self, study: StudyRecord) -> list[Node]:
        """The verdicts of a study, the newest first."""
        hosts = self._hosts(study)
        found = [_verdict(study, verdict, hosts) for verdict in reversed(self.store.verdicts(study.id))]
        return _capped(found)

    def _hosts(self, study: StudyRecord) -> Mapping[int, str]:
        """By session: the host that it ran on."""
        return {session.id: session.host for session in self.store.sessions(study.id)}

    # -- trials

    def trial(
        self, study: StudyRecord, trial: TrialRecord, relation: str, children: Sequence[Node] = ()
    ) -> Node:
        goal = study.goals[0]
        estimate = trial.metrics.get(goal.name)
        said = str(trial.status)
        if estimate is not None and not trial.status.failed:
            said = f"{goal.name} {say_estimate(estimate, goal.unit)}" + ("" if said == "ok" else f" ({said})")
        kind = str(trial.reason.get("kind", ""))
        label = f"trial {trial.number} of {study.label}"
        return Node(relation, "trial", label, ", ".join(filter(None, (said, kind))), children)

    def parents(self, study: StudyRecord, trial: TrialRecord) -> list[Node]:
        searched = self.store.trials(study.id, purpose="search")
        by_hash = {other.hash: other for other in searched}
        found = self._made_from(study, trial, by_hash, {trial.number}, 0)
        if trial.purpose != "search" and trial.hash in by_hash:
            found.append(self.trial(study, by_hash[trial.hash], "the same configuration as"))
        sources = trial.reason.get("sources")
        for label, weight in sources.items() if isinstance(sources, Mapping) else ():
            found.append(Node("leaned on", "study", str(label), f"with weight {weight:.2f}"))
        return found

    def _made_from(
        self,
        study: StudyRecord,
        trial: TrialRecord,
        by_hash: Mapping[str, TrialRecord],
        seen: set[int],
        depth: int,
    ) -> list[Node]:
        found = []
        for digest in _named(trial):
            other = by_hash.get(digest)
            if other is None or depth >= DEEPEST:
                continue
            again = other.number in seen
            seen.add(other.number)
            above = [] if again else self._made_from(study, other, by_hash, seen, depth + 1)
            found.append(self.trial(study, other, "made from", above))
        return found

    def offspring(self, study: StudyRecord, trial: TrialRecord) -> list[Node]:
        everything = self.store.trials(study.id)
        made_from: defaultdict[str, list[TrialRecord]] = defaultdict(list)
        for other in everything:
            if other.purpose == "search":
                for digest in set(_named(other)):
                    made_from[digest].append(other)
        made = self._made_of(study, trial, made_from, {trial.number}, 0)
        again = repeats_of(self.store, study.id)
        repeats = [
            self.trial(study, other, "replayed as" if other.session_id in again else "measured again as")
            for other in everything
            if other.hash == trial.hash and other.purpose != "search" and other.id != trial.id
        ]
        hosts = self._hosts(study)
        won = [
            _verdict(study, verdict, hosts)
            for verdict in self.store.verdicts(study.id)
            if _won_by(verdict, trial) and trial.purpose != "baseline"
        ]
        return [*_capped(made), *_capped(repeats), *_capped(won)]

    def _made_of(
        self,
        study: StudyRecord,
        trial: TrialRecord,
        made_from: Mapping[str, Sequence[TrialRecord]],
        seen: set[int],
        depth: int,
    ) -> list[Node]:
        """The trials made from ``trial``; ``made_from`` has these for each configuration, by its hash."""
        found = []
        for other in made_from.get(trial.hash, ()) if depth < DEEPEST else ():
            if other.number not in seen:
                seen.add(other.number)
                below = self._made_of(study, other, made_from, seen, depth + 1)
                found.append(self.trial(study, other, "made into", _capped(below)))
        return found


def _named(trial: TrialRecord) -> Iterator[str]:
    """The hashes of the configurations that a trial was made from."""
    for key in ("parent", "other"):
        if trial.reason.get(key):
            yield str(trial.reason[key])


def _won_by(verdict: VerdictRecord, trial: TrialRecord) -> bool:
    configuration = verdict.document.get("configuration")
    return configuration is not None and Configuration(configuration).hash == trial.hash


def _verdict(study: StudyRecord, verdict: VerdictRecord, hosts: Mapping[int, str]) -> Node:
    document = verdict.document
    speedup, gain = document.get("speedup"), document.get("gain")
    goal = study.goals[0]
    measured = (document.get("metrics") or {}).get(goal.name)
    said = []
    if measured:
        value = Estimate(measured["value"], measured["low"], measured["high"], measured["n"])
        said.append(f"{goal.name} {say_estimate(value, goal.unit)}")
    if speedup and not document.get("is_default"):
        ratio = say_ratio(speedup["estimate"], speedup["low"], speedup["high"])
        said.append(f"{ratio} over {speedup['against']}")
    elif gain and not document.get("is_default"):
        by = say_gain(gain["estimate"], gain["low"], gain["high"], goal.unit)
        said.append(f"better than {gain['against']} by {by}")
    on = f"on {hosts[verdict.session_id]}, " if hosts.get(verdict.session_id) else ""
    said.append(f"{on}{day_of(verdict.created_at)}")
    if document.get("remark"):  # last, since it may be long, and long lines are cut
        said.append(str(document["remark"]))
    label = f"{document.get('label', 'nobody')} won {study.label}"
    return Node("verdict", "verdict", label, "; ".join(said))


def recipe_label(recipe: Recipe) -> str:
    workload = say_workload(recipe.case.values)
    return f"{recipe.name}{f' for {workload}' if workload else ''}"


def say_recipe(recipe: Recipe) -> str:
    defended = "defended" if recipe.defended else "not defended"
    return ", ".join(filter(None, (f"on {recipe.device}", defended, recipe.tuned)))


def _sources(store: Store, study_id: int) -> Iterator[Mapping[str, Any]]:
    """The studies that a study learned from, each once."""
    told: set[int] = set()
    for session in store.sessions(study_id):
        for source in session.settings.get(SETTING) or ():
            if source["study"] not in told:
                told.add(source["study"])
                yield source


def _capped(nodes: list[Node]) -> list[Node]:
    if len(nodes) <= MOST:
        return nodes
    return [*nodes[:MOST], Node("", "note", f"and {len(nodes) - MOST} more")]
