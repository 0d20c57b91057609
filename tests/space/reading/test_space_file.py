"""Files that are none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.space.reading.reader import read_spec
from autotune.space.reading.space_file import MAX_BYTES


class TestFiles:
    def said(self, path: Path) -> str:
        with pytest.raises(InputError) as error:
            read_spec(path)
        return str(error.value)

    def test_missing(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_text("")
        assert "there is no such file\n  did you mean 'space.yaml'?" in self.said(tmp_path / "spaec.yaml")
        assert "there is no folder" in self.said(tmp_path / "nowhere" / "space.yaml")

    def test_a_link_that_leads_nowhere_says_where_it_leads(self, tmp_path: Path) -> None:
        """Its own name had been offered in its place."""
        (tmp_path / "space.yaml").symlink_to("moved.yaml")
        assert self.said(tmp_path / "space.yaml").endswith("no such file\n  it is a link to 'moved.yaml'")

    def test_a_ready_space_is_told_by_its_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """From Python a space is a file; the shell takes the name as well."""
        monkeypatch.chdir(tmp_path)
        file = re.search(r"the ready space of this name is '(.*)'", self.said(Path("gemm-c")))
        assert file is not None and Path(file[1]).name == "gemm-c.yaml" and Path(file[1]).is_file()

    def test_folder(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_text("")
        said = self.said(tmp_path)
        assert "this is a folder" in said and "space.yaml'?" in said

    def test_program(self, tmp_path: Path) -> None:
        """It was read as YAML, and its first colon was said to begin no value."""
        (tmp_path / "train.py").write_text("if True:\n    print('a: b')\n")
        said = self.said(tmp_path / "train.py")
        assert (
            "this is a program" in said and "command: [python, train.py], or objective: train.py:NAME" in said
        )

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "space.yaml")
        assert "this is not a regular file" in self.said(tmp_path / "space.yaml")

    def test_huge(self, tmp_path: Path) -> None:
        with (tmp_path / "space.yaml").open("wb") as file:
            file.truncate(50 * MAX_BYTES)
        assert "the file has 50.0 MiB" in self.said(tmp_path / "space.yaml")

    def test_binary(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes(b"\x7fELF\x02\x01\x00\x00\xc0\xff")
        assert ":1:9: the byte 0xc0 is not UTF-8" in self.said(tmp_path / "space.yaml")

    def test_nul(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes(b"autotune: 1\nname: a\x00b\n")
        assert ":2:8: a NUL byte in the text" in self.said(tmp_path / "space.yaml")

    def test_latin_1(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes("autotune: 1\nname: é\n".encode("latin-1"))
        assert ":2:7: the byte 0xe9 is not UTF-8" in self.said(tmp_path / "space.yaml")

    def test_utf_16(self, tmp_path: Path) -> None:
        (tmp_path / "space.yaml").write_bytes("autotune: 1\n".encode("utf-16"))
        assert "this looks like UTF-16" in self.said(tmp_path / "space.yaml")

    def test_a_name_with_a_nul(self) -> None:
        assert re.search("no such file|cannot be read", self.said(Path("a\x00b.yaml")))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_forbidden(self, tmp_path: Path) -> None:
        path = tmp_path / "space.yaml"
        path.write_text("")
        path.chmod(0)
        assert "Permission denied" in self.said(path)
