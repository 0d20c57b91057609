"""Where a notebook's store comes from."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.report import recorded
from autotune.report.recorded import notebook_store


def test_the_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", "postgresql://server/studies")
    assert notebook_store() == "postgresql://server/studies"


def test_what_is_recorded_is_unpacked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "mine.db.gz").write_bytes(gzip.compress(b"a store"))
    first = Path(notebook_store(tmp_path / "mine.db.gz"))
    assert first.read_bytes() == b"a store"
    before = first.stat().st_mtime_ns
    assert Path(notebook_store(tmp_path / "mine.db.gz")) == first
    assert first.stat().st_mtime_ns == before
    assert [path.name for path in first.parent.iterdir()] == ["recorded.db"]


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"a store", mtime=0)[:20], b"version https://git-lfs.github.com/spec/v1\n"],
    ids=["cut short", "pointer"],
)
def test_a_damaged_file_is_named_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "mine.db.gz"
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"{file}: the recorded studies cannot be unpacked"):
        notebook_store(file)
    assert list(tmp_path.iterdir()) == [file]


def test_each_version_of_the_schema_has_a_copy_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "mine.db.gz").write_bytes(gzip.compress(b"a store"))
    first = Path(notebook_store(tmp_path / "mine.db.gz"))
    first.write_bytes(b"a store that a newer autotune has opened")
    monkeypatch.setattr(recorded, "VERSION", "9999")
    assert Path(notebook_store(tmp_path / "mine.db.gz")).read_bytes() == b"a store"
