"""What holds for all tests."""

from __future__ import annotations

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


def pytest_configure(config: pytest.Config) -> None:
    """In a new clone git reads most files whenever it is asked, until ``git status`` has noted their times.

    The git of a search notes nothing, and some hundred searches here ask for the state of this repository.
    """
    if not hasattr(config, "workerinput") and shutil.which("git"):  # in the first process of several
        status = ["git", "status", "--porcelain", "--untracked-files=no"]
        subprocess.run(status, cwd=Path(__file__).parent, capture_output=True, check=False)


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
