"""Races on made readings: what is counted, and what is chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.racing import race, run
from benchmarks.racing_report import report
from benchmarks.racing_rules import FIXED, MOST, OWN, RULES, Race, by_mean, nvbench_enough


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Forty configurations ``k``, the slower the larger, with noise of 1 %; one that failed."""
    rng = np.random.default_rng(0)
    cache = {}
    for k in range(40):
        times = ((10 + k) * rng.lognormal(sigma=0.01, size=MOST)).tolist()
        cache[str(k)] = {"k": k, "time": float(np.mean(times)), "times": times}
    cache["40"] = {"k": 40, "time": "RuntimeFailedConfig", "times": []}
    document = {"tune_params_keys": ["k"], "tune_params": {"k": list(range(41))}, "cache": cache}
    path = tmp_path / "made.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def tried(made: Path) -> Race:
    return race(made, "random", seed=0, shuffled=False)


def test_a_fixed_rule_reads_each_success_so_often(tried: Race) -> None:
    choice = RULES[FIXED](tried)
    assert (choice.chosen["k"], choice.readings) == (0, 40 * MOST)
    assert by_mean(7)(tried).readings == 40 * 7


def test_own_rules_choose_as_well_with_a_third_of_the_readings(tried: Race) -> None:
    choice = RULES[OWN](tried)
    assert choice.chosen["k"] == 0
    assert 0 < choice.finale < choice.readings <= 40 * MOST / 3


def test_rejecting_early_saves_readings(tried: Race) -> None:
    assert RULES[OWN](tried).readings < RULES["own, read to the end"](tried).readings


def test_nvbench_ends_at_low_noise_or_where_it_has_settled() -> None:
    assert nvbench_enough([1.0, 1.001] * 5)
    noisy = [1.0, 1.1] * 40
    assert not nvbench_enough(noisy[:10])
    assert nvbench_enough(noisy)
    assert not nvbench_enough(noisy[:79])


def test_shuffled_readings_are_the_same_ones(made: Path) -> None:
    plain, shuffled = (race(made, "random", 0, s).measured[0].readings for s in (False, True))
    assert plain != shuffled
    assert sorted(plain) == sorted(shuffled)


def test_the_table_names_every_rule(made: Path) -> None:
    text = report(run(made, "random", 0, False), [made], "command")
    assert all(f"| {rule} | " in text for rule in RULES)
    assert "| made | 32 | " in text
