"""Who asks for tuning, and what is refused before anything is run."""

from __future__ import annotations

import pytest

import autotune
from autotune.errors import InputError
from autotune.hook.tuning import VARIABLE, Budget, budget_asked


def test_a_block_asks_and_the_innermost_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert budget_asked() is None
    with autotune.tuning(trials=3):
        with autotune.tuning(time=2.0, store="a.db"):
            assert budget_asked() == Budget(time=2.0, store="a.db")
        assert budget_asked() == Budget(trials=3)
        with autotune.tuning(time="1m30s"):
            assert budget_asked() == Budget(time=90.0)
    assert budget_asked() is None


@pytest.mark.parametrize("bound", [{"trials": 0}, {"time": float("nan")}, {"time": "soon"}, {"seed": -1}])
def test_a_bound_that_is_none_is_refused_as_the_block_begins(bound: dict[str, float | str]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(bound))} is"), autotune.tuning(**bound):  # type: ignore[arg-type]
        pytest.fail("entered")


@pytest.mark.parametrize(("value", "asks"), [("1", True), ("on", True), ("0", False), ("", False)])
def test_the_environment_asks(monkeypatch: pytest.MonkeyPatch, value: str, asks: bool) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert budget_asked() == (Budget() if asks else None)


def test_only_kernels_of_triton_are_decorated() -> None:
    with pytest.raises(
        InputError, match=r"above @triton\.jit; another function is tuned by autotune\.search"
    ):
        autotune.kernel(space={"BLOCK": [1]}, key=[])(lambda x: x)
