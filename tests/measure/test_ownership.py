"""Temporary things that tell who made them, and are swept once their owner is dead."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autotune.errors import AutotuneError
from autotune.measure.ownership import is_abandoned, make_scratch, owned_name


def test_the_scratch_folder_of_a_dead_session_is_swept() -> None:
    code = "from autotune.measure.ownership import make_scratch\nprint(make_scratch('left'))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    left = Path(printed.stdout.strip())
    assert left.is_dir()
    own = make_scratch("own")
    assert not left.exists() and own.is_dir()
    other = make_scratch("other")
    assert own.is_dir()
    own.rmdir()
    other.rmdir()


def test_where_no_temporary_folder_can_be_made_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search in a container without any place to write to had said that its current folder was gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(AutotuneError, match=r"no temporary folder can be made: .*gone.*TMPDIR"):
        make_scratch("own")


def test_names_tell_the_living_from_the_dead() -> None:
    mine = owned_name("x")
    assert not is_abandoned(mine)
    prefix, namespace, pid, start, rest = mine.split("-")
    assert is_abandoned(f"{prefix}-{namespace}-{pid}-{int(start) - 1}-{rest}"), (
        "another process had this number"
    )
    assert not is_abandoned(f"{prefix}-1-{pid}-1-{rest}"), "another namespace cannot be judged"
    assert not is_abandoned("autotune-notes") and not is_abandoned("something")


def test_nobody_is_dead_because_no_more_files_can_be_opened() -> None:
    """The folder of a search that runs would be removed by another one that is short of descriptors."""
    code = """
import resource
from autotune.measure.ownership import is_abandoned, owned_name
name, (_, hard) = owned_name("x"), resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
print(is_abandoned(name))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_name_has_only_what_any_locale_has() -> None:
    """A study of that name had ended in a traceback where file names are ASCII."""
    assert owned_name("größe 1/2").endswith("-gr__e_1_2")
