"""The configurations of ``triton.autotune`` that a Python source makes when it is imported, as a space.yaml.

For sources whose lists are made of what other packages, the device or the environment say
(:mod:`autotune.interop.space_files.triton_configs` reads texts alone). The import is in a process of its
own, with the Python that autotune runs in.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from autotune.errors import InputError, Location, Problem, shorten
from autotune.interop.space_files import kernel_probe
from autotune.interop.space_files.space_text import Converted
from autotune.interop.space_files.triton_space import (
    Config,
    Listed,
    chosen,
    names_in,
    not_translated,
    space_of,
)
from autotune.space.reading.space_file import load_text

UNSEEN = "kernels in functions, and under conditions that do not hold here, are found without --run"


@dataclass(frozen=True)
class _Foreign:
    """A value that is neither a number, a flag nor a text."""

    text: str

    def __repr__(self) -> str:
        return self.text


def convert(file: Path, kernel: str = "", configs: str = "", output: Path | None = None) -> Converted:
    """The space of the configurations that importing ``file`` makes.

    The arguments are those of :func:`autotune.interop.space_files.triton_configs.convert`. Raises
    :class:`InputError` where the import fails, or no kernel of the file is under ``triton.autotune``.
    """
    load_text(file)  # that it can be read at all
    document = _imported(file, configs)
    found = chosen(kernel, {one["name"]: one for one in document["kernels"]}, file, UNSEEN)
    if configs and "named" not in document:
        raise InputError(Problem(f"it has no {configs!r}", Location(str(file)), "a list or a function of it"))
    where = Location(str(file), found["line"])
    made = [_config(one, where) for one in document.get("named", found["configs"])]
    if not made:
        raise InputError(Problem("the list of configurations is empty", where))
    keys, notes = names_in(found["keys"], found["parameters"])
    notes += map(not_translated, found["left_out"])
    return space_of(Listed(found["name"], found["line"], made, keys, notes), file, output)


def _imported(file: Path, configs: str) -> dict[str, Any]:
    """What importing ``file`` came to."""
    command = [sys.executable, "-P", kernel_probe.__file__, str(file.absolute().resolve()), configs]
    done = _run(command)
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise InputError(Problem(_death(done), Location(str(file)))) from None
    if why := document.get("failed_named"):
        where = Location(str(file), document["line"])
        expected = "a list of triton.Config, or a function without arguments that returns one"
        raise InputError(Problem(f"--configs {configs}: {shorten(why, 300)}", where, expected))
    if why := document.get("failed"):
        where = Location(str(file), document["line"])
        hint = "it has to be importable by the Python that autotune runs in"
        raise InputError(Problem(f"importing it failed: {shorten(why, 300)}", where, hint=hint))
    return document


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Into files: a pipe would be read until whatever the source has started in the background ends too."""
    with _text() as out, _text() as err:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())


def _text() -> IO[str]:
    return tempfile.TemporaryFile("w+", errors="replace")


def _death(done: subprocess.CompletedProcess[str]) -> str:
    """How a process ended that gave no answer, and what it last said."""
    how = f"with exit code {done.returncode}"
    if done.returncode < 0:
        how = f"by {signal.Signals(-done.returncode).name}"
    last: Sequence[str] = done.stderr.strip().splitlines()[-1:]
    return f"importing it ended its process {how}" + "".join(f": {shorten(line)}" for line in last)


def _config(one: Mapping[str, Any], where: Location) -> Config:
    kwargs = {name: _value(value) for name, value in one["kwargs"].items()}
    options = {name: _value(value) for name, value in one["options"].items()}
    return Config(kwargs, **options, where=where, left_out=tuple(one["others"]))


def _value(value: object) -> object:
    return _Foreign(value["shown"]) if isinstance(value, dict) else value
