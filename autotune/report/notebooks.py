"""Opening the notebooks: those of the repository, or copies of those in the package."""

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

FOLDER = Path("results")
"""Where the notebooks are, in the current folder."""


def notebooks_in(folder: Path) -> list[Path]:
    """The notebooks in ``folder``; if it has none, copies are made there, which the user can change."""
    found = sorted(folder.glob("*.ipynb"))
    if found:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(path, folder)) for path in sorted((ready_root() / "results").glob("*.ipynb"))]


def open_notebooks(store: str | None, host: str, port: int, open_browser: bool) -> NoReturn:
    """Replace this process by JupyterLab in the folder ``results``, whose notebooks read ``store``.

    It listens on ``host`` and ``port``, or on a later port if that is taken, and requires its token.

    Raises :class:`~autotune.errors.InputError` if JupyterLab is not installed, or if a store was named that
    does not exist, since every cell would fail.
    """
    named = bool(store or os.environ.get(VARIABLE))
    if named:
        with opened(store):
            pass
    if importlib.util.find_spec("jupyterlab") is None:
        hint = "pip install jupyterlab ipykernel, or open the notebooks in results/ with another program"
        raise InputError(Problem("JupyterLab is not installed", hint=hint))
    notebooks_in(FOLDER)
    address = read_address(store)
    environment = dict(os.environ)
    if named or (address.file is not None and address.file.exists()):
        # An absolute URL, since they run in another folder. Without a store they show the recorded studies.
        environment[VARIABLE] = address.url.render_as_string(hide_password=False)
    options = [f"--ip={host}", f"--port={port}"]
    if not open_browser:
        options.append("--no-browser")
    if os.geteuid() == 0:
        options.append("--allow-root")  # without this it does not start in most containers
    command = [sys.executable, "-m", "jupyterlab", *options, str(FOLDER)]
    sys.stdout.flush()
    # It replaces this process, so that it gets its signals: on an interrupt it asks whether to stop.
    os.execve(sys.executable, command, environment)
