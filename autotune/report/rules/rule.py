"""A rule for a family of studies, learned from its cross measurement, and its regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from autotune.errors import InputError, Problem
from autotune.hook.rule import Leaf, Rule, Tree, leaves
from autotune.report.rules.regret import (
    MOST_LEAVES,
    Policy,
    Regret,
    Table,
    default_policy,
    doubts,
    learn,
    left_out,
    left_out_tree,
    nearest_policy,
    regret_of,
    single_policy,
    tree_policy,
)
from autotune.session.families.matrix import NOT_ALLOWED, NOT_MEASURED, Matrix, family_of, load_matrix
from autotune.session.opening.sources import device_of
from autotune.space.configuration import FrozenMap, plain
from autotune.space.from_document import space_from_document
from autotune.space.spec import say_workload
from autotune.store.records import StudyRecord
from autotune.store.store import Store

POLICIES = ("rule", "one for all", "nearest workload", "default")


@dataclass(frozen=True)
class Learned:
    """A rule and how good it is."""

    rule: Rule
    regrets: Mapping[str, Mapping[str, Regret]]
    """By the set of workloads (``learned from``, ``left out``, ``held out``), then by policy."""
    remarks: tuple[str, ...]
    """Notes for the user: workloads that are missing or for which nothing works, and whether one
    configuration for all is better than the rule."""
    matrix: Matrix


def make_rule(store: Store, study: StudyRecord, most_leaves: int = MOST_LEAVES) -> Learned:
    """The rule for the workloads of the studies that otherwise agree with ``study``.

    Raises :class:`InputError` if nothing was measured yet that a rule could be learned from.
    """
    matrix = load_matrix(store, family_of(store, study))
    table, remarks = _searched(matrix)
    if not table.workloads:
        raise InputError(_nothing(matrix))
    node = learn(table, most_leaves)
    whole: dict[str, Policy] = {
        "rule": tree_policy(node),
        "one for all": single_policy(table),
        "nearest workload": nearest_policy(table),
        "default": default_policy(table),
    }
    regrets = {"learned from": {name: regret_of(policy, table) for name, policy in whole.items()}}
    if len(table.workloads) > 1:
        regrets["left out"] = {
            "rule": left_out_tree(table, most_leaves),
            "one for all": left_out(single_policy, table),
            "nearest workload": left_out(nearest_policy, table),
            "default": left_out(default_policy, table),
        }
    checked = _held_out(matrix, table.names)
    if checked.workloads:
        regrets["held out"] = {name: regret_of(policy, checked) for name, policy in whole.items()}
    remarks += doubts(regrets) if node.parts else ()
    rule = _rule(store, matrix, table, node.tree(), regrets, remarks)
    return Learned(rule, regrets, remarks, matrix)


def _table(matrix: Matrix, rows: Sequence[int], names: Sequence[str]) -> Table:
    renumbered = {row: number for number, row in enumerate(rows)}
    return Table(
        workloads=tuple({name: matrix.workloads[row][name] for name in names} for row in rows),
        names=tuple(names),
        losses=matrix.losses[list(rows)],
        forbidden=np.array(
            [[cell.status == NOT_ALLOWED for cell in matrix.cells[row]] for row in rows], dtype=bool
        ).reshape(len(rows), len(matrix.configurations)),
        found_by=tuple(frozenset(renumbered[r] for r in by if r in renumbered) for by in matrix.found_by),
        default=matrix.default,
    )


def _searched(matrix: Matrix) -> tuple[Table, tuple[str, ...]]:
    """The table that a rule is learned from, and remarks on what is missing in it."""
    remarks, rows, names = [], [], varying(matrix)
    for row, cells in enumerate(matrix.cells):
        label = say_workload({name: matrix.workloads[row][name] for name in names})
        statuses = {cell.status for cell in cells}
        if "ok" in statuses:
            if NOT_MEASURED in statuses:
                remarks.append(f"not all winners were measured for {label}: search it again to measure them")
            rows += [] if matrix.held_out[row] else [row]
        elif statuses <= {NOT_MEASURED}:
            remarks.append(f"nothing was measured again for {label}: go on searching, and it will be")
        else:
            remarks.append(f"nothing works for {label}")
    return _table(matrix, rows, names), tuple(remarks)


def _held_out(matrix: Matrix, names: Sequence[str]) -> Table:
    works = ["ok" in {cell.status for cell in cells} for cells in matrix.cells]
    return _table(matrix, [r for r, out in enumerate(matrix.held_out) if out and works[r]], names)


def varying(matrix: Matrix) -> tuple[str, ...]:
    """The facts in which the workloads differ; all facts if there is only one workload."""
    first = matrix.workloads[0]
    differing = [name for name in first if any(w[name] != first[name] for w in matrix.workloads)]
    return tuple(differing or first)


def _nothing(matrix: Matrix) -> Problem:
    name = matrix.studies[0].name
    trials = sum(sum(study.counts.values()) for study in matrix.studies)
    if not trials:
        return Problem(f"the study {name} has no trial yet", hint="search it first: autotune search SPACE")
    if any(cell.status not in (NOT_MEASURED, NOT_ALLOWED) for row in matrix.cells for cell in row):
        return Problem(f"nothing that was measured again for the study {name} works")
    return Problem(
        f"nothing of the study {name} was measured again yet, so there is nothing to choose between",
        hint="let the search finish: autotune search SPACE goes on with it"
        " (with measure: {finalists: 0} nothing is measured again)",
    )


def _rule(
    store: Store,
    matrix: Matrix,
    table: Table,
    tree: Tree,
    regrets: Mapping[str, Mapping[str, Regret]],
    remarks: Sequence[str],
) -> Rule:
    """The rule, with only those configurations that it may choose."""
    tree, used = _compact(tree, table)
    first = matrix.studies[0]
    space_from_document(first.document["space"])  # raises if an archive has brought an invalid one
    space = {name: value for name, value in first.document["space"].items() if name != "workload"}
    return Rule(
        study=first.name,
        names=table.names,
        fixed=FrozenMap({n: v for n, v in matrix.workloads[0].items() if n not in table.names}),
        configurations=tuple(dict(_plain(matrix.configurations[column])) for column in used),
        tree=tree,
        space=space,
        workloads=tuple(_plain(FrozenMap(workload)) for workload in table.workloads),
        evidence={
            "studies": [study.label for study in matrix.studies],
            "device": device_of(store.environment(first.environment_hash)),
            "day": datetime.now(UTC).strftime("%Y-%m-%d"),
            "metric": matrix.metric.name,
            "goal": matrix.metric.goal,
            "regret": {
                where: {policy: regret.to_document() for policy, regret in found.items()}
                for where, found in regrets.items()
            },
            "remarks": list(remarks),
        },
    )


def _plain(values: FrozenMap) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def _compact(tree: Tree, table: Table) -> tuple[Tree, list[int]]:
    """The tree with shorter leaves, whose columns are renumbered, and the columns that are used.

    A leaf takes what it prefers, then what other leaves prefer, and the default last.
    """
    preferred = list(dict.fromkeys(leaf.take[0] for leaf in leaves(tree)))
    last = [] if table.default is None else [table.default]
    used = list(dict.fromkeys([*preferred, *last]))

    def compacted(part: Tree) -> Tree:
        if isinstance(part, Leaf):
            others = [c for c in part.take if c in preferred and c not in last]
            order = dict.fromkeys([part.take[0], *others, *last])
            return Leaf(tuple(used.index(column) for column in order))
        return type(part)(part.condition, compacted(part.then), compacted(part.otherwise))

    return compacted(tree), used
