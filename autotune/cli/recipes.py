"""``autotune recipes``: list, export and import the winners by workload and device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli.codes import DONE, NOTHING_SUCCEEDED
from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.verbs import Group
from autotune.errors import InputError, Location, Problem

if TYPE_CHECKING:
    from autotune.hook.recipes.places import Places
    from autotune.hook.recipes.recipe import Known, Recipe
    from autotune.hook.recipes.this_device import Here

FILE = click.Path(path_type=Path, dir_okay=False)


class Listing(Group):
    """A group whose default command is ``list``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        lists = not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))
        return super().parse_args(context, ["list", *args] if lists else args)


@click.group("recipes", cls=Listing)
def command() -> None:
    """List, export and import recipes: the best configuration known for each workload and device.

    Without a command they are listed:

    \b
      autotune recipes [--recipes FILE] [--study NAME] [--store URL] [--json]
    """


@command.command("list", short_help="List the recipes of files and of the store.")
@click.option("--recipes", "file", metavar="FILE", type=FILE, help="A file of recipes.")
@study_option("Only recipes of this name.")
@store_option
@json_option
def listed(file: Path | None, study: str | None, store: str | None, as_json: bool) -> int:
    """List the recipes that `autotune.recipe` finds: of files, then of the store."""
    from autotune.hook.recipes.document import to_document
    from autotune.hook.recipes.places import Places
    from autotune.hook.recipes.staleness import changes
    from autotune.hook.recipes.this_device import this_device

    here = this_device()
    places = Places.of(file, store)
    recipes = _known(places, study).recipes
    stale = ["; ".join(changes(recipe, here)) for recipe in recipes]
    if as_json:
        documents = [
            to_document(recipe) | {"here": recipe.device in here.names, "stale": why}
            for recipe, why in zip(recipes, stale, strict=True)
        ]
        print_json({"device": str(here), "recipes": documents})
    elif recipes:
        echo("\n".join(_lines(recipes, stale, here)))
    if not recipes:
        what = f"of {study} " if study else ""
        said = f"there is no recipe {what}yet; autotune search makes one\n  looked in {places}"
        click.echo(f"autotune: {said}", err=True)
        return NOTHING_SUCCEEDED
    return DONE


def _known(places: Places, name: str | None) -> Known:
    """The recipes of the files, then those of the store; of one name, or all."""
    from autotune.hook.recipes.file import place_in_file
    from autotune.hook.recipes.preference import preferred
    from autotune.hook.recipes.recipe import Known

    known = places.filed()
    if places.has_store:
        from autotune.hook.recipes.stored import known_in

        known = known.and_then(known_in(places.store, name))
    if name is not None:
        known = known.of(name)
    ordered = sorted(preferred(known.recipes), key=place_in_file)
    return Known(tuple(ordered), known.spaces)


def _lines(recipes: tuple[Recipe, ...], stale: list[str], here: Here) -> list[str]:
    """A heading for each name and device, and the lines of each recipe below it."""
    from autotune.report.text import shown
    from autotune.space.spec import say_workload

    lines: list[str] = []
    head = ""
    for recipe, why in zip(recipes, stale, strict=True):
        own = "this device" if recipe.device in here.names else "another device"
        if head != (head := f"{recipe.name} on {recipe.device} ({own})"):
            lines.append(head)
        case = say_workload({**recipe.case.values, **recipe.case.types})
        lines.append(f"  {case or 'any workload'}: {_standing(recipe)}")
        lines.append(f"    {shown(recipe.configuration)}")
        if why:
            lines.append(f"    stale: {why}")
    return lines


def _standing(recipe: Recipe) -> str:
    from autotune.hook.lookup.say_how import say_won
    from autotune.report.numbers import say_value

    metric = recipe.metric
    measured = f"{metric.name} {say_value(metric.value, metric.unit)}" if metric else ""
    return ", ".join(part for part in (say_won(recipe), measured, recipe.study, recipe.tuned) if part)


@command.command("export", short_help="Write the recipes of a store to a file to commit.")
@click.option("--to", "file", metavar="FILE", required=True, type=FILE, help="The file: recipes.json, say.")
@study_option("Only recipes of this name.")
@store_option
@json_option
def export(file: Path, study: str | None, store: str | None, as_json: bool) -> int:
    """Write the recipes of a store to FILE, a readable file to commit.

    There is one for each name, device and workload; of several studies, the winner that `autotune.recipe`
    gives. Recipes in FILE for other names, devices and workloads stay.
    """
    from autotune.hook.recipes.file import write_known
    from autotune.hook.recipes.preference import preferred
    from autotune.hook.recipes.recipe import Known
    from autotune.hook.recipes.stored import read_known
    from autotune.report.numbers import say_count
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        known = read_known(opened, study, shares=True)
        where = opened.url
    if study is not None and not known.recipes and not known.spaces:
        _refuse_unknown(study, store)
    recipes = tuple(preferred(known.recipes))
    if not recipes:
        click.echo(f"autotune: no configuration has succeeded in {where}: nothing was written", err=True)
        return NOTHING_SUCCEEDED
    named = {recipe.name for recipe in recipes}
    spaces = {name: space for name, space in known.spaces.items() if name in named and space.document}
    there = write_known(file, Known(recipes, spaces), hint="choose another --to")
    undefended = sum(not recipe.defended for recipe in recipes)
    if as_json:
        counts = {"written": len(recipes), "not_defended": undefended, "recipes": len(there.recipes)}
        print_json({"file": str(file), "store": where, **counts})
    else:
        echo(f"{say_count(len(recipes), 'recipe')} written to {file}, which has {len(there.recipes)} now")
        if undefended:
            echo(f"{undefended} not defended: the study was not measured again beside its default")
    return DONE


@command.command("import", short_help="Put the recipes of a file into a store.")
@click.argument("file", metavar="FILE", type=FILE)
@store_option
@json_option
def import_(file: Path, store: str | None, as_json: bool) -> int:
    """Put the recipes of FILE into a store, where `autotune.recipe` finds them.

    Each replaces an imported recipe of the same name, device and workload. The studies of the store stay as
    they are; their winners are considered beside the imported recipes.
    """
    from autotune.hook.recipes.file import read_known
    from autotune.hook.recipes.stored import import_known
    from autotune.report.numbers import say_count
    from autotune.store.store import Store

    if not file.exists():
        raise InputError(Problem("there is no such file", Location(str(file))))
    known = read_known(file)
    with Store.open(store) as opened:
        count = import_known(opened, known)
        where = opened.url
    devices = sorted({recipe.device for recipe in known.recipes})
    if as_json:
        print_json({"file": str(file), "store": where, "imported": count, "devices": devices})
    else:
        echo(f"{say_count(count, 'recipe')} of {', '.join(devices) or 'no device'} imported into {where}")
    return DONE


def _refuse_unknown(name: str, store: str | None) -> None:
    from autotune.errors import nearest
    from autotune.hook.recipes.stored import names_in

    names, recordings = names_in(store)
    if name in recordings:
        message = f"{name} is a recording, which says nothing of any device"
        raise InputError(Problem(message, hint="search it with its objective"))
    raise InputError(
        Problem(f"there is no study {name!r} in this store", None, ", ".join(names), nearest(name, names))
    )
