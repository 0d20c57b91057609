"""What is special to scikit-optimize's models; the rest is in the conformance tests."""

from __future__ import annotations

from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tests.search.spaces import CASES, problem, search

gpr = pytest.importorskip("skopt.learning.gaussian_process.gpr")


def test_its_process_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two took six times as long as one for a few trials, on cores that may be measured on."""
    from autotune.search.strategies.skopt_models import SkoptGp

    threads: set[int] = set()
    fit = gpr.GaussianProcessRegressor.fit

    def watched(self: Any, *args: Any, **named: Any) -> Any:
        threads.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return fit(self, *args, **named)

    monkeypatch.setattr(gpr.GaussianProcessRegressor, "fit", watched)
    case = CASES["kernel"]()
    with threadpool_limits(2, user_api="blas"):
        search(SkoptGp(problem(case, initial=4)), case, 6)
    assert threads == {1}
