"""``autotune import``: make a replay space from a recorded search."""

from __future__ import annotations

from pathlib import Path

import click

from autotune.cli.options import json_option, print_json
from autotune.errors import InputError, Problem


@click.command("import")
@click.argument("recording", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="[default: RECORDING's name .yaml]",
)
@click.option("--force", is_flag=True, help="Write over FILE where it exists.")
@json_option
def command(recording: Path, output: Path | None, force: bool, as_json: bool) -> int:
    """Make a space.yaml that replays RECORDING, a Kernel Tuner cache file or a T4 file (also .gz).

    A replay serves the recorded readings; it is labelled as a replay wherever it is shown.
    """
    from autotune.interop.kernel_tuner import space_document
    from autotune.measure.recording import read_recording

    recorded = read_recording(recording)
    file = output or Path(recording.name.removesuffix(".gz").removesuffix(".json") + ".yaml")
    if file.exists() and not force:
        raise InputError(Problem(f"{file} exists", hint="choose another -o, or say --force"))
    try:
        file.write_text(space_document(recorded, recording, file))
    except OSError as error:
        raise InputError(Problem(f"cannot write {file}: {error.strerror or error}")) from error
    failed = sum(entry.status.failed for entry in recorded.entries)
    if as_json:
        print_json(
            {
                "space": str(file),
                "recording": str(recording),
                "configurations": len(recorded.entries),
                "failed": failed,
            }
        )
    else:
        click.echo(f"{file}: {len(recorded.entries):,} recorded configurations, {failed:,} of them failed")
        click.echo(f"next:  autotune search {file}")
    return 0
