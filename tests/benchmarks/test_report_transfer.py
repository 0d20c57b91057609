"""The table of transfer: sources by name, gains over the seeds that both have."""

from __future__ import annotations

from benchmarks.report_transfer import sources_of, strategy_of, table
from benchmarks.score import Judgement


def verdict(score: float, r10: float) -> Judgement:
    return Judgement(score=score, tries=50, r10=r10, r50=1.0, r200=1.0)


def test_a_row_says_how_near_ten_tries_come_and_what_sources_gain() -> None:
    alone = {seed: verdict(0.5 + 0.1 * seed, 1.5) for seed in range(3)}
    taught = {seed: verdict(0.7 + 0.1 * seed, r10) for seed, r10 in enumerate((1.01, 1.02, 1.2, 1.3))}
    _, _, first, second = table({("gemm", "220"): taught, ("gemm", ""): alone})
    assert first == "| gemm | none | 3 | 1.500 | 0/3 | 0.600 |  |"
    assert second == "| gemm | the other GPUs | 4 | 1.110 | 2/4 | 0.850 | +0.200 ± 0.000 |"


def test_searches_of_different_strategies_are_not_mixed() -> None:
    """Those of one seed and the same sources had stood for one another."""
    names = ("auto", "auto+220", "auto+220+negated@8", "random", "auto@8")
    lines = [{"strategy": name} for name in names]
    assert [strategy_of(line) for line in lines] == ["auto", "auto", "auto@8", "random", "auto@8"]
    assert [sources_of(line) for line in lines] == ["", "220", "220+negated", "", ""]
