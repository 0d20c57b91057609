"""What a source comes to is found without running it, within bounds; the rest is said with its place."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.python_slice import Changes
from autotune.interop.space_files.python_text import Module


def value(source: str, name: str = "x") -> Any:
    module = Module(ast.parse(source), "kernels.py", {})
    return module.value(ast.parse(name, mode="eval").body)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = [2 ** i for i in range(4, 8) if i != 5]", [16, 64, 128]),
        ("base = [1, 2]\nx = [*base, 4] + [b << 3 for b in base]", [1, 2, 4, 8, 16]),
        (
            "import itertools\nx = list(itertools.product([1, 2], 'ab'))",
            [(1, "a"), (1, "b"), (2, "a"), (2, "b")],
        ),
        (
            "x = []\nfor a in 1, 2:\n  for b in 3, 4:\n    if a * b != 6:\n      x.append(a * b)",
            [3, 4, 8],
        ),
        (
            "def f(n, k=2):\n    y = []\n    for i in range(n):\n      y += [i * k]\n    return y\nx = f(3)",
            [0, 2, 4],
        ),
        ("x: list = [1]\nx.extend([2, 3])", [1, 2, 3]),
        ("x = {**{'a': 1}, 'b': max(2, 3)}", {"a": 1, "b": 3}),
        ("x = [c for c in ({'a': a} for a in (1, 2)) if c['a'] > 1]", [{"a": 2}]),
        ("if 1 < 2:\n    x = 'yes'\nelse:\n    x = 'no'", "yes"),
        ("x = (lambda n: n + 1, 2)[1]", 2),
        ("y = x = sorted({3, 1, 2})", [1, 2, 3]),
        ("x = [a if a > 1 else -a for a in (1, 2)]", [-1, 2]),
        ("x = [k for k, v in {'a': 1, 'b': 2}.items() if not v % 2]", ["b"]),
        ("x = []\nfor i in range(9):\n  if i % 2: continue\n  if i > 6: break\n  x.append(i)", [0, 2, 4, 6]),
        (
            "x = []\nb = 16\nwhile b < 100:\n  x.append(b)\n  b *= 2\nelse:\n  x.insert(0, b)",
            [128, 16, 32, 64],
        ),
        ("a = [2]\nx = [i for i in a]\na = [3]", [2]),
        ("a = x = [1]\na.append(2)\na += [3]", [1, 2, 3]),
        ("def add(many, one):\n  many.append(one)\nx = [1]\nadd(x, 2)\nadd(many=x, one=3)", [1, 2, 3]),
        ("x = [1]\ndef more(one):\n  x.append(one)\nmore(2)\ndef twice(): more(3)\ntwice()", [1, 2, 3]),
        ("def f(): return 1\nx = [f()]\ndef f(): return 2\nx += [f()]", [1, 2]),
        ("def f(n, kept=[]):\n    kept.append(n)\n    return kept\nf(1)\nx = f(2)", [1, 2]),
        ("def f(n, kept=None):\n    kept = kept or [n]\n    return kept\nf(object())\nx = f(2)", [2]),
        (
            "def f(*many, k=1, **others): return [*many, k, others]\nx = f(1, 2, k=3, j=4)",
            [1, 2, 3, {"j": 4}],
        ),
        ("def outer(n):\n  def inner(m): return n * m\n  return inner(2)\nx = outer(3)", 6),
        ("f = lambda n: -n\nx = sorted(map(f, [1, 3, 2]), key=lambda n: -n)", [-1, -2, -3]),
        (
            "d = {}\nd['a'] = 1\nd.update(b=2)\nx = [d.get('a'), d.get('c', 0), list(d.values())]",
            [1, 0, [1, 2]],
        ),
        ("import math\nx = f'B{math.ceil(3 / 2)}'", "B2"),
        (
            "x = [sum(([a] for a in (1, 2)), []), sum([(3,), (4,)], (0,)), sum([1, 2], 3)]",
            [[1, 2], (0, 3, 4), 6],
        ),
        ("import itertools\nx = list(itertools.chain.from_iterable([[1], [2]]))", [1, 2]),
        ("import itertools as it\nx = list(it.chain.from_iterable(it.product([1], [2])))", [1, 2]),
        ("from itertools import product as cross\nx = [a * b for a, b in cross([1, 2], [3])]", [3, 6]),
        ("import math as it\ndef f(it): return it.copy()\nx = f([1])", [1]),
        ("x = 1 if __name__ == '__main__' else 2", 2),
        ("x = [{'a': 1}, {'a': 2}]\nfor c in x:\n    c['a'] *= 8", [{"a": 8}, {"a": 16}]),
        ("x = [{'a': 1}]\nfor i, c in enumerate(x):\n    c.update(a=i)", [{"a": 0}]),
        ("x = [[1], 3]\nfirst, _ = x\nfirst.append(2)", [[1, 2], 3]),
        ("x = []\na = b = x\nb += [1]\nd = {'k': [x]}\nd['k'][0].append(2)", [1, 2]),
        ("x = [1]\nkept = []\nkept.append(x)\nkept[0][0] = 5", [5]),
        (
            "def f():\n    n: int\n    from itertools import product as p\n    return [*p('a')]\nx = f()",
            [("a",)],
        ),
        ("n = [1]\ndef f(k=n): return k\nn = [2]\nx = f()", [1]),
        ("s = 9\ndef f(s):\n    g = lambda n, s=s: n * s\n    return g(2)\nx = f(3)", 6),
        ("x = {'a': 1}\ny = x\ny |= {'b': 2}\ny |= y", {"a": 1, "b": 2}),
        ("x = {1}\ny = x\ny |= {2}\ny &= {2, 3}", {2}),
        ("x = [1, 2]\ny = x\ny *= 2", [1, 2, 1, 2]),
        ("x = [1, 2]\ndef f(n=x.pop()): pass", [1]),
        ("x = [1]\ndef f():\n    x = [2]\n    return x.pop(), len(x)\ny = f()", [1]),
        ("import gc\nx = [1]\nclass C:\n    def m(self, x): x.pop()\ny = C", [1]),
        ("x = [1]\nadd = lambda n: x.append(n)\nadd(2)", [1, 2]),
        ("def f(n): n.append(2)\ng = f\nx = [1]\ny = g(x)", [1, 2]),
        ("x = [1]\ndef f(n, to=x): to.append(n)\nf(2)", [1, 2]),
        ("def f(n):\n  n.append(2)\n  return n\nx = [1]\ndef g():\n  y = f(x)\ng()", [1, 2]),
        ("import functools\n@functools.lru_cache(None)\ndef f(): return 1\nx = f()", 1),
        ("from math import ceil, sqrt as root\nx = ceil(root(5))", 3),
        ("g = (a for a in (1, 2))\nx = [[*g], [*g], list(g)]", [[1, 2], [], []]),
        ("z = zip((1, 2), 'ab')\nx = [(n, a) for n in (1, 2) for a, _ in z]", [(1, 1), (1, 2)]),
        ("m = map(lambda n: 2 * n, [1, 2])\nx = [2 in m, list(m), list(m)]", [True, [4], []]),
        ("x = [1, 2, 3, 4]\nfor i, _ in enumerate(x):\n    x.pop(i)", [2, 4]),
        ("x = [1, 2]\nfor n in (n + 1 for n in x):\n    if n < 5: x.append(n)", [1, 2, 2, 3, 3, 4, 4]),
        ("m = [1]\ng = (n for n in m)\nm.append(2)\nm = [3]\nx = list(g)", [1, 2]),
        ("n = 1\nf = [lambda: n for _ in 'a']\nn = 2\nx = [g() for g in f]", [2]),
        (
            "def a():\n  def b():\n    return lambda: n\n  f = b()\n  n = 2\n  return f()\nx = a()",
            2,
        ),
        ("import logging\nlog = logging.getLogger()\ndef f():\n  log.info('f')\n  return 1\nx = f()", 1),
    ],
)
def test_sources_come_to_what_running_them_gives(source: str, found: Any) -> None:
    assert value(source) == found
    scope: dict[str, Any] = {}
    exec(source, scope)
    assert scope["x"] == found


def test_the_next_power_of_two_is_that_of_triton() -> None:
    """Of 0 and what is below it is 0, which had come to 1."""
    source = "from triton import next_power_of_2\nx = [next_power_of_2(n) for n in (-2, 0, 1, 3, 8)]"
    assert value(source) == [0, 0, 1, 4, 8]
    scope: dict[str, Any] = {}
    pytest.importorskip("triton", reason="Triton is not installed: only the reading is checked")
    exec(source, scope)
    assert scope["x"] == value(source)


KERNELS = """
from lib import tuned, wrap

