"""``autotune dashboard``: what it says of a store before it serves it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli.dashboard import command
from autotune.errors import AutotuneError
from tests.cli.calling import call


def hears_ctrl_c() -> None:
    """What runs in a shell's background, as tests may, is started with that signal ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def served(folder: Path, store: str) -> tuple[str, int, str]:
    """The address that is printed, then the exit code after Ctrl-C, and what stands on stderr."""
    arguments = [sys.executable, "-m", "autotune", "dashboard", "--no-open", "--port", "0", "--json"]
    process = subprocess.Popen(
        [*arguments, "--store", store],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=hears_ctrl_c,
    )
    assert process.stdout is not None
    document = "".join(process.stdout.readline() for _ in range(3))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    return json.loads(document)["address"], process.returncode, errors


def test_a_store_that_is_not_there_yet_is_said_and_served(tmp_path: Path) -> None:
    """It may be opened before the first search; a name that is misspelt is seen at once."""
    address, code, said = served(tmp_path, "studdy.db")
    assert address.startswith("http://127.0.0.1:") and code == 0
    assert f"note: there is no store at {tmp_path / 'studdy.db'} yet" in said
    assert not (tmp_path / "studdy.db").exists()


def test_of_a_store_that_is_there_nothing_is_said(folder: Path) -> None:
    assert "note" not in served(folder, "study.db")[2]


def test_a_store_that_cannot_be_read_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database")
    done = call(command, "--no-open", "--port", "0", "--store", tmp_path / "text.db")
    assert isinstance(done.exception, AutotuneError) and "not an SQLite database" in str(done.exception)


def test_notebooks_of_a_store_that_is_not_there_are_not_opened(tmp_path: Path) -> None:
    done = call(command, "--notebooks", "--no-open", "--store", tmp_path / "studdy.db")
    assert isinstance(done.exception, AutotuneError) and "there is no store at" in str(done.exception)


def test_ctrl_c_is_left_to_the_notebooks(tmp_path: Path) -> None:
    """JupyterLab asks whether to end, and saves what its kernels hold."""
    (tmp_path / "jupyterlab.py").write_text(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "print('began', flush=True)\nsignal.sigwait([signal.SIGINT])\nprint('End it?', input(), flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "autotune", "dashboard", "--notebooks", "--no-open"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )
    assert process.stdout is not None and process.stdout.readline() == "began\n"
    os.killpg(process.pid, signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    assert process.communicate("yes\n")[0] == "End it? yes\n" and process.returncode == 0


def test_an_address_that_is_not_of_this_machine_is_no_matter_of_the_port(tmp_path: Path) -> None:
    done = call(command, "--no-open", "--host", "192.0.2.1", "--port", "0", "--store", tmp_path / "some.db")
    assert isinstance(done.exception, AutotuneError)
    said = str(done.exception)
    assert "192.0.2.1:0 cannot be listened on" in said and "--host is an address of" in said
    assert "--port" not in said
