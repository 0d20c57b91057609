"""``autotune rule``: a small readable rule that chooses configurations for unmeasured workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import json_option, print_json, store_option, study_argument
from autotune.cli.writing import write_text

if TYPE_CHECKING:
    from autotune.report.rules.rule import Learned

FORMS = (".py", ".json")


@click.command("rule")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the rule: .py, a function to copy; .json, for autotune.hook.rule.  [default: print the .py]",
)
@click.option(
    "--leaves",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="The most configurations to choose between.",
)
@study_argument()
@store_option
@json_option
def command(output: str | None, leaves: int, study: str | None, store: str | None, as_json: bool) -> int:
    """Learn which configuration to take for which workload, from a search of several workloads.

    The rule is a decision tree over the numbers of the workload. Its regret is stated on the workloads that
    it was learned from, on each of them when it was left out, and on those that are held out.
    """
    from autotune.report.rules.python import python_text
    from autotune.report.rules.rule import make_rule
    from autotune.store.store import Store

    target = _target(output)
    with Store.open(store, readonly=True) as opened:
        learned = make_rule(opened, opened.study(study), leaves)
    document = learned.rule.to_document()
    form = ".py" if target is None else target.suffix
    text = python_text(learned.rule) if form == ".py" and not (as_json and target is None) else ""
    if form == ".json":
        text = json.dumps(document, indent=1) + "\n"
    if target is not None:
        write_text(target, text)
    if as_json:
        print_json({**document, "remarks": list(learned.remarks), "matrix": _matrix(learned)})
    else:
        click.echo(say(learned) if target is not None else f"{text}\n{say(learned)}".rstrip())
    return 0


def _target(output: str | None) -> Path | None:
    from autotune.errors import InputError, Problem

    target = None if output is None else Path(output)
    if target is not None and target.suffix not in FORMS:
        raise InputError(Problem(f"a rule is not written as {target.name!r}", None, "rule.py or rule.json"))
    return target


def _matrix(learned: Learned) -> dict[str, Any]:
    from autotune.session.families.result import matrix_document

    return matrix_document(learned.matrix)


def say(learned: Learned) -> str:
    """How good the rule is, compared with policies that need no rule."""
    from autotune.hook.rule import leaves
    from autotune.report.numbers import say_count
    from autotune.report.rules.python import say_regret
    from autotune.report.rules.rule import POLICIES

    rule = learned.rule
    count = len(list(leaves(rule.tree)))
    lines = [
        f"rule of {rule.study}: {say_count(count, 'leaf', 'leaves')},"
        f" learned from {say_count(len(rule.workloads), 'workload')}",
        f"{say_regret(rule.evidence)}: geometric mean (worst)",
        f"  {'':14}" + "".join(f"{name:>22}" for name in POLICIES),
    ]
    for where, regrets in learned.regrets.items():
        lines.append(
            f"  {where:14}" + "".join(f"{_say(regrets[name].to_document()):>22}" for name in POLICIES)
        )
    return "\n".join([*lines, *(f"note: {remark}" for remark in learned.remarks)])


def _say(regret: dict[str, Any]) -> str:
    if regret["mean"] is None:
        return "nothing works"
    failures = f", {regret['failures']} fail" if regret["failures"] else ""
    return f"{regret['mean']:.3f} ({regret['worst']:.3f}{failures})"
