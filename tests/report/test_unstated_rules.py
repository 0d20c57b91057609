"""Rules that failures give away are told to the reader."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from autotune.report.unstated_rules import Tried, say_rule, unstated_rules
from autotune.space.knobs import Choice, Permutation
from autotune.space.space import Space
from autotune.status import Status

ALL = [
    {"tile": tile, "lanes": lanes, "vector": vector, "layout": layout, "order": ["i", "j"]}
    for tile, lanes, vector, layout in product(
        (16, 32, 48, 64, 96, 128), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4), ("row", "column")
    )
]


def tried(count: int, *, failure: Status = Status.INFEASIBLE, measured: bool = False) -> list[Tried]:
    found = []
    for i in np.random.default_rng(0).permutation(len(ALL))[:count]:
        values = ALL[i]
        even = values["tile"] % (values["lanes"] * values["vector"]) == 0  # type: ignore[operator]
        found.append(Tried(values, Status.OK if even else failure, even or measured))
    return found


def test_the_rule_and_what_speaks_for_it() -> None:
    trials = tried(80)
    failed = sum(trial.status.failed for trial in trials)
    (rule,) = unstated_rules(trials, {})
    assert rule.constraint == "tile % (lanes * vector) == 0"
    assert (rule.breaking, rule.failures, rule.keeping) == (failed, failed, 80 - failed)
    assert (
        say_rule(rule) == f"{failed} of {failed} that failed break it, all {80 - failed} that worked keep it"
    )


def test_what_is_past_a_bound_of_a_metric_breaks_no_rule() -> None:
    assert unstated_rules(tried(80, failure=Status.WRONG, measured=True), {}) == ()
    assert unstated_rules(tried(80, failure=Status.WRONG), {}) != ()


def test_a_rule_that_is_stated_by_now_is_told_no_more() -> None:
    names = ("tile", "lanes", "vector", "layout")
    knobs = [Choice(name, tuple(sorted({values[name] for values in ALL}, key=str))) for name in names]  # type: ignore[type-var]
    ordered = [*knobs, Permutation("order", ("i", "j"))]
    rule, another = "tile % (lanes * vector) == 0", "lanes * vector < 1000"
    (told,) = unstated_rules(tried(80), Space(ordered, [another]).to_document())
    assert told.constraint == rule
    assert unstated_rules(tried(80), Space(ordered, [another, rule]).to_document()) == ()


def test_other_failures_break_no_rule() -> None:
    assert unstated_rules(tried(80, failure=Status.TIMEOUT), {}) == ()


def test_what_no_machine_counts_in_is_no_number() -> None:
    trials = [
        Tried({**t.configuration, "huge": 10 ** (400 + n % 2)}, t.status, t.measured)
        for n, t in enumerate(tried(80))
    ]
    assert [rule.constraint for rule in unstated_rules(trials, {})] == ["tile % (lanes * vector) == 0"]


def test_few_failures_tell_nothing() -> None:
    trials = tried(80)
    failed = [trial for trial in trials if trial.status.failed]
    worked = [trial for trial in trials if not trial.status.failed]
    assert unstated_rules([*worked, *failed[:2]], {}) == ()
    assert unstated_rules(failed, {}) == ()
    assert unstated_rules([], {}) == ()


def test_few_successes_tell_nothing() -> None:
    """Where all but the default fail for reasons of their own, ``1 % (a * b) == 0`` would be named."""
    rows = [{"a": a, "b": b, "layout": layout} for a in range(1, 6) for b in range(1, 6) for layout in "xy"]
    works = [(1, 1), (2, 1), (1, 2)]
    for count in (1, 2, 3):
        trials = [
            Tried(row, Status.OK if ok else Status.CRASHED, ok)
            for row in rows
            for ok in [(row["a"], row["b"]) in works[:count]]
        ]
        assert bool(unstated_rules(trials, {})) == (count == 3)


def test_a_success_among_thousands_refutes() -> None:
    """Not all of many trials are looked at to find a rule; all of them may refute it."""
    trials = [trial for _ in range(6) for trial in tried(len(ALL))]
    assert len(unstated_rules(trials, {})) == 1
    for place in range(0, len(trials), 7):
        trials[place] = Tried(trials[place].configuration, Status.OK, True)
    assert unstated_rules(trials, {}) == ()


def test_where_all_guesses_are_refuted_none_is_told() -> None:
    """Of thousands of trials 200 are looked at to find a rule; one of the others breaks whatever is found."""
    drawn = np.random.default_rng(0).integers(1, 9, (60, 5)).tolist()
    rows = [dict(zip("abcde", values, strict=True)) for values in drawn]
    odd = [Tried(row, Status.INFEASIBLE, False) for row in rows if row["a"] % row["b"]]
    even = 100 * [Tried(row, Status.OK, True) for row in rows if row["a"] % row["b"] == 0]
    refuting = [Tried(trial.configuration, Status.OK, True) for trial in odd]
    assert unstated_rules([*odd, *even], {}) != ()
    for place in range(0, len(even), 100):
        assert unstated_rules([*odd, *even[:place], *refuting, *even[place:]], {}) == ()


def test_guessing_does_not_load_what_fits_a_process() -> None:
    """``show`` and ``report`` guess for every study with failures; scipy.optimize was half the cost."""
    guess = "from autotune.search.models import hypotheses, rule_text, thinning"
    program = f"import sys; {guess}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "autotune.search.models.hypotheses" in loaded
    assert not loaded & {"scipy.optimize", "autotune.search.models.gaussian_process"}


@pytest.mark.parametrize(
    ("fact", "said"), [("rows", "rows % tile == 0"), ("tile", "workload.tile % tile == 0")]
)
def test_a_fact_is_named_as_in_a_constraint(fact: str, said: str) -> None:
    """A knob hides a fact of the same name. Of equal sizes, as a square has, the first is named."""
    trials = [
        Tried({"tile": tile, "depth": depth}, Status.CRASHED if 720 % tile else Status.OK, not 720 % tile)
        for tile in range(1, 33)
        for depth in (1, 2)
    ]
    (rule,) = unstated_rules(trials, {"workload": {fact: 720, "as_many": 720, "dtype": "float32"}})
    assert rule.constraint == said


def test_of_sizes_in_order_the_rule_that_forbids_less_is_told() -> None:
    """Every size that worked divides the other one, as no larger power of two does."""
    failed, worked = [(1024, 64), (1024, 512), (512, 256)], [(64, 256), (256, 1024), (16, 128), (512, 512)]
    trials = [
        Tried({"initial": initial, "most": most, "threads": threads}, status, not status.failed)
        for pairs, status in ((failed, Status.CRASHED), (worked, Status.OK))
        for initial, most in pairs
        for threads in (1, 2, 3)
    ]
    (rule,) = unstated_rules(trials, {})
    assert rule.constraint == "initial <= most"
