"""``autotune best``: the best configuration of a study, in the form that the next program reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from autotune.cli.main import NOTHING_SUCCEEDED
from autotune.cli.options import json_option, print_json, store_option, study_option

if TYPE_CHECKING:
    from autotune.session.result import Result


@click.command("best")
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json", "env", "flags"]),
    default="yaml",
    help="yaml; json (with metrics and speed-up); env (KNOB=value lines); flags (--knob=value).",
)
@study_option
@store_option
@json_option
def command(form: str, study: str | None, store: str | None, as_json: bool) -> int:
    """Print the best configuration of a study: the defended winner, or the best so far."""
    from autotune.session.result import load_result
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        result = load_result(opened, opened.study(study))
    if as_json or form == "json":
        print_json(result.to_document())
    elif result.best is not None:
        click.echo(FORMS[form](result))
    if result.best is None:
        click.echo(f"autotune: study {result.study.name} has no configuration that succeeded", err=True)
        return NOTHING_SUCCEEDED
    return 0


def as_yaml(result: Result) -> str:
    from autotune.report.summary import headline

    lines = [f"# {headline(result)}"]
    lines += [f"{name}: {_flow(value)}" for name, value in _plain(result).items()]
    return "\n".join(lines)


def as_env(result: Result) -> str:
    return "\n".join(f"{name.upper()}={shlex.quote(_word(value))}" for name, value in _plain(result).items())


def as_flags(result: Result) -> str:
    return " ".join(shlex.quote(f"--{name}={_word(value)}") for name, value in _plain(result).items())


FORMS: dict[str, Callable[[Result], str]] = {"yaml": as_yaml, "env": as_env, "flags": as_flags}


def _plain(result: Result) -> dict[str, object]:
    from autotune.space.configuration import plain

    assert result.best is not None
    return {name: plain(value) for name, value in result.best.items()}


def _flow(value: object) -> str:
    """JSON is YAML; a word that YAML reads as text needs no quotes, but quotes do no harm."""
    return json.dumps(value)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    return str(value)
