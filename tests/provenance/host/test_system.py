"""Reading files that may not be there, may refuse to be read, or may hold nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.provenance.host.system import System, as_bytes, as_int, cpu_list, key_values


def test_missing_files_are_none(tmp_path: Path) -> None:
    system = System(tmp_path)
    assert system.text("/proc/cpuinfo") is None
    assert system.number("/proc/nothing") is None
    assert system.names("/sys") == ()
    assert system.fields("/proc/meminfo") == {}
    assert system.sysconf("SC_PAGE_SIZE") is None, "a copied machine has no C library"


def test_a_folder_in_the_place_of_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "proc" / "cpuinfo").mkdir(parents=True)
    assert System(tmp_path).text("/proc/cpuinfo") is None


def test_bytes_that_are_no_text_do_not_stop_reading(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"\xff\xfeboard\0")
    assert (System(tmp_path).text("/model") or "").endswith("board")


def test_this_machine_answers() -> None:
    system = System()
    assert system.live
    assert (system.sysconf("SC_PAGE_SIZE") or 0) >= 4096
    assert system.sysconf("SC_NO_SUCH_NAME") is None
    assert "MemTotal" in system.fields("/proc/meminfo")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("48K", 48 << 10),
        ("32M", 32 << 20),
        ("1G", 1 << 30),
        ("512", 512),
        ("16303428 kB", 16303428 << 10),
        ("1024KiB", 1 << 20),
        ("", None),
        (None, None),
        ("many", None),
        ("K", None),
        ("-", None),
        ("-5 kB", None),
    ],
)
def test_sizes(text: str | None, size: int | None) -> None:
    assert as_bytes(text) == size


@given(st.text(max_size=20))
def test_no_text_breaks_the_readers(text: str) -> None:
    as_bytes(text), as_int(text), cpu_list(text), key_values(text, ":")


@given(st.sets(st.integers(0, 300), max_size=40))
def test_processor_lists_are_read_back(cpus: set[int]) -> None:
    assert cpu_list(",".join(map(str, sorted(cpus)))) == tuple(sorted(cpus))


def test_processor_ranges() -> None:
    assert cpu_list("0-3,8,10-11\n") == (0, 1, 2, 3, 8, 10, 11)
    assert cpu_list("0-6:2/4") == (0, 1, 2, 3, 4, 5, 6)
    assert cpu_list("3-1, x, 0-99999999999") == ()
    assert cpu_list(None) == ()


def test_the_first_of_a_key_counts() -> None:
    assert key_values("a: 1\na: 2\nno mark\nb:3", ":") == {"a": "1", "b": "3"}
