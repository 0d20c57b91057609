"""``autotune verify``: is the answer of a study still right?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.codes import DOES_NOT_HOLD, DONE, NOTHING_SUCCEEDED
from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.replay import MEASURING, NOTHING_CHANGED
from autotune.cli.silence import said_if_long
from autotune.errors import InputError, Location, Problem, nearest
from autotune.report.words.titled import titled, titled_beginning

if TYPE_CHECKING:
    from autotune.hook.recipes.verifying import Verified

MOST_CHANGES = 12
"""The most lines on what has changed; the JSON document has all."""


@click.command("verify")
@click.argument("what", metavar="[STUDY|ARCHIVE]", required=False)
@click.option(
    "--recipes",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Verify the recipes in a file that are for this device.",
)
@click.option("--digest", metavar="HEX", help="For an archive: the digest that it should have.")
@study_option()
@store_option
@json_option
def command(
    what: str | None,
    file: Path | None,
    digest: str | None,
    study: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Measure the winner of a study and the default again, interleaved, and compare with the recorded result.

    The answer is 'agrees', 'differs', 'cannot be told' or 'cannot be measured here'. The exit code is 4 if
    anything differs, and 3 if nothing agrees.

    For an ARCHIVE (.zip) nothing is measured; the answer is whether anything in it was altered, and what.
    """
    if what is not None and (study is not None or file is not None):
        message = f"{what} was given, and --study or --recipes too"
        raise InputError(Problem(message, expected="one of them at a time"))
    if what is not None and what.endswith(".zip"):
        return _archive(Path(what), digest, store, as_json)
    if digest is not None:
        raise InputError(Problem("--digest is only for an archive", expected="FILE.zip with it"))
    study = study if what is None else what
    found = []
    with said_if_long(MEASURING, quiet=as_json):
        for verified in _verified(file, study, store):
            found.append(verified)
            if not as_json:
                echo("\n".join(say(verified)))
    if as_json:
        print_json({"verified": [document(one) for one in found]})
    if not found:
        nothing = "no recipe" if file is not None else "no trial that succeeded"
        click.echo(f"autotune: there is {nothing} to verify", err=True)
    verdicts = {one.result.verdict for one in found}
    if "differs" in verdicts:
        return DOES_NOT_HOLD
    return DONE if "agrees" in verdicts else NOTHING_SUCCEEDED


def _verified(file: Path | None, study: str | None, store: str | None) -> Iterator[Verified]:
    from autotune.hook.recipes.file import read_known
    from autotune.hook.recipes.this_device import this_device
    from autotune.hook.recipes.verifying import verify_file, verify_study

    if file is None:
        verified = verify_study(store, study)
        yield from [] if verified is None else [verified]
        return
    if not file.exists():
        raise InputError(Problem("there is no such file", Location(str(file))))
    known = read_known(file)
    if study is not None:
        names = [recipe.name for recipe in known.recipes]
        if study not in names:
            names = list(dict.fromkeys(names))
            message = f"{file} has no recipe of {study!r}"
            raise InputError(Problem(message, None, ", ".join(names), nearest(study, names)))
        known = known.of(study)
    yield from verify_file(known, this_device())


def _archive(file: Path, digest: str | None, store: str | None, as_json: bool) -> int:
    from autotune.interop.archives.known import known_digest
    from autotune.interop.archives.verifying import verify_archive

    if digest is not None and not re.fullmatch("[0-9a-fA-F]{64}", digest.strip()):
        raise InputError(
            Problem(
                f"--digest is {digest!r}, which no archive can have",
                expected="64 hexadecimal digits, as autotune export and autotune verify print them",
            )
        )
    with said_if_long("reading the archive: Ctrl-C ends it", quiet=as_json):
        found = verify_archive(file, digest, partial(known_digest, store))
    if as_json:
        print_json(found.to_document())
        return DONE if found.whole else DOES_NOT_HOLD
    head = "nothing was altered" if found.whole else "it was altered"
    lines = [f"{file}: {head}", *titled("study", found.study), *titled("digest", found.digest)]
    lines += [*titled("altered", *found.altered), *titled("known", found.known)]
    echo("\n".join(lines))
    return DONE if found.whole else DOES_NOT_HOLD


def document(verified: Verified) -> dict[str, Any]:
    """One recipe as JSON: what it claims, what was measured, what has changed."""
    from autotune.hook.recipes.document import to_document

    own = verified.result.to_document()
    return {
        "recipe": to_document(verified.recipe),
        **own,
        "changed": list(verified.changed),
        "kept": verified.kept,
    }


def say(verified: Verified) -> list[str]:
    """A block of lines."""
    from autotune.report.lineage.links import recipe_label
    from autotune.report.words.verdicts import say_result, say_rounds

    recipe, result = verified.recipe, verified.result
    head = f"{recipe_label(recipe)}: {result.verdict}"
    if not result.rounds:
        first, *rest = result.why.splitlines()
        return [f"{head}: {first}", *(f"  {line.strip()}" for line in rest)]
    lines = [f"{head}: {result.why}", *say_result(result)]
    differs = result.verdict == "differs"
    lines += titled_beginning("likely" if differs else "changed", verified.changed, MOST_CHANGES)
    if differs and not verified.changed:
        lines += titled("likely", NOTHING_CHANGED)
    return [*lines, *titled("readings", f"{say_rounds(result)}, {verified.kept}")]
