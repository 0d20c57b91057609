"""Whether a win comes after several finales, each of which was a further chance of a win by luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def say_further_finales(verdicts: Sequence[Mapping[str, Any]], confidence: float) -> str:
    """What to tell the user of the last of a study's ``verdicts``, if it is a win after others; else empty.

    ``confidence`` is that of verdicts that do not say their own. A finale is wrong on either side of its
    interval equally often. However they hang together, one of several says that there is a gain where there
    is none at most as often as all of them together (Boole).
    """
    compared = [one for one in verdicts if one.get("speedup") or one.get("gain")]
    if len(compared) < 2 or compared[-1] is not verdicts[-1] or compared[-1].get("is_default"):
        return ""
    chance = min(sum((1.0 - one.get("confidence", confidence)) / 2.0 for one in compared), 1.0)
    return (
        f"the finalists of this study were measured again {len(compared)} times, and each time was another"
        f" chance of luck: of studies without any gain, up to {100 * chance:.3g} % would show one by now"
    )
