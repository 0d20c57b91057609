"""What an objective reads of its workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.objective import Context, Infeasible


def context(**workload: Any) -> Context:
    return Context(workload, {}, Path())


@pytest.mark.parametrize("value", [1, 960, 960.0, np.int64(960), np.float32(2.0)])
def test_a_size_is_a_whole_number(value: Any) -> None:
    found = context(m=value).size("m")
    assert found == value and type(found) is int


@pytest.mark.parametrize("value", [0, -3, 1.5, "960", True, float("inf"), float("nan"), None, (1,)])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(Infeasible, match="m should be a whole number, 1 or more, and is "):
        context(m=value).size("m")


def test_a_size_may_have_a_default_and_be_none() -> None:
    assert context().size("gemms", 0, least=0) == 0 and context(gemms=2).size("gemms", 0, least=0) == 2
    with pytest.raises(Infeasible, match=r"gemms should be a whole number, 0 or more, and is 1\.5"):
        context(gemms=1.5).size("gemms", 0, least=0)


def test_a_size_that_is_not_there_is_named() -> None:
    with pytest.raises(Infeasible, match="the workload has no 'm'"):
        context(n=1).size("m")
