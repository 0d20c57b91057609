"""Shell completion of ready spaces and space files, strategies, and the studies of a store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

YAML = (".yaml", ".yml")


def spaces(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Ready spaces, space files, and folders that may hold space files."""
    from autotune.ready import ready_spaces

    folder, slash, start = begun.rpartition("/")
    found = []
    with suppress(OSError):
        for path in Path(folder + slash).iterdir():
            name = f"{folder}{slash}{path.name}"
            if path.is_dir() and not (path.name.startswith(".") and not start):
                found.append(f"{name}/")
            elif path.suffix in YAML:
                found.append(name)
    return _beginning(begun, [*ready_spaces(), *sorted(found)])


def strategies(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from autotune.space.reading.settings import STRATEGIES

    return _beginning(begun, STRATEGIES)


def studies(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The names of the studies in the command's store; none if it cannot be read."""
    from autotune.errors import AutotuneError
    from autotune.store.store import Store

    try:
        with Store.open(context.params.get("store"), readonly=True) as store:
            names = dict.fromkeys(study.name for study in reversed(store.studies()))
    except AutotuneError:
        return []
    return _beginning(begun, names)


def _beginning(begun: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
