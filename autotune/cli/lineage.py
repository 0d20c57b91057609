"""``autotune lineage``: where something comes from, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.references import RECIPE, find_recipes, find_trial, is_trial

if TYPE_CHECKING:
    from autotune.report.lineage.lineage import Lineage
    from autotune.report.lineage.links import Node


@click.command("lineage")
@click.argument("what", metavar="X")
@study_option("Then X is the number of a trial in this study.")
@store_option
@json_option
def command(what: str, study: str | None, store: str | None, as_json: bool) -> int:
    """Show what X comes from, and what came of it: studies, transfers, trials, verdicts, recipes.

    X is a trial (an id, or STUDY:NUMBER), a study (NAME or NAME#ID), or recipe:NAME.
    """
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        from autotune.report.lineage.lineage import of_recipe, of_study, of_trial

        if what.startswith(RECIPE):
            found = [of_recipe(opened, recipe) for recipe in find_recipes(what, store)]
        elif study is not None or is_trial(what):
            found = [of_trial(opened, find_trial(opened, what, study))]
        else:
            found = [of_study(opened, opened.study(what))]
    if as_json:
        documents = [lineage.to_document() for lineage in found]
        print_json(documents[0] if len(documents) == 1 else {"recipes": documents})
    else:
        echo("\n\n".join([*map(say, found), *explain(found)]))
    return 0


def say(lineage: Lineage) -> str:
    """Both trees, with the subject between them."""
    lines = [_node(lineage.subject)]
    for title, nodes in (("comes from", lineage.up), ("led to", lineage.down)):
        lines.append(f"  {title}" + ("" if nodes else " nothing that is recorded"))
        lines += [f"  {line}" for line in _tree(nodes)]
    return "\n".join(lines)


def explain(found: Sequence[Lineage]) -> list[str]:
    """A block that explains the words in the trees; empty if they have none to explain."""
    meanings = {word: said for lineage in found for word, said in lineage.meanings.items()}
    width = max(map(len, meanings), default=0)
    lines = [f"  {word:{width}}  {said}" for word, said in meanings.items()]
    return ["\n".join(["in these trees:", *lines])] if lines else []


def _tree(nodes: Sequence[Node]) -> Iterator[str]:
    for place, node in enumerate(nodes):
        last = place == len(nodes) - 1
        yield f"{'└─' if last else '├─'} {_node(node)}"
        for line in _tree(node.children):
            yield f"{'   ' if last else '│  '}{line}"


def _node(node: Node) -> str:
    from autotune.report.text import one_line

    head = " ".join(filter(None, (node.relation, one_line(node.label))))
    return f"{head}  ({one_line(node.said, 200)})" if node.said else head
