"""The cache of compiled code: whole entries or none, bounded, safe among many writers, never stale."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.measure.kernels.c_identity import compilation_key, compiler_identity
from autotune.measure.kernels.compile_cache import (
    VARIABLE,
    CompileCache,
    Compiled,
    cache_folder,
    cache_key,
)

KEY = cache_key(text="a")


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "cache")


def entry(cache: CompileCache, key: str = KEY) -> Path:
    assert cache.folder is not None
    return cache.folder / key[:2] / key


def never() -> Compiled:
    raise AssertionError("it was compiled")


def test_what_was_made_once_is_not_made_again(cache: CompileCache) -> None:
    made = cache.get_or_make(KEY, lambda: Compiled(b"code\n\0", {"registers": 40}))
    assert not made.cached
    again = CompileCache(cache.folder).get_or_make(KEY, never)
    assert (again.content, again.facts, again.cached) == (b"code\n\0", {"registers": 40}, True)


def test_a_compiler_that_refuses_leaves_nothing(cache: CompileCache) -> None:
    def refuse() -> Compiled:
        raise ValueError("no such register")

    with pytest.raises(ValueError, match="register"):
        cache.get_or_make(KEY, refuse)
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text[:-1] + b"x",
        lambda text: b"",
        lambda text: b"no json\ncode",
        lambda text: text.replace(KEY.encode(), KEY[::-1].encode()),
        lambda text: b"[]\n",
    ],
)
def test_a_damaged_entry_is_none(cache: CompileCache, damage: Callable[[bytes], bytes]) -> None:
    cache.put(KEY, Compiled(b"code"))
    entry(cache).write_bytes(damage(entry(cache).read_bytes()))
    assert cache.get(KEY) is None and not entry(cache).exists()


def test_without_a_folder_all_is_made(tmp_path: Path) -> None:
    nowhere = CompileCache(None)
    nowhere.put(KEY, Compiled(b"code"))
    assert nowhere.get(KEY) is None


def test_what_cannot_be_kept_is_made_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = CompileCache(tmp_path / "file" / "cache")
    assert blocked.get_or_make(KEY, lambda: Compiled(b"code")).content == b"code"


def test_nothing_is_taken_from_where_others_can_write(cache: CompileCache) -> None:
    cache.put(KEY, Compiled(b"code"))
    assert cache.folder is not None and cache.folder.stat().st_mode & 0o777 == 0o700
    cache.folder.chmod(0o777)
    assert cache.get(KEY) is None


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache", most_bytes=10_000)
    keys = [cache_key(n=str(n)) for n in range(30)]
    for age, key in enumerate(keys):
        CompileCache(cache.folder, cache._most_bytes).put(key, Compiled(bytes(1000)))
        os.utime(entry(cache, key), (age, age)) if entry(cache, key).exists() else None
    kept = [key for key in keys if cache.get(key)]
    assert kept == keys[-len(kept) :] and 5 <= len(kept) <= 10


def test_what_a_killed_writer_began_is_cleared_away(cache: CompileCache) -> None:
    cache.put(KEY, Compiled(b"code"))
    left = entry(cache).with_name("0000.unfinished-x")
    left.write_bytes(b"half")
    fresh = left.with_name("0001.unfinished-x")
    fresh.write_bytes(b"half")
    os.utime(left, (0, 0))
    CompileCache(cache.folder).put(cache_key(text="b"), Compiled(b"code"))
    assert not left.exists() and fresh.exists()


WRITER = """
import sys
from pathlib import Path
from autotune.measure.kernels.compile_cache import CompileCache, Compiled, cache_key
cache = CompileCache(Path(sys.argv[1]), most_bytes=3_000_000)
for n in range(100_000):
    key = cache_key(n=str(n % 7))
    cache.put(key, Compiled(str(n % 7).encode() * 300_000, {"n": n % 7}))
    if n == 0:
        print("writing", flush=True)
