"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from autotune.measure.cores import turns
from autotune.measure.kernels import compile_cache

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


TEMPORARY = "PYTEST_DEBUG_TEMPROOT"
"""Names the folder in which pytest makes those of tests."""
ENOUGH_BYTES = 4 << 30
"""Several times what the tests of a run leave at any moment."""


def pytest_configure(config: pytest.Config) -> None:
    """What is done once for all processes of a run."""
    if hasattr(config, "workerinput"):  # one of several, of which the first has done it
        return
    if TEMPORARY not in os.environ and (folder := in_memory()):
        os.environ[TEMPORARY] = folder
    let_git_note_times()


def in_memory() -> str:
    """A folder that lies in memory, has room, and may hold programs; empty where there is none.

    Some thousand stores are made, and a disk takes some hundredths of a second to write and to delete one.
    """
    try:
        status = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return ""
    room = status.f_bavail * status.f_frsize >= ENOUGH_BYTES
    return "/dev/shm" if room and not status.f_flag & os.ST_NOEXEC and os.access("/dev/shm", os.W_OK) else ""


def let_git_note_times() -> None:
    """In a new clone git reads most files whenever it is asked, until ``git status`` has noted their times.

    The git of a search notes nothing, and some hundred searches here ask for the state of this repository.
    """
    if shutil.which("git"):
        status = ["git", "status", "--porcelain", "--untracked-files=no"]
        subprocess.run(status, cwd=Path(__file__).parent, capture_output=True, check=False)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: no later collection of garbage need look at all of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Searches of a test take no turns with whatever else measures on this machine, which may be slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(turns.VARIABLE, str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(autouse=True, scope="session")
def compiled() -> Iterator[None]:
    """Nothing comes from the user's cache, nor goes there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(compile_cache.VARIABLE, "off")
        yield


@pytest.fixture(autouse=True, scope="session")
def clean_checkout() -> Iterator[None]:
    """No test leaves anything in the folder in which the tests are run."""
    before = seen(Path.cwd())
    yield
    left = seen(Path.cwd()) - before
    assert not left, f"left in {Path.cwd()} by a test: {', '.join(sorted(left))}"


def seen(folder: Path) -> set[str]:
    """The names that ``ls`` shows."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}
