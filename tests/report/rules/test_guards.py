"""The condition written for a configuration says what the space itself says, workload by workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.hook.rule import Branch, Leaf, Rule, Threshold
from autotune.report.rules.guards import FALSE, TRUE, Surroundings, guard
from autotune.report.rules.python import python_text
from autotune.space.configuration import FrozenMap
from autotune.space.language.syntax import render
from autotune.space.reading.reader import parse_spec

TEXT = """
autotune: 1
name: guarded
objective: a.py:A
workload: {m: 64, n: 64, causal: true, kind: half, shared: 8}
knobs:
  tile: {values: [1, 2, 4, 8, 16, 32], default: 1}
  depth: {range: [1, 4]}
  pack: {flag: false}
  panel: {values: [4, 8, 16], when: pack}
  late: {flag: false, when: "m > 100"}
  order: {permutation: [i, j]}
"""


BASE = parse_spec(TEXT, device={"l1_bytes": 4096}).space.to_document()


KNOBS = {name: knob for name, knob in BASE["knobs"].items() if name != "late"}


def document(*rules: str) -> dict[str, Any]:
    return {**BASE, "constraints": list(rules), "facts": {"device.l1_bytes": 4096}}


def around(*rules: str) -> Surroundings:
    return Surroundings(document(*rules), FrozenMap({"shared": 8}), frozenset(("m", "n", "causal", "kind")))


CONFIGURATION = {"tile": 8, "depth": 2, "pack": False, "order": ["i", "j"]}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("", "(not (m > 100))"),
        ("m % tile == 0", "(((m % 8) == 0) and (not (m > 100)))"),
        ("tile * depth * 4 <= m * n", "((64 <= (m * n)) and (not (m > 100)))"),
        ("workload.m >= shared * tile", "((m >= 64) and (not (m > 100)))"),
        ("tile * 4 <= device.l1_bytes", "(not (m > 100))"),
        ("not pack or panel <= m", "(not (m > 100))"),
        ("m > 9 or panel == 8", "(not (m > 100))"),
        ("panel == 8 and m > 9", "(not (m > 100))"),
        ("m > 9 and panel == 8", "((m > 9) and (not (m > 100)))"),
        ("tile == 1 or m >= 32", "((m >= 32) and (not (m > 100)))"),
        ("kind == 'half' or order[0] == 'j'", "((kind == 'half') and (not (m > 100)))"),
    ],
)
def test_what_is_constant_is_folded(rules: str, said: str) -> None:
    assert render(guard(around(*filter(None, [rules])), CONFIGURATION)) == said


def test_a_knob_that_exists_only_for_some_workloads_is_guarded_both_ways() -> None:
    assert render(guard(around(), {**CONFIGURATION, "late": True})) == "(m > 100)"


def test_what_is_never_allowed_is_false_and_what_always_is_true() -> None:
    assert guard(around("tile <= 4"), CONFIGURATION) == FALSE
    plain = parse_spec(
        "autotune: 1\nname: a\nobjective: a.py:A\nworkload: {m: 4}\nknobs: {a: {flag: true}}\n"
    ).space
    assert guard(Surroundings(plain.to_document(), {}, frozenset("m")), {"a": True}) == TRUE


def test_a_missing_knob_beside_a_workload_is_refused_for_python() -> None:
    with pytest.raises(InputError, match="cannot be written in terms of the workload alone"):
        guard(around("panel + m > 5"), CONFIGURATION)


RULES = [
    "m % tile == 0",
    "tile <= m",
    "tile * depth <= n",
    "not pack or m * n >= 256",
    "pack or tile < n or m == 3",
    "min(m, n) >= tile or causal",
    "ceildiv(m, tile) * depth <= 64",
    "kind in ['half', 'single'] or tile < 16",
    "m - n < 100 and (n > 2 or depth > 1)",
    "m ** 2 <= n ** 2 * 64",
    "not (causal and m < tile)",
    "panel <= m",
]


def rule_for(rules: list[str], configurations: list[dict[str, Any]]) -> Rule:
    return Rule(
        study="guarded",
        names=("m", "n", "causal", "kind"),
        fixed=FrozenMap({"shared": 8}),
        configurations=tuple(configurations),
        tree=Branch(
            Threshold(("m",), 20), Leaf(tuple(range(len(configurations)))), Leaf((len(configurations) - 1,))
        ),
        space={name: value for name, value in document(*rules).items() if name != "workload"},
        workloads=({"m": 64, "n": 64, "causal": True, "kind": "half"},),
    )


def test_no_branch_stands_there_that_cannot_be_reached() -> None:
    """Of ascending tiles that have to fit into ``m`` only the first is ever taken, up to its size."""
    listed = [{"tile": tile, "depth": 1, "pack": False, "order": ["i", "j"]} for tile in (32, 4, 8, 16)]
    rule = rule_for(["tile <= m", "m % tile == 0"], listed)
    text = python_text(replace(rule, space={**rule.space, "knobs": KNOBS}))
    assert text.partition('own."""\n')[2] == (
        "    if m <= 20:\n"
        "        if 4 <= m and m % 4 == 0:  # the constraints\n"
        "            return dict(A)\n"
        '        raise ValueError(f"no configuration that was measured is allowed for m {m!r}, n {n!r},'
        ' causal {causal!r}, kind {kind!r}")\n'
        "    if 16 <= m and m % 16 == 0:  # the constraints\n"
        "        return dict(B)\n"
        '    raise ValueError(f"no configuration that was measured is allowed for m {m!r}, n {n!r},'
        ' causal {causal!r}, kind {kind!r}")\n'
    )


configurations = (
    st.fixed_dictionaries(
        {
            "tile": st.sampled_from([1, 2, 4, 8, 16, 32]),
            "depth": st.integers(1, 4),
            "pack": st.booleans(),
            "order": st.just(["i", "j"]),
        }
    )
    .flatmap(
        lambda c: st.builds(
            lambda panel: c | ({"panel": panel} if c["pack"] else {}), st.sampled_from([4, 8, 16])
        )
    )
    .flatmap(lambda c: st.sampled_from([c, c | {"late": True}]))
)
workloads = st.fixed_dictionaries(
    {
        "m": st.one_of(st.integers(1, 40), st.integers(60, 200)),
        "n": st.one_of(st.integers(1, 40), st.integers(60, 200)),
        "causal": st.booleans(),
        "kind": st.sampled_from(["half", "single", "double"]),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(RULES), unique=True, max_size=4),
    st.lists(configurations, min_size=1, max_size=3),
    st.lists(workloads, min_size=1, max_size=5),
)
def test_the_function_takes_what_the_json_takes_and_nothing_forbidden(
    rules: list[str], listed: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    rule = rule_for(rules, listed)
    try:
        text = python_text(rule)
    except InputError:
        assert "panel <= m" in rules
        return
    names: dict[str, Any] = {}
    exec(text, names)
    for workload in asked:
        try:
            wanted = rule.choose(workload).configuration
        except InputError:
            with pytest.raises(ValueError, match="no configuration"):
                names["choose"](**workload)
        else:
            assert names["choose"](**workload) == wanted  # which the space itself has allowed
