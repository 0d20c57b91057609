"""``autotune convert``: make a space from what another tuner's source or file describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli.options import as_argument, echo, json_option, print_json
from autotune.cli.silence import said_if_long
from autotune.cli.writing import refuse_existing, write_text
from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    from autotune.interop.space_files.space_text import Converted


@click.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="SPACE",
    type=click.Path(path_type=Path),
    help="[default: FILE with .yaml]",
)
@click.option("--kernel", metavar="NAME", default="", help="Which kernel of a source that has several.")
@click.option(
    "--configs",
    metavar="NAME",
    default="",
    help="A list or function in the source to read instead of what the decorator names.",
)
@click.option("--run", is_flag=True, help="Import the source, and take the configurations that it makes.")
@click.option("--all", "everything", is_flag=True, help="All combinations of the values, the list's first.")
@click.option("--force", is_flag=True, help="Overwrite SPACE if it exists.")
@json_option
def command(
    file: Path,
    output: Path | None,
    kernel: str,
    configs: str,
    run: bool,
    everything: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Make a space.yaml from FILE: a source with triton.autotune or tune_kernel (.py), or a T1 file (.json).

    The source is only read, unless --run is given. An error names the line of what is not understood.
    """
    from autotune.interop.space_files.exact_rules import combinations
    from autotune.report.numbers import say_count

    if file.suffix not in (".json", ".py"):
        raise InputError(Problem(f"{file} is of no known kind", expected="a .py or a .json file"))
    space = output or Path(file.stem + ".yaml")
    refuse_existing(space, force, file)
    with said_if_long("reading it and counting its configurations: Ctrl-C ends it", quiet=as_json):
        converted = _converted(file, kernel, configs, space, run, everything)
        write_text(space, converted.text())
        size, most = converted.checked().feasible.size, combinations(converted.knobs)
    document = {
        "space": str(space),
        "source": str(file),
        "kernel": converted.name,
        "knobs": len(converted.knobs),
        "configurations": size,
        "combinations": most,
        "notes": list(converted.notes),
    }
    if as_json:
        print_json(document)
        return 0
    found = "too many to count" if size is None else say_count(size, "configuration")
    of = say_count(most, "combination")
    echo(f"{space}: {say_count(len(converted.knobs), 'knob')}, {found} of {of}")
    for note in converted.notes:
        echo(f"note: {note}")
    echo(f"next:  autotune check {as_argument(space)}")
    return 0


def _converted(file: Path, kernel: str, configs: str, space: Path, run: bool, everything: bool) -> Converted:
    """The space of what ``file`` describes."""
    from autotune.interop.space_files import (
        kernel_tuner_script,
        kernel_tuner_t1,
        triton_configs,
        triton_run,
    )
    from autotune.interop.space_files.package_files import read_source
    from autotune.interop.space_files.triton_kernels import autotuned

    if file.suffix == ".json":
        if kernel or configs or run or everything:
            message = "--kernel, --configs, --run and --all are for Python sources: a T1 file has one kernel"
            raise InputError(message)
        return kernel_tuner_t1.convert(file)
    _, tree = read_source(file)
    if kernel_tuner_script.tuned_in(tree) and not autotuned(tree):
        if configs or run or everything:
            raise InputError(
                "--configs, --run and --all are for triton.autotune, and this is for Kernel Tuner"
            )
        return kernel_tuner_script.convert(file, kernel)
    convert = triton_run.convert if run else triton_configs.convert
    converted = convert(file, kernel, configs, space)
    return converted.widened() if everything else converted
