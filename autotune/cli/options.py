"""Options that several verbs share."""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from autotune.cli.completion import studies
from autotune.errors import InputError, Problem, nearest
from autotune.paths import expanded

Command = TypeVar("Command", bound=Callable[..., Any])


def store_option(command: Command) -> Command:
    return click.option(
        "--store",
        metavar="URL",
        help="Database or file of the studies.  [default: $AUTOTUNE_STORE or sqlite:///results/autotune.db]",
    )(command)


def same_store(store: str | None) -> str:
    """The ``--store`` option, with a leading space, that makes a suggested command use the same store.

    Empty for the default store. A file that a variable names is included, since the variable may have been
    set for one command only. A password is left out.
    """
    from autotune.store.databases.address import DEFAULT_URL, default_url, read_address

    written = store or default_url()
    if not store and written == DEFAULT_URL:
        return ""
    address = read_address(written)
    if address.kind != "sqlite":
        return f" --store {shlex.quote(address.without_password)}" if store else ""
    return f" --store {shlex.quote(written if '://' in written else str(expanded(written)))}"


def as_argument(path: str | Path) -> str:
    """``path`` quoted as an argument of a suggested command; one that begins with a dash is no option."""
    written = str(path)
    return shlex.quote(f"./{written}" if written.startswith("-") else written)


def study_option(text: str = "") -> Callable[[Command], Command]:
    """``--study``; ``text`` is its help if the usual one does not fit the verb."""
    text = text or STUDY_HELP.format("the latest")
    return click.option("--study", metavar="NAME", help=text, shell_complete=studies)


def study_argument(default: str = "the latest") -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The study that a verb is about, as an argument or as ``--study``; the verb gets it as ``study``."""

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def with_study(named: str | None, study: str | None, **others: Any) -> int:
            if named is not None and study is not None:
                message = f"the study is {named}, and --study {study}"
                raise InputError(Problem(message, expected="one study at a time"))
            return command(study=study if named is None else named, **others)

        option = study_option(STUDY_HELP.format(default))(with_study)
        return click.argument("named", metavar="[STUDY]", required=False, shell_complete=studies)(option)

    return decorated


STUDY_HELP = "Name of a study, or NAME#ID.  [default: {}]"


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")(
        command
    )


def workload_option(command: Command) -> Command:
    return click.option(
        "--workload",
        "facts",
        metavar="NAME=VALUE",
        multiple=True,
        help="Set a fact of the workload, instead of the file's; may be repeated: --workload m=512.",
    )(command)


def device_option(command: Command) -> Command:
    return click.option(
        "--device",
        metavar="PROFILE",
        help="Facts of another device: a profile's name or file.  [default: this machine]",
    )(command)


def print_json(document: object) -> None:
    """Print one JSON document to stdout, with null for NaN and infinities."""
    click.echo(json.dumps(_finite(document), indent=2, default=str))


def echo(text: str) -> None:
    """Print text for people to stdout, with control characters escaped (``\\x1b``) except new lines and tabs.

    It may contain names, messages and output of programs, which should not control the terminal.
    """
    from autotune.report.text import visible

    click.echo(visible(text, sys.maxsize))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """``90``, ``90s``, ``10m``, ``1h30m``: a time in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        from autotune.space.units import seconds

        if isinstance(value, float):
            return value
        try:
            return seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, context)


def find_space(name: str) -> Path:
    """The space file that is meant: a path, or the name of a ready space (``gemm-c``)."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return path
    from autotune.ready import ready_spaces

    ready = ready_spaces()
    if name in ready:
        return ready[name]
    if re.fullmatch(r"[\w-]+", name):
        raise InputError(
            Problem(
                f"there is no file and no ready space {name!r}",
                expected=f"a space file, or one of {', '.join(ready)}",
                hint=nearest(name, ready),
            )
        )
    return path