B = [1, 2]
def few(): return [b for b in B] + [i for i in range(2)]
def more(many):
    found = []
    for b in many:
        found.append(b)
    many.append(found[-1] + 1)
    return found

@wrap
@tuned(few(), more(B))
def first(a=few(), b=B.append(9)): pass
def there(B): return [b for b in B if b in range(9)]
x = [there(B), more(B), B]
"""


def test_what_imported_decorators_are_given_is_worked_out_and_only_the_function_unknown() -> None:
    """All that the functions in their arguments go through was unknown from then on, ``range`` too."""
    assert value(KERNELS) == [[1, 2, 3], [1, 2, 3, 9], [1, 2, 3, 9, 10]]
    with pytest.raises(InputError, match=r"what first\(\) does is not known here, since on line 15 '@wrap"):
        value(KERNELS, "first()")
    called = KERNELS.replace("few(),", "lambda: B.append(1),")  # at once, perhaps
    with pytest.raises(InputError, match=r"kernels.py:15:1: '@wrap"):
        value(called)


@pytest.mark.parametrize(
    ("source", "says", "place"),
    [
        ("import os\nx = [int(os.environ['N'])]", "not understood", "kernels.py:2:10"),
        ("x = open('/etc/passwd').read()", "not understood", "kernels.py:1:5"),
        ("x = ().__class__", "not understood", "kernels.py:1:5"),
        ("x = (1).real", "not understood", "kernels.py:1:5"),
        ("x = y", "assigns nothing to y", "kernels.py:1:5"),
        ("x = x2\nx2 = 1", "assigns nothing to x2 before", "kernels.py:1:5"),
        ("x = [1]\ny = x\ny.append(unknown())", "what unknown() does", "kernels.py:3:10"),
        ("def f(l):\n    l.append(1)\n    l.append(unknown())\nx = []\nf(x)", "unknown()", "kernels.py:3:14"),
        ("x = [1]\nfor y in x:\n    y.n = 2", "'y.n' is not understood", "kernels.py:3:5"),
        ("def f():\n    from lib import n\n    return n\nn = 1\nx = f()", "not understood", "kernels.py:2:5"),
        ("x = 1\nx = unknown()", "what unknown() does", "kernels.py:2:5"),
        ("x = 1\nif unknown():\n    x = 2", "what unknown() does", "kernels.py:2:4"),
        ("x = 1\nreturn x\nx = unknown()", "what unknown() does", "kernels.py:3:5"),
        ("x = (0,)\nfor i in range(40):\n    x = (x, x)\nx = str(x)", "the text of a list", "kernels.py:4:5"),
        ("def f():\n    return f()\nx = f()", "calls itself", "kernels.py:2:12"),
        ("x = 10 ** 10 ** 10", "too large", "kernels.py:1:5"),
        ("x = 1 << 10 ** 12", "too large", "kernels.py:1:5"),
        ("x = [0] * 10 ** 9", "too large", "kernels.py:1:5"),
        ("x = len(b'a' * 10 ** 9)", "too large", "kernels.py:1:9"),
        ("x = [0]\n" + "x = x + x\n" * 40, "too large", "kernels.py:18:5"),
        ("x = 'a'\n" + "x += x\n" * 40, "too large", "kernels.py:18:1"),
        ("x = 'a'\n" + "x = f'{x}{x}'\n" * 25, "too large", "kernels.py:18:5"),
        ("x = sum([[0] * 1000] * 1000, [])", "too large", "kernels.py:1:5"),
        ("x = sum([(0,) * 1000] * 1000, ())", "too large", "kernels.py:1:5"),
        ("x = list(range(10 ** 9))", "1,000,000,000 items", "kernels.py:1:5"),
        ("x = list(range(10 ** 20))", "100,000,000,000,000,000,000 items", "kernels.py:1:5"),
        ("x = {1: 1}\nfor k in x:\n    x[k + 1] = 1", "changed size during iteration", "kernels.py:2:10"),
        ("x = list(product(range(1000), repeat=9))", "more than 100,000 items", "kernels.py:1:10"),
        ("x = [1 for a in range(10 ** 9)]", "", "kernels.py:1"),
        ("x = 1 / 0", "division", "kernels.py:1:5"),
        ("x = {}['a']", "not understood", "kernels.py:1:5"),
        ("from elsewhere import x", "not understood", "kernels.py:1:1"),
        ("x = []\nwhile True:\n    x.append(1)", "more than", "kernels.py:3:"),
        ("x = 1\nwhile True:\n    x = 2", "more than 500,000 steps", "kernels.py:"),
        ("x = 1\ntry:\n    x = 2\nfinally:\n    pass", "not understood", "kernels.py:2:1"),
        ("def double(f): return f\n@double\ndef f(): return 1\nx = f()", "what f() does", "kernels.py:4:5"),
        ("def f(n, k=unknown()): return k\nx = f(1)", "what unknown() does", "kernels.py:1:12"),
        ("from operator import mul as max\nx = max(2, 3)", "what max() does", "kernels.py:2:5"),
        ("max = unknown\nx = max(2, 3)", "what max() does", "kernels.py:2:5"),
        ("def f(max): return max(2, 3)\nx = f(min)", "not understood", "kernels.py:2:7"),
        ("def f():\n    max = [min]\n    return max(2, 3)\nx = f()", "not understood", "kernels.py:2:12"),
        ("from lib import more\nx = [1]\nmore(x)", "what more() does", "kernels.py:3:1"),
        ("x = [[1]]\nfor y in x:\n    more(y)", "what more() does", "kernels.py:3:5"),
        ("x = [1]\ndef f():\n    more(many=[x])\nf()", "what more() does", "kernels.py:3:5"),
        ("x = [1]\nadd = x.append\nadd(2)", "what add() does", "kernels.py:3:1"),
        ("x = [1]\nby = {'add': x.append}\nby['add'](2)", "not known here", "kernels.py:3:1"),
        ("x = [1]\ndef f(y):\n    add = x.append\n    add(y)\nf(2)", "not understood", "kernels.py:3:11"),
        ("x, *y = [1]", "a * in what is assigned to", "kernels.py:1:1"),
        ("x = [1]\nclass C:\n    x.pop()", "not understood", "kernels.py:2:1"),
        (
            "x = [1]\nclass C:\n    def m(self):\n        x.pop()\nC().m()",
            "what C().m() does",
            "kernels.py:5:1",
        ),
        (
            "x = 1\nclass C:\n    def m(self):\n        global x\n        x = 2\nC().m()",
            "not",
            "kernels.py:6:1",
        ),
        ("x = [1]\ndef d(f): x.append(2)\n@d\ndef g(): pass", "not understood", "kernels.py:4:1"),
        ("def d(f): f.append(2)\nx = [1]\n@d(x)\ndef g(): pass", "not understood", "kernels.py:4:1"),
        ("y = [1]\nx = {'k': (0, [y])}\ndel y[0]", "not understood", "kernels.py:3:1"),
        ("x = [1]\nif x:\n    class C:\n        k = x\n    C.k.append(2)", "not", "kernels.py:3:5"),
        ("class C:\n    pass\nx = C()", "not known here", "kernels.py:3:5"),
    ],
)
def test_all_else_is_an_error_with_its_place(source: str, says: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        value(source)
    [problem] = raised.value.problems
    assert says in str(problem)
    assert str(problem.where).startswith(place)


def test_each_of_many_functions_that_call_each_other_is_looked_through_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each had been once more for every function above it: minutes for a source of a thousand."""
    looked: list[object] = []
    outside = Changes._outside

    def counted(self: Changes, called: Any) -> set[str]:
        looked.append(called)
        return outside(self, called)

    monkeypatch.setattr(Changes, "_outside", counted)
    functions = [f"def f{n}(k):\n    x.append(1)\n    f{max(n - 1, 0)}(k)\n" for n in range(50)]
    changed = Changes(ast.parse("".join(functions) + "f49(1)\nf48(2)\nx = []\n").body)
    calls = ast.parse("f49(1)\nf48(2)\n").body
    assert [changed.of(call) for call in calls] == [{"x"}, {"x"}]
    assert len(looked) == 50
