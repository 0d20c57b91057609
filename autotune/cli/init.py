"""``autotune init``: write a working space and objective to start from."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import click

from autotune.cli.options import as_argument, echo, json_option, print_json
from autotune.errors import InputError, OutputError, Problem
from autotune.paths import written_whole

KINDS = {
    "python": ("space.yaml", "objective.py"),
    "c": ("space.yaml", "objective.py", "kernel.c"),
    "command": ("space.yaml", "program.py"),
}
"""The files of each template, kept under ``autotune/cli/templates/KIND``."""


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--kind",
    type=click.Choice(list(KINDS)),
    default="python",
    show_default=True,
    help="What the objective is.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@json_option
def command(folder: Path, kind: str, force: bool, as_json: bool) -> int:
    """Write a space.yaml and an objective into FOLDER that work as they are.

    python: a Python function. c: a function in C, compiled for every configuration. command: a
    program that is run with the knobs as arguments.
    """
    files = [folder / name for name in KINDS[kind]]
    existing = [str(file) for file in files if file.exists()]
    if existing and not force:
        raise InputError(
            Problem(f"already there: {', '.join(existing)}", hint="choose another folder, or add --force")
        )
    templates = resources.files("autotune.cli") / "templates" / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as drafts:  # all of them or none
            for file in files:
                draft = drafts.enter_context(written_whole(file))
                draft.write_text((templates / file.name).read_text("utf-8"), "utf-8")
    except OSError as error:
        raise OutputError.of(folder, error) from error
    if as_json:
        print_json({"files": [str(file) for file in files], "kind": kind})
    else:
        echo("written: " + ", ".join(str(file) for file in files))
        space = as_argument(files[0])
        echo(f"next:    autotune check {space}")
        echo(f"         autotune search {space} --trials 30")
    return 0
