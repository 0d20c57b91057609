"""Two callables are the same objective where they do the same, and not where they do not."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autotune.measure.loading.callables import describe_callable
from autotune.measure.objective import Objective


def scaled(x: float, by: float = 1.0) -> float:
    return x * by


def enclosing(by: float) -> Callable[[float], float]:
    def inner(x: float) -> float:
        return x * by

    return inner


def wrapping(function: Callable[..., float]) -> Callable[..., float]:
    def outer(x: float) -> float:
        return function(x)

    return outer


def decorated(function: Callable[..., float]) -> Callable[..., float]:
    @functools.wraps(function)
    def outer(x: float) -> float:
        return function(x)

    return outer


def decorated_otherwise(function: Callable[..., float]) -> Callable[..., float]:
    @functools.wraps(function)
    def outer(x: float) -> float:
        return 2 * function(x)

    return outer


class Slow:
    def work(self, x: float) -> float:
        return x


class Quick:
    def work(self, x: float) -> float:
        return x / 2


def made_below(base: type) -> type:
    class Made(base):  # type: ignore[misc]
        def __call__(self, x: float) -> float:
            return self.work(x)  # type: ignore[no-any-return]

    return Made


class Kind(Objective):
    def measure(self, loaded: Any, rng: Any) -> float:
        return 1.0


class Called:
    def __call__(self, x: float) -> float:
        return x


class Sized:
    def __init__(self, size: int, shape: tuple[int, ...] = (), log: Any = None) -> None:
        self.size, self._shape, self.log, self.calls = size, shape, log, 0

    def __call__(self, x: float) -> float:
        self.calls += 1
        return x * self.size

    def half(self, x: float) -> float:
        return x * self.size / 2


@dataclass(frozen=True, slots=True)
class Slotted:
    size: int

    def __call__(self, x: float) -> float:
        return x * self.size


def code(given: Any) -> str:
    return describe_callable(given).code


def test_its_name_and_file_are_said() -> None:
    found = describe_callable(scaled)
    assert found.name == f"{__name__}:scaled" and found.file == Path(__file__)
    assert describe_callable(Kind).name == f"{__name__}:Kind" == describe_callable(Kind.__new__(Kind)).name
    assert describe_callable(Called()).name == f"{__name__}:Called"
    assert describe_callable(math.sqrt).file is None


def test_what_does_the_same_is_the_same() -> None:
    first, second = (lambda x: x + 1 for _ in range(2))
    assert code(first) == code(second)
    assert code(enclosing(2.0)) == code(enclosing(2.0)) and code(partial(scaled, by=2.0)) == code(
        partial(scaled, by=2.0)
    )


def test_an_instance_counts_by_what_its_constructor_was_given_not_by_what_has_become_of_it() -> None:
    used = Sized(2)
    used(1.0)
    used.log = ["something"]
    assert code(used) == code(Sized(2, log=["other"])) != code(Sized(2))  # a list may grow, but is there
    assert code(Slotted(1)) == code(Slotted(1))


def test_another_body_or_another_number_is_another() -> None:
    all_of_them = [
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x: x - 1,
        lambda x: x in {"a", "b"},
        scaled,
        enclosing(1.0),
        enclosing(2.0),
        partial(scaled, by=2.0),
        partial(scaled, by=3.0),
        wrapping(scaled),
        wrapping(enclosing(1.0)),
        decorated(scaled),
        decorated_otherwise(scaled),
        decorated(enclosing(1.0)),
        functools.cache(scaled),
        functools.cache(enclosing(1.0)),
        made_below(Slow)(),
        made_below(Quick)(),
        Kind,
        Called(),
        Sized(1),
        Sized(2),
        Sized(2, (3, 4)),
        Sized(1).half,
        Sized(2).half,
        Slotted(1),
        Slotted(2),
        math.sqrt,
    ]
    assert len({code(one) for one in all_of_them}) == len(all_of_them)


def test_a_function_that_is_typed_in_has_no_source() -> None:
    made: dict[str, Any] = {}
    exec("def one(x):\n    return x\ndef two(x):\n    return -x\ndef again(x):\n    return x\n", made)
    assert code(made["one"]) != code(made["two"]) and code(made["one"]) == code(made["again"])


def test_what_is_executed_as_a_text_is_no_part_of_the_command_line() -> None:
    """Python 3.13 had given lines of what follows ``-c`` for it: two functions at one place were the same."""
    script = (
        "from autotune.measure.loading.callables import describe_callable\n"
        "one, two = {}, {}\n"
        "exec('def f(x): return x', one)\n"
        "exec('def f(x): return -x', two)\n"
        "print(describe_callable(one['f']).code != describe_callable(two['f']).code)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


def test_a_class_that_is_typed_in_has_no_file() -> None:
    """Of one that was typed at the prompt, or given by ``python -c``, Python says so by another error."""
    script = "class Typed:\n    def measure(self): return 1.0\n"
    script += "from autotune.measure.loading.callables import describe_callable\n"
    script += "print(describe_callable(Typed).file)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("None\n", "")


NOTEBOOK = """
import functools
from numpy import hypot

SIZE, NAMES, LIST, CALLS = 10, ("a", "b"), [1], 0

def inner(x): return x
def helper(x): return inner(x) if x else helper(1)

class Base:
    def __call__(self, x): return x

class Work(Base):
    factor = 1
    def measure(self, x): return self.twice(x)
    @staticmethod
    def twice(x): return 2 * x + SIZE
work = Work()

@functools.cache
def kept(x): return x + 1

def cost(x):
    global CALLS
    CALLS += 1
    return sum(helper(y) + SIZE * LIST[0] for y in (x,)) + len(NAMES) + kept(x) + hypot(x, CALLS) + work(x)

def deeper(x): return x
def wrapping(function):
    @functools.wraps(function)
    def outer(x): return function(x)
    return outer
@wrapping
def wrapped(x): return deeper(x)

def apart(x): return x
"""


def typed_in(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": "typed_in"}
    exec(text, made)
    return made


def test_of_what_is_typed_in_all_counts_that_it_reads() -> None:
    """After an edit of another cell a search from a notebook had gone on with the numbers of before."""
    before = typed_in(NOTEBOOK)
    edits = {
        "SIZE, NAMES, LIST, CALLS = 10": "SIZE, NAMES, LIST, CALLS = 20",
        '"b")': '"c")',
        "inner(x): return x": "inner(x): return -x",
        "kept(x): return x + 1": "kept(x): return x + 2",
        "__call__(self, x): return x": "__call__(self, x): return x / 2",
    }
    for old, new in edits.items():
        assert NOTEBOOK.count(old) == 1
        after = typed_in(NOTEBOOK.replace(old, new))
        assert code(after["cost"]) != code(before["cost"]), new
        assert code(after["apart"]) == code(before["apart"])
    after = typed_in(NOTEBOOK.replace("deeper(x): return x", "deeper(x): return -x"))
    assert code(after["wrapped"]) != code(before["wrapped"])
    after = typed_in(NOTEBOOK.replace("CALLS = 10", "CALLS = 20"))
    assert code(after["Work"]) != code(before["Work"]) and code(after["work"]) != code(before["work"])


def test_what_typed_in_code_assigns_and_what_it_does_not_read_is_no_part_of_it() -> None:
    before, after = typed_in(NOTEBOOK), typed_in(NOTEBOOK + "OTHER = 3\ndef unread(x): return SIZE\n")
    after["cost"](3)
    after["LIST"].append(2)
    assert after["CALLS"] == 1 and code(after["cost"]) == code(before["cost"])
