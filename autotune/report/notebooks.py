"""Opening the notebooks: the repository's own, or copies of those that came with the package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from autotune.errors import InputError, Problem
from autotune.ready import ready_root
from autotune.report.evidence import opened
from autotune.store.databases.address import VARIABLE, read_address


def notebooks_in(folder: Path) -> list[Path]:
    """The notebooks in ``folder``, copied there where it has none: they are a user's to change."""
    found = sorted(folder.glob("*.ipynb"))
    if found:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(path, folder)) for path in sorted((ready_root() / "results").glob("*.ipynb"))]


def open_notebooks(
    store: str | None, host: str, port: int, open_browser: bool, folder: Path = Path("results")
) -> NoReturn:
    """Become JupyterLab in ``folder``, whose notebooks read ``store``.

    It listens at ``host`` and ``port``, or at a later port where that is taken, and asks for its token.

    Raises :class:`~autotune.errors.InputError` where JupyterLab is not installed, or where a store that was
    named is not there: every cell would fail.
    """
    named = bool(store or os.environ.get(VARIABLE))
    if named:
        with opened(store):
            pass
    if importlib.util.find_spec("jupyterlab") is None:
        hint = "pip install jupyterlab ipykernel, or open the notebooks in results/ with another program"
        raise InputError(Problem("JupyterLab is not installed", hint=hint))
    notebooks_in(folder)
    address = read_address(store)
    environment = dict(os.environ)
    if named or (address.file is not None and address.file.exists()):
        # Absolute, since their folder is another. Where nothing was searched yet they show what is recorded.
        environment[VARIABLE] = address.url.render_as_string(hide_password=False)
    options = [f"--ip={host}", f"--port={port}"]
    if not open_browser:
        options.append("--no-browser")
    if os.geteuid() == 0:
        options.append("--allow-root")  # else it would not start in most containers
    command = [sys.executable, "-m", "jupyterlab", *options, str(folder)]
    sys.stdout.flush()
    # In this process's place, so that it hears what is sent to it: it asks whether an interrupt is to end it.
    os.execve(sys.executable, command, environment)
