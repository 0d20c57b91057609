"""The last lines of any output, in bounded space."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.capture import KEPT, Tail, tail_text


def through(chunks: list[bytes]) -> str:
    read, write = os.pipe()
    tail = Tail(read)
    for chunk in chunks:
        for start in range(0, len(chunk), 60_000):  # a pipe holds 64 KiB
            os.write(write, chunk[start : start + 60_000])
            tail.drain()
    os.close(write)
    tail.drain()
    assert not tail.open
    os.close(read)
    return tail.take()


def test_short_output_is_kept_whole() -> None:
    assert through([b"one\n", b"two\n"]) == "one\ntwo\n"


def test_of_long_output_the_last_whole_lines() -> None:
    text = through([b"".join(b"line %d\n" % n for n in range(100_000))])
    lines = text.splitlines()
    assert lines[0] == "[... earlier output left out ...]"
    assert lines[-1] == "line 99999" and lines[1].startswith("line ")
    assert KEPT * 0.9 < len(text) <= KEPT


def test_one_endless_line() -> None:
    text = through([b"x" * 200_000])
    assert text.endswith("x") and len(text) <= KEPT


@given(st.binary(max_size=3 * KEPT))
def test_any_bytes_become_bounded_text(data: bytes) -> None:
    text = tail_text(data)
    if len(data) > KEPT:
        assert len(text.encode()) <= KEPT
    else:
        assert text == data.decode(errors="replace")


def test_what_was_taken_is_not_given_again() -> None:
    read, write = os.pipe()
    tail = Tail(read)
    os.write(write, b"first")
    tail.drain()
    assert tail.take() == "first"
    tail.drain()
    assert tail.take() == ""
    os.close(write)
    os.close(read)
