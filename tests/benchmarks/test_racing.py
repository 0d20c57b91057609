"""Races on made readings: what is counted, and what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from benchmarks.racing import race, run
from benchmarks.racing_report import report
from benchmarks.racing_rules import FIXED, MOST, OWN, RULES, Race, by_mean, nvbench_enough
from tests.recordings import record


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Forty configurations ``k``, the slower the larger, with noise of 1 %; one that failed."""
    rng = np.random.default_rng(0)
    entries = [{"k": k, **read(10 + k, rng)} for k in range(40)]
    entries.append({"k": 40, "time": "RuntimeFailedConfig", "times": []})
    return record(tmp_path / "made.json", {"k": range(41)}, entries)


def read(milliseconds: int, rng: np.random.Generator) -> dict[str, Any]:
    """Readings with noise of 1 %, and their mean."""
    times = (milliseconds * rng.lognormal(sigma=0.01, size=MOST)).tolist()
    return {"time": float(np.mean(times)), "times": times}


@pytest.fixture
def tried(made: Path) -> Race:
    return race(made, "random", seed=0)


def test_a_fixed_rule_reads_each_success_so_often(tried: Race) -> None:
    choice = RULES[FIXED](tried)
    assert (choice.chosen["k"], choice.readings) == (0, 40 * MOST)
    assert by_mean(7)(tried).readings == 40 * 7


def test_own_rules_choose_as_well_with_a_third_of_the_readings(tried: Race) -> None:
    choice = RULES[OWN](tried)
    assert choice.chosen["k"] == 0
    assert 0 < choice.finale < choice.readings <= 40 * MOST / 3


def test_a_space_whose_default_was_not_recorded_is_raced_too(tmp_path: Path) -> None:
    """It had ended every race: the first value of each knob violates a constraint of many kernels."""
    rng = np.random.default_rng(0)
    rows = [(a, b) for a in range(6) for b in range(max(0, 3 - a), 6)]
    entries = [{"a": a, "b": b, **read(10 + abs(a - 2) + b, rng)} for a, b in rows]
    path = record(tmp_path / "corner.json", {"a": range(6), "b": range(6)}, entries)
    [own] = [line for line in run(path, "random", 0) if line.rule == OWN]
    assert 0 < own.finale < own.readings and own.regret < 0.02


def test_raw_readings_are_needed(tmp_path: Path) -> None:
    path = record(tmp_path / "means.json", {"a": [1]}, [{"a": 1, "time": 2.0}])
    with pytest.raises(InputError, match=r"means\.json: a rule needs two raw readings"):
        run(path, "random", 0)


def test_rejecting_early_saves_readings(tried: Race) -> None:
    assert RULES[OWN](tried).readings < RULES["own, read to the end"](tried).readings


def test_nvbench_ends_at_low_noise_or_where_it_has_settled() -> None:
    assert nvbench_enough([1.0, 1.001] * 5)
    noisy = [1.0, 1.1] * 40
    assert not nvbench_enough(noisy[:10])
    assert nvbench_enough(noisy)
    assert not nvbench_enough(noisy[:79])


def test_the_table_names_every_rule(made: Path) -> None:
    text = report(run(made, "random", 0), [made], "command")
    assert all(f"| {rule} | " in text for rule in RULES)
    assert "| made | 32 | " in text
