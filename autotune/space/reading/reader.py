"""From a space.yaml to a :class:`StudySpec`, or to everything that is wrong with it at once.

The text becomes nodes that know their place (:mod:`autotune.space.reading.yaml_nodes`); one module a section
turns them into typed values and reports what is wrong (``read_*``); nothing is raised before every
section has been looked at. A part that is wrong is then left out, and what depends on it is not
complained about: one mistake, one message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autotune.errors import InputError, Problem, nearest
from autotune.space.configuration import FrozenMap, Value
from autotune.space.facts import facts_of
from autotune.space.language.rule import NOTHING
from autotune.space.reading.command import BELOW_COMMAND, Known
from autotune.space.reading.converters import fact, mapping, text
from autotune.space.reading.fields import Fields, Problems, as_map, wrong
from autotune.space.reading.knobs import KINDS as KNOB_KINDS
from autotune.space.reading.knobs import KnobSection, read_knobs
from autotune.space.reading.metrics import read_metrics
from autotune.space.reading.objective import KINDS as OBJECTIVE_KINDS
from autotune.space.reading.objective import read_objective
from autotune.space.reading.rules import Facts, read_space
from autotune.space.reading.settings import BELONGS, read_budget, read_measure, read_search
from autotune.space.reading.space_file import load_space
from autotune.space.reading.workloads import Member, read_workloads
from autotune.space.reading.yaml_nodes import YamlMap, YamlNode, YamlScalar, compose
from autotune.space.spec import Family, ObjectiveSpec, ReplayObjective, StudySpec, say_workload

FORMAT = 1
"""The version of the format that is read."""

KEYS = (
    "autotune",
    "name",
    *OBJECTIVE_KINDS,
    "workload",
    "workloads",
    "metrics",
    "knobs",
    "constraints",
    "search",
    "measure",
    "budget",
)

SYNONYMS = {
    **dict.fromkeys(("parameters", "params", "tune_params", "hyperparameters", "variables"), "knobs"),
    **dict.fromkeys(("space", "search_space"), "knobs"),
    **dict.fromkeys(("restrictions", "conditions", "rules"), "constraints"),
    **dict.fromkeys(("program", "script", "executable", "cmd"), "command"),
    **dict.fromkeys(("goal", "goals", "direction", "minimize", "maximize"), "metrics"),
    **dict.fromkeys(("method", "algorithm", "sampler", "optimizer"), "search"),
}
"""The words of other tools for sections."""

NAME = re.compile(r"\w[\w.-]{0,99}")
"""What a study can be called."""


def read_spec(
    path: str | Path, device: Mapping[str, Value] = NOTHING, workload: Mapping[str, Value] = NOTHING
) -> StudySpec:
    """Read a space file.

    ``device`` holds the facts that rules name ``device.NAME``; ``workload`` replaces entries of the file's
    own workload. Raises :class:`InputError` with every problem of the file, in file order; a file with
    several ``workloads`` is for :func:`read_family`.
    """
    path = Path(path)
    return parse_spec(load_space(path), path, device, workload)


def parse_spec(
    text: str,
    path: str | Path = "space.yaml",
    device: Mapping[str, Value] = NOTHING,
    workload: Mapping[str, Value] = NOTHING,
) -> StudySpec:
    """As :func:`read_spec`, for a text. ``path`` names it in messages; its folder is where paths start."""
    root, found = compose(text, str(path))
    return _Reader(root, Problems(found), Path(path), device, workload).read(text)


def read_family(path: str | Path, device: Mapping[str, Value] = NOTHING) -> Family:
    """Read a space file with all its ``workloads``; one without them is a family of one.

    Raises :class:`InputError` with every problem of the file, in file order. Where a rule is wrong for some
    of the workloads, the first of these is named.
    """
    path = Path(path)
    return parse_family(load_space(path), path, device)


def parse_family(text: str, path: str | Path = "space.yaml", device: Mapping[str, Value] = NOTHING) -> Family:
    """As :func:`read_family`, for a text."""
    root, found = compose(text, str(path))
    specs: list[StudySpec] = []
    wrong_for: dict[Problem, list[int]] = {}
    members: Sequence[Member] = (Member(FrozenMap({})),)
    place = 0
    while place < len(members):
        reader = _Reader(root, Problems(found), Path(path), device, NOTHING, place)
        try:
            specs.append(reader.read(text))
        except InputError as error:
            for problem in error.problems:
                wrong_for.setdefault(problem, []).append(place)
        members = reader.members or members
        place += 1
    if wrong_for:
        problems = Problems(_named(problem, places, members) for problem, places in wrong_for.items())
        problems.raise_all()
    return Family(tuple(specs), tuple(member.held_out for member in members), several=bool(reader.members))


def _named(problem: Problem, places: Sequence[int], members: Sequence[Member]) -> Problem:
    """With the workload that it is a problem for, unless it is one for all."""
    if len(places) == len(members):
        return problem
    return replace(problem, message=f"{problem.message} (with {say_workload(members[places[0]].values)})")


class _Reader:
    """The sections of one file, in the order in which they depend on each other."""

    def __init__(
        self,
        root: YamlNode,
        problems: Problems,
        path: Path,
        device: Mapping[str, Value],
        workload: Mapping[str, Value],
        place: int | None = None,
    ) -> None:
        """``place``: which of the ``workloads`` to read; ``None``: the file must have only one workload."""
        if not isinstance(root, YamlMap):
            hint = "see the reference of space.yaml, or begin with  autotune init"
            problems.keep(wrong(root, "the file", "a mapping of sections", hint))
            problems.raise_all()
            raise AssertionError  # for the type checker: the line above has raised
        self.problems = problems
        self.path = path
        self.device = facts_of("device", device)
        self.given_workload = facts_of("workload", workload)
        self.place = place
        self.members: tuple[Member, ...] = ()
        strays = [entry.key for entry in root if _looks_like_a_knob(entry.value)]
        habits = dict.fromkeys(strays, "a knob stands below knobs:, indented")
        self.top = Fields(root, "", KEYS, problems, BELONGS | BELOW_COMMAND | habits, SYNONYMS)

    def read(self, source: str) -> StudySpec:
        """The whole study; raises whatever was found once all of it has been looked at."""
        top, problems = self.top, self.problems
        top.require("autotune", _version, FORMAT, f"autotune: {FORMAT}, the version of the format")
        name = top.require("name", _name, "", "a name for the study, such as name: gemm-c")
        workload = self.workload()
        metrics = read_metrics(top.node("metrics"), problems)
        knobs = self.knobs()
        known = Known([*knobs.entries], [*workload.values, *workload.broken], metrics)
        objective = read_objective(top, self.path.parent, known, problems)
        space = read_space(knobs, top.node("constraints"), workload, self.device, problems)
        search = read_search(top.node("search"), problems, metrics, space)
        if search.early_stopping is not None and isinstance(objective, ReplayObjective):
            message = "a replay reports nothing while it runs, so it cannot be stopped early"
            section = top.node("search")
            problems.add(message, section.where if section else None, "search: without early_stopping")
        measure = read_measure(top.node("measure"), problems)
        budget = read_budget(top.node("budget"), problems, metrics)
        self.refuse_several(objective)
        problems.raise_all()
        assert objective is not None and space is not None  # else there are problems
        return StudySpec(
            name=name,
            space=space,
            objective=objective,
            metrics=metrics,
            workload=FrozenMap(workload.values),
            search=search,
            measure=measure,
            budget=budget,
            source=self.path,
            text=source,
        )

    def workload(self) -> Facts:
        node = self.top.node("workload")
        found = Problems()
        entries = (
            found.attempt(lambda: as_map(node, "workload", "a mapping of names to values")) if node else None
        )
        values = mapping(entries, "workload", fact, found) if entries else {}
        self.problems.found.extend(found.found)
        broken = {entry.key for entry in entries or () if entry.key not in values}
        several = self.top.node("workloads")
        if isinstance(several, YamlScalar) and several.value is None:
            several = None  # an empty section counts as one that is left out
        self.members = read_workloads(several, values, self.problems)
        if self.members:
            values |= self.members[self.place or 0].values
        for name, value in self.given_workload.items():
            if name not in values and name not in broken:
                expected = "one of " + ", ".join(values) if values else "a file that has a workload"
                self.problems.add(f"the workload has no {name!r}", None, expected, nearest(name, values))
            values[name] = value
        complete = (node is None or entries is not None) and (several is None or bool(self.members))
        return Facts(values, frozenset(broken), complete)

    def refuse_several(self, objective: ObjectiveSpec | None) -> None:
        """Refuse several workloads for a recording, which has one, and where the caller wants one study."""
        section = self.top.entries.get("workloads")
        if section is None or not self.members:
            return
        if isinstance(objective, ReplayObjective):
            message = "a recording was made for one workload"
            self.problems.add(message, section.where, "workload, which says what that was")
        elif self.place is None and not self.problems.found and not self.given_all():
            expected = "workload"
            hint = "autotune search and autotune check take all of them; in Python: autotune.search_many"
            if self.given_workload:
                missing = [name for name in self.members[0].values if name not in self.given_workload]
                expected, hint = "all facts in which they differ", f"give {', '.join(missing)} as well"
            count = len(self.members)
            self.problems.add(f"{count} workloads where one study is meant", section.where, expected, hint)

    def given_all(self) -> bool:
        """Whether the caller gave every fact in which the workloads differ, be it with values of its own."""
        return all(name in self.given_workload for member in self.members for name in member.values)

    def knobs(self) -> KnobSection:
        def read(node: YamlNode, _: str) -> KnobSection:
            return read_knobs(node, self.device, self.problems)

        form = "a mapping: knobs: {tile: {values: [1, 2, 4]}}"
        return self.top.require("knobs", read, KnobSection(), form)


def _looks_like_a_knob(node: YamlNode) -> bool:
    return isinstance(node, YamlMap) and any(entry.key in KNOB_KINDS for entry in node)


def _version(node: YamlNode, title: str) -> int:
    version = node.value if isinstance(node, YamlScalar) else None
    if isinstance(version, bool) or version != FORMAT or not isinstance(version, int):
        newer = isinstance(version, int) and version > FORMAT
        hint = "this file is for a newer autotune" if newer else ""
        raise wrong(node, title, f"{FORMAT}, the version of the format", hint)
    return version


def _name(node: YamlNode, title: str) -> str:
    name = text(node, title)
    if not NAME.fullmatch(name):
        raise wrong(node, title, "at most 100 letters, digits, _ . -, not beginning with . or -")
    return name