"""


def test_writers_that_are_killed_leave_whole_entries_or_none(cache: CompileCache) -> None:
    command = [sys.executable, "-c", WRITER, str(cache.folder)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
    assert cache.folder is not None
    whole = [path for path in cache.folder.glob("??/*") if "unfinished" not in path.name]
    assert whole
    for path in whole:
        found = cache.get(path.name)
        assert found is not None and found.content == str(found.facts["n"]).encode() * 300_000


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of it
@given(
    st.dictionaries(st.sampled_from("abc"), st.text(max_size=3)),
    st.dictionaries(st.sampled_from("abc"), st.text(max_size=3)),
)
def test_different_parts_have_different_keys(one: dict[str, str], other: dict[str, str]) -> None:
    assert (cache_key(**one) == cache_key(**other)) == (one == other)


def test_the_folder_is_the_users_to_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() is None, "tests run without"
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "~/mine")
    assert cache_folder() == tmp_path / "mine", "and no folder whose name is ~"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "autotune" / "compiled"
    for word, folder in (("0", None), ("False", None), ("1", cache_folder()), ("on", cache_folder())):
        monkeypatch.setenv(VARIABLE, word)
        assert cache_folder() == folder, "and no folder of that name"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("autotune.measure.kernels.compile_cache.expanded", _no_home)
    assert cache_folder() is None


def _no_home(written: str) -> Path:
    raise InputError(written)


def test_an_entry_is_readable_without_this_program(cache: CompileCache) -> None:
    cache.put(KEY, Compiled(b"code", {"seconds": 1.5}))
    head, content = entry(cache).read_bytes().split(b"\n")
    assert json.loads(head)["facts"] == {"seconds": 1.5} and content == b"code"


# -- the key of a C file -----------------------------------------------------------------------

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "near.h").write_text("#define BY 2\n")
    source = tmp_path / "source.c"
    source.write_text('#include "near.h"\nint twice(int x) { return BY * x; }\n')
    return source


@needs_gcc
def test_the_key_holds_what_the_compiler_sees(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(*flags: str) -> str | None:
        return compilation_key(["gcc"], ["-O1", *flags], source)

    first = key()
    assert first is not None and key() == first
    assert key("-O2") != first and key("-DBY=2") != first and key("-lm") != first
    (tmp_path / "near.h").write_text("#define BY 3\n")
    changed = key()
    assert changed != first, "a header counts"
    (tmp_path / "near.h").write_text("#define BY 3 // three\n")
    assert key() == changed, "a comment does not"
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "far.h").write_text("#define FAR 1\n")
    source.write_text("#include <far.h>\nint far = FAR;\n")
    assert key() is None, "what does not compile has no key"
    monkeypatch.setenv("CPATH", str(other))
    found = key()
    (other / "far.h").write_text("#define FAR 2\n")
    assert found is not None and key() not in (None, found), "a header that a variable leads to counts"


@needs_gcc
def test_another_compiler_is_another_key(source: Path, tmp_path: Path) -> None:
    gcc = Path(shutil.which("gcc") or "")
    other = tmp_path / "gcc-of-mine"
    other.write_text(f'#!/bin/sh\nexec {gcc} "$@"\n')
    other.chmod(0o755)
    assert compiler_identity((str(other),)) != compiler_identity((str(gcc),))
    first = compilation_key([str(other)], ["-O1"], source)
    other.write_text(f'#!/bin/sh\n# newer\nexec {gcc} "$@"\n')
    compiler_identity.cache_clear()  # as in the next process
    assert compilation_key([str(other)], ["-O1"], source) != first


@needs_gcc
def test_each_word_of_a_compilers_command_is_in_the_key(source: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text('#!/bin/sh\nexec "$@"\n')
    wrapper.chmod(0o755)
    commands = (["gcc"], ["gcc", "-fno-inline"], [str(wrapper), "gcc"])
    keys = [compilation_key(command, ["-O1"], source) for command in commands]
    assert None not in keys and len(set(keys)) == 3


@needs_gcc
def test_what_the_assembler_reads_has_no_key(source: Path) -> None:
    source.write_text('__asm__(".incbin \\"table.bin\\"");\n')
    assert compilation_key(["gcc"], ["-O1"], source) is None


@needs_gcc
@pytest.mark.parametrize(
    "flags",
    [
        ["helper.o"], ["-Wl,--version-script=names.map"], ["-fprofile-use=runs.gcda"], ["-L.", "-lhelper"],
        ["@flags.txt"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_the_compiler_or_the_linker_reads_has_none(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    """It may have changed: a helper that was compiled anew had been measured as it was before."""
    monkeypatch.chdir(tmp_path)
    for name in ("helper.o", "names.map", "runs.gcda", "libhelper.a", "flags.txt"):
        (tmp_path / name).touch()
    assert compilation_key(["gcc"], ["-O1", *flags], source) is None


@needs_gcc
def test_what_is_preprocessed_has_one(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.c").write_text("int more;\n")

    def key() -> str | None:
        return compilation_key(["gcc"], ["-O1", "-I", ".", "more.c", "-Wl,-z,now"], source)

    first = key()
    (tmp_path / "more.c").write_text("int more = 1;\n")
    assert first is not None and key() not in (None, first)
