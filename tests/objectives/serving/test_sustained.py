"""The highest rate that holds is found to the step that is asked for."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.objectives.beside import importable
from tests.objectives.serving.small import SERVING


@given(
    most=st.floats(20, 1e6),
    start=st.floats(20, 1e6),
    step=st.floats(1.01, 1.5),
    credulous=st.floats(1, 3),
)
@example(most=30.0, start=22.0, step=1.5, credulous=1.0)
def test_it_is_found(most: float, start: float, step: float, credulous: float) -> None:
    importable(SERVING)
    from sustained import highest

    tried: list[tuple[float, bool]] = []

    def holds(rate: float, long: bool) -> bool:
        tried.append((rate, long))
        return rate <= most * (1 if long else credulous)

    found = highest(holds, start, 20, step)
    if found:
        assert most / step**2 <= found <= most
        assert (found, True) in tried, "it was shown to hold for long"
    else:
        assert most < 20
    assert len(tried) < 60


def test_what_never_holds_is_no_rate() -> None:
    importable(SERVING)
    from sustained import highest

    assert highest(lambda rate, long: False, 200, 20, 1.05) == 0
    assert highest(lambda rate, long: rate < 5000 and not long, 200, 20, 1.05) == 0
