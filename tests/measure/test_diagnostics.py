"""The line that tells why, in what compilers, linkers and make really say."""

from __future__ import annotations

import pytest

from autotune.measure.diagnostics import MOST_MESSAGE, headline, kept, telling_line, text_of

GCC = """kernel.c: In function 'main':
kernel.c:6:15: error: 'undeclared' undeclared (first use in this function)
    6 | int main(void){ undeclared = 3; return 1;}
      |                 ^~~~~~~~~~
kernel.c:6:15: note: each undeclared identifier is reported only once for each function it appears in
make[1]: *** [Makefile:3: bench] Error 1"""
FLAG = """cc1: error: bad value 'pentium9000' for '-march=' switch
cc1: note: valid arguments to '-march=' switch are: nocona core2 nehalem"""
HEADER = """In file included from bench.c:1:
big.h:4:2: fatal error: size.h: No such file or directory
    4 | #include "size.h"
compilation terminated."""
LINKER = """/usr/bin/ld: /tmp/cc1.o: in function `bar':
bench.c:(.text+0x14): undefined reference to `foo'
collect2: error: ld returned 1 exit status"""
CLANG = """a b/bench.c:3:19: error: expected expression
int f() { return ; + }
                   ^
1 error generated."""
NVCC = """gemm.cu(12): error: identifier "TILE" is undefined

1 error detected in the compilation of "gemm.cu"."""
RUST = """error[E0425]: cannot find value `tile` in this scope
 --> src/main.rs:2:5
error: aborting due to 1 previous error"""
PYTHON = """Traceback (most recent call last):
  File "bench.py", line 3, in <module>
ValueError: tile of 9: error: too large"""

SAID = [
    (GCC, "kernel.c:6:15: error: 'undeclared' undeclared (first use in this function)"),
    (FLAG, "cc1: error: bad value 'pentium9000' for '-march=' switch"),
    (HEADER, "big.h:4:2: fatal error: size.h: No such file or directory"),
    (LINKER, "bench.c:(.text+0x14): undefined reference to `foo'"),
    (CLANG, "a b/bench.c:3:19: error: expected expression"),
    (NVCC, 'gemm.cu(12): error: identifier "TILE" is undefined'),
    (RUST, "error[E0425]: cannot find value `tile` in this scope"),
    (PYTHON, "ValueError: tile of 9: error: too large"),
    ("make: *** [all] Error 1", "make: *** [all] Error 1"),
    (" \n", ""),
]


@pytest.mark.parametrize(("said", "line"), SAID)
def test_the_line_that_tells_why(said: str, line: str) -> None:
    assert telling_line(said) == line


def test_the_line_that_stands_for_a_message() -> None:
    assert headline(f"gcc refused it: {GCC}").startswith("kernel.c:6:15: error:")
    assert headline(PYTHON) == "Traceback (most recent call last):"
    assert headline("too large\nfor the cache") == "too large"
    assert headline("\n") == ""


WARNINGS = "kernel.c:1:1: warning: unused\n" * 200


def test_a_long_message_is_cut_once_and_keeps_the_line_that_tells_why() -> None:
    assert kept("x" * MOST_MESSAGE) == "x" * MOST_MESSAGE
    behind, before = kept(f"gcc refused it: {GCC}\n{WARNINGS}"), kept(WARNINGS + GCC)
    assert behind.startswith("gcc refused it: ") and behind.endswith(" ...") and behind.count("...") == 1
    assert before.startswith("... kernel.c:6:15: error:") and before.endswith(GCC.splitlines()[-1])
    for message in (behind, before, kept(f"{WARNINGS}{GCC}\n{WARNINGS}"), kept("y" * 9000)):
        assert len(message) <= MOST_MESSAGE and kept(message) == message


@pytest.mark.parametrize("raised", [ValueError("no text"), SystemExit(1), RecursionError()])
def test_a_text_that_cannot_be_made_is_no_end_of_anything(raised: BaseException) -> None:
    class Unprintable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise raised

    assert text_of(Unprintable()) == f"(its text cannot be shown: {type(raised).__name__})"
