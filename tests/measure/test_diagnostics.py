"""The line that tells why, in what compilers, linkers and make really say."""

from __future__ import annotations

import pytest

from autotune.measure.diagnostics import (
    MOST_MESSAGE,
    headline,
    is_of_memory,
    kept,
    telling_line,
    text_of,
)

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

JAVA = """Exception in thread "main" java.lang.IllegalStateException: outer
\tat A.f(A.java:1)
Caused by: java.lang.IllegalArgumentException: tile too large
for the cache
\tat A.g(A.java:1)
\t... 2 more"""
JAVA_OPTION = """Unrecognized VM option 'UseNonsenseGC'
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit."""
NODE = """/home/me/bench.js:2
 throw new RangeError("bad tile");
 ^

RangeError: bad tile
    at f (/home/me/bench.js:2:8) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/home/me/[eval]' ]
}

Node.js v20.20.2"""
NODE_NUMBER = """[eval]:1
throw 3
^
3
(Use `node --trace-uncaught ...` to show where the exception was thrown)

Node.js v20.20.2"""
PANIC = """
thread '<unnamed>' (138) panicked at bench.rs:1:89:
tile 9 too large
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/library/std/src/panicking.rs:689:5
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.

thread 'main' (137) panicked at bench.rs:1:412:
called `Result::unwrap()` on an `Err` value: Any { .. }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""
TERMINATED = """terminate called after throwing an instance of 'std::runtime_error'
  what():  bad tile
./run.sh: line 1: 13834 Aborted                 ./bench"""
PERL = """bad tile at bench.pl line 1.
\tmain::f(3) called at bench.pl line 2"""
GO = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
\t/home/me/bench.go:5 +0x1d
exit status 2"""
WRAPPED = f"""{JAVA}
Traceback (most recent call last):
  File "bench.py", line 3, in <module>
subprocess.CalledProcessError: Command 'java' returned non-zero exit status 1."""
SEVERAL_LINES = """Traceback (most recent call last):
  File "train.py", line 4, in <module>
    rate = run.knob("rate", default=32)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
autotune.errors.InputError: --set rate=3: a search is choosing the knob 'rate'
  leave out --set rate, or take the knob out of the space"""
HYDRA = """Error executing job with overrides: ['lr=9']
Traceback (most recent call last):
  File "train.py", line 4, in main
    raise ValueError("lr of 9")
ValueError: lr of 9

Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."""
JAX = """Traceback (most recent call last):
  File "train.py", line 6, in <module>
    f(x)
jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 17592186044416 bytes.
--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception."""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     raise ExceptionGroup('two', [MemoryError('b')])
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | MemoryError: b
    +------------------------------------"""
TYPER = """Usage: bench.py [OPTIONS] N
╭─ Error ──────────────╮
│ Missing argument 'N'. │
╰──────────────────────╯"""
REDIS = """*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***
Reading the configuration file, at line 3
>>> 'appendfsync'
wrong number of arguments"""
SURVIVED = """ValueError: no cache
going on without
no room for the table"""

SAID = [
    (JAVA, "Caused by: java.lang.IllegalArgumentException: tile too large"),
    (JAVA_OPTION, "Unrecognized VM option 'UseNonsenseGC'"),
    (WRAPPED, "Caused by: java.lang.IllegalArgumentException: tile too large"),
    (NODE, "RangeError: bad tile"),
    (NODE_NUMBER, "3"),
    (PANIC, "tile 9 too large"),
    ("thread 'main' panicked at 'old', a.rs:1:2\nnote: run", "thread 'main' panicked at 'old', a.rs:1:2"),
    (TERMINATED, "what():  bad tile"),
    (PERL, "bad tile at bench.pl line 1."),
    (
        "Can't locate A.pm in @INC\nBEGIN failed--compilation aborted at -e line 1.",
        "Can't locate A.pm in @INC",
    ),
    (GO, "panic: runtime error: index out of range [5] with length 3"),
    (SEVERAL_LINES, "autotune.errors.InputError: --set rate=3: a search is choosing the knob 'rate'"),
    (HYDRA, "ValueError: lr of 9"),
    (JAX, "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 17592186044416 bytes."),
    (GROUP, "MemoryError: b"),
    (TYPER, "Missing argument 'N'."),
    (REDIS, "wrong number of arguments"),
    ("pg_ctl: could not start server\nExamine the log output.", "pg_ctl: could not start server"),
    (SURVIVED, "no room for the table"),
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


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', True),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", True),
        ("memory allocation of 70368744177664 bytes failed", True),
        ("what():  std::bad_alloc", True),
        ("MemoryError", True),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 256. TiB", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 1024 bytes.", True),
        ("grpc: RESOURCE_EXHAUSTED: Received message larger than max", False),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[1024,1024]", True),
        ("_duckdb.OutOfMemoryException: Out of Memory Error: failed to allocate data", True),
        ("Unhandled exception. System.OutOfMemoryException: Array dimensions exceeded", True),
        ("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", True),
        ("Out of memory!", True),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", True),
        ("fatal error: runtime: out of memory", True),
        ("sort: memory exhausted", True),
        ("triton.OutOfResources: out of resource: shared memory, Required: 300000", False),
        ("index 9 is out of memory range", False),
        ("RangeError: bad tile", False),
        ("", False),
    ],
)
def test_a_lack_of_memory(line: str, expected: bool) -> None:
    assert is_of_memory(line) == expected


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
