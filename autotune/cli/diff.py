"""``autotune diff``: two trials, studies or recipes side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.references import RECIPE, find_recipes, find_trial, is_trial
from autotune.cli.silence import said_if_long
from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    from autotune.hook.recipes.recipe import Recipe
    from autotune.report.differences.difference import Contrast, Differences, Pair

MOST = 12
"""The most lines shown of one part; the JSON document has all."""


@click.command("diff")
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@study_option("Then A and B are numbers of trials in this study.")
@store_option
@json_option
def command(one: str, other: str, study: str | None, store: str | None, as_json: bool) -> int:
    """Say what differs between A and B, and whether what was measured of them does.

    Both are trials (an id, or STUDY:NUMBER), both studies (NAME or NAME#ID), or both recipes: a FILE.json of
    them, or recipe:NAME for what the store knows under a name.
    """
    kinds = {_kind(word, study) for word in (one, other)}
    if len(kinds) != 1:
        raise InputError(
            Problem(
                f"{one} is a {_kind(one, study)} and {other} a {_kind(other, study)}",
                None,
                "two trials, two studies or two recipes",
            )
        )
    compare = {"trial": _trials, "study": _studies, "recipe": _recipes}[kinds.pop()]
    with said_if_long("reading what was measured of both: Ctrl-C ends it", quiet=as_json):
        found = compare(one, other, study, store)
    if as_json:
        documents = [differences.to_document() for differences in found]
        print_json(documents[0] if len(documents) == 1 else {"recipes": documents})
    else:
        echo("\n".join(map(say, found)) or "nothing differs")
    return 0


def _kind(word: str, study: str | None) -> str:
    if word.startswith(RECIPE) or word.endswith(".json"):
        return "recipe"
    return "trial" if study is not None or is_trial(word) else "study"


def _trials(one: str, other: str, study: str | None, store: str | None) -> list[Differences]:
    from autotune.report.differences.trials import diff_trials
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        return [diff_trials(opened, *(find_trial(opened, word, study) for word in (one, other)))]


def _studies(one: str, other: str, study: str | None, store: str | None) -> list[Differences]:
    from autotune.report.differences.studies import diff_studies
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        return [diff_studies(opened, opened.study(one), opened.study(other))]


def _recipes(one: str, other: str, study: str | None, store: str | None) -> list[Differences]:
    from autotune.report.differences.recipes import diff_recipes

    return diff_recipes(_recipes_of(one, store), _recipes_of(other, store), (one, other))


def _recipes_of(word: str, store: str | None) -> tuple[Recipe, ...]:
    from autotune.hook.recipes.file import read_known

    if word.startswith(RECIPE):
        return find_recipes(word, store)
    if not Path(word).exists():
        raise InputError(Problem(f"there is no file {word}"))
    return read_known(Path(word)).recipes


# -- in words -------------------------------------------------------------------------------------------


def say(differences: Differences) -> str:
    """What differs, in lines."""
    from autotune.report.text import one_line

    if not (differences.one and differences.other):
        return f"{differences.one or differences.other}: {'; '.join(differences.remarks)}"
    lines = [f"{one_line(differences.one)}  ->  {one_line(differences.other)}"]
    for part, found in differences.parts.items():
        shown = [_line(name, pair) for name, pair in list(found.items())[:MOST]]
        if len(found) > len(shown):
            shown.append(f"and {len(found) - len(shown)} more, see --json")
        lines += [f"  {'' if place else part:14} {text}" for place, text in enumerate(shown)]
    if differences.alike:
        lines.append("  they were made in the same way")
    lines += [f"  {'not alike':14} {remark}" for remark in differences.remarks]
    for contrast in differences.contrasts:
        lines += _contrast(contrast)
    return "\n".join(lines)


def _line(name: str, pair: Pair) -> str:
    from autotune.report.text import one_line, side_by_side

    one, other = side_by_side(*pair, 60)
    return f"{one_line(name)}: {one} -> {other}"


def _contrast(contrast: Contrast) -> list[str]:
    from autotune.measure.outcome import Estimate
    from autotune.report.numbers import say_estimate, say_ratio
    from autotune.report.text import one_line

    ratio = "" if contrast.ratio is None else f", {say_ratio(*contrast.ratio)} as good"
    answer = f"B is {contrast.answer}{ratio}" if contrast.answer in ("better", "worse") else contrast.answer
    lines = [f"  {one_line(contrast.metric)}: {answer}"]
    if contrast.one is not None or contrast.other is not None:
        one, other = (
            "(none)" if side is None else say_estimate(Estimate(*side, 2), contrast.unit)
            for side in (contrast.one, contrast.other)
        )
        lines.append(f"    {one} -> {other}")
    return [*lines, f"    {one_line(contrast.how, 400)}"]
