"""The Python form: what it looks like, and what it cannot hold."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from autotune.errors import InputError
from autotune.hook.rule import Branch, Equals, Leaf, Rule, Threshold
from autotune.report.rules.python import python_text
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import parse_spec

SPACE = parse_spec("autotune: 1\nname: a\nobjective: a.py:A\nknobs: {tile: {values: [1, 2, 4]}}\n").space

RULE = Rule(
    study="gemm",
    names=("m", "k", "dtype"),
    fixed=FrozenMap({"n": 8}),
    configurations=({"tile": 1}, {"tile": 4}),
    tree=Branch(
        Threshold(("m",), 0.5, ("k",)),
        Leaf((1, 0)),
        Branch(
            Equals("dtype", "half"), Leaf((0,)), Branch(Threshold(("m", "k"), 4096), Leaf((1,)), Leaf((0,)))
        ),
    ),
    space=SPACE.to_document(),
    workloads=({"m": 8, "k": 4, "dtype": "half"},),
    evidence={
        "remarks": ["nothing works for m 7, k 1, dtype half"],
        "studies": ["gemm#1"],
        "device": 'A "CPU"',
        "day": "2026-01-02",
        "metric": "time",
        "regret": {
            "left out": {
                "rule": {"mean": 1.02, "worst": 1.1, "failures": 1, "workloads": 3},
                "default": {"mean": None, "worst": None, "failures": 3, "workloads": 3},
            }
        },
    },
)


def test_its_evidence_is_broken_neither_within_a_name_nor_between_a_fact_and_its_value() -> None:
    studies = [f"gemm-c-shapes#{number}" for number in range(8)]
    workloads = tuple({"m": 8 * size, "k": 1000 + size} for size in range(20))
    lines = python_text(
        replace(RULE, workloads=workloads, evidence={**RULE.evidence, "studies": studies})
    ).splitlines()
    assert max(map(len, lines)) <= 100 and not [line for line in lines if line.endswith(("-", " m", " k"))]
    assert "Learned on 2026-01-02 from the studies gemm-c-shapes#0," in lines[2]
    assert "Learned on 2026-01-02 from the study gemm#1, measured on A 'CPU'." in python_text(RULE)


def test_it_reads_as_a_person_would_write_it() -> None:
    text = python_text(RULE)
    assert text.endswith(
        '''
A = {'tile': 1}

B = {'tile': 4}


def choose(m, k, dtype):
    """The configuration for a workload, as a dictionary of its own."""
    if m <= 0.5 * k:
        return dict(B)
    if dtype == 'half':
        return dict(A)
    if m * k <= 4096:
        return dict(B)
    return dict(A)
'''
    )
    assert "gemm#1" in text
    assert "2026-01-02" in text
    assert "left out:      1.020 (1.100, fails for 1); default nothing that works" in text
    assert "n 8" in text
    assert "\n\nNote: nothing works for m 7, k 1, dtype half.\n" in text


def test_it_imports_nothing_and_runs() -> None:
    tree = ast.parse(python_text(RULE))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names: dict = {}  # type: ignore[type-arg]
    exec(python_text(RULE), names)
    assert names["choose"](8, 32, "half") == {"tile": 4}
    names["choose"](8, 32, "half")["tile"] = 2
    assert names["choose"](m=8, k=32, dtype="single") == {"tile": 4}, "a caller's change stays the caller's"


def test_no_argument_hides_a_configuration() -> None:
    """With a fact called B, ``dict(B)`` was made of the fact: a TypeError."""
    names: dict = {}  # type: ignore[type-arg]
    exec(
        python_text(
            replace(RULE, names=("B", "A"), tree=Branch(Threshold(("B",), 8), Leaf((0,)), Leaf((1,))))
        ),
        names,
    )
    assert [names["choose"](batch, 1) for batch in (8, 9)] == [{"tile": 1}, {"tile": 4}]


@pytest.mark.parametrize("name", ["batch-size", "class", "2m", "dict"])
def test_a_name_that_is_no_argument_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot name an argument"):
        python_text(replace(RULE, names=(name,), tree=Leaf((0,))))


def test_texts_cannot_end_the_docstring() -> None:
    hostile = replace(
        RULE, evidence={**RULE.evidence, "device": '"""\nimport os\n\\'}, fixed=FrozenMap({"n": '"""'})
    )
    tree = ast.parse(python_text(hostile))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_log2_of_the_workload_is_left_to_the_json() -> None:
    text = "autotune: 1\nname: a\nobjective: a.py:A\nworkload: {m: 8}\nknobs: {tile: {values: [1, 2, 4]}}\n"
    space = parse_spec(text + 'constraints: ["log2(m) >= tile - 3"]\n').space
    with pytest.raises(InputError, match="log2"):
        python_text(replace(RULE, space=space.to_document(), names=("m",), tree=Leaf((0,))))
