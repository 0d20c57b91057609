"""Compiled files are the same code where only names, paths and build ids differ."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.kernels.elf import code_fingerprint

TWICE = "int twice(int x) { return 2 * x; }\n"


def library(folder: Path, text: str, *flags: str) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.c").write_text(text)
    made = folder / "made.so"
    command = ["gcc", "-shared", "-fPIC", *flags, str(folder / "source.c"), "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made.read_bytes()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_same_code_from_elsewhere_is_the_same(tmp_path: Path) -> None:
    plain = library(tmp_path / "a", TWICE)
    for folder, text, flags in (
        ("a", TWICE, ("-g",)),
        ("b/c", "// a comment\n\n" + TWICE, ()),
        ("c", TWICE, ("-Wl,--build-id=0x1234567890abcdef1234567890abcdef12345678",)),
        ("d", TWICE, ("-DUNUSED=1", "-s")),
    ):
        other = library(tmp_path / folder, text, *flags)
        assert code_fingerprint(other) == code_fingerprint(plain), flags
    for text, flag in (
        (TWICE.replace("2 *", "3 *"), "-O0"),
        (TWICE, "-O2"),
        (TWICE + "int data = 1;\n", "-O0"),
    ):
        assert code_fingerprint(library(tmp_path / "e", text, flag)) != code_fingerprint(plain)


@given(st.binary(max_size=200), st.booleans())
def test_what_is_no_elf_file_is_hashed_as_it_is(content: bytes, looks_like_one: bool) -> None:
    content = b"\x7fELF\x02\x01" + content if looks_like_one else b"PTX" + content
    fingerprint = code_fingerprint(content)
    if not looks_like_one:
        assert fingerprint == hashlib.sha256(content).hexdigest()[:16]
