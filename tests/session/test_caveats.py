"""What is said in the place of an answer."""

from __future__ import annotations

import pytest

from autotune.session.caveats import fallen
from autotune.store.records import VerdictRecord


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (
            {"the default": ["crashed", "taken"], "vendor": ["ok", ""]},
            ": the default ended as crashed (taken)",
        ),
        ({"the default": ["crashed", ""], "trial 3": ["wrong", "off"]}, ": trial 3 ended as wrong (off)"),
        ({"vendor": ["crashed", "none here"]}, ""),
    ],
)
def test_why_nobody_stood_the_finale(failed: dict[str, list[str]], why: str) -> None:
    """The default may have been the only one that was to be read again beside baselines."""
    document = {"configuration": None, "remark": "no finalist was read", "outcomes": failed}
    assert fallen([VerdictRecord(1, 1, 1, document, 0.0)]) == f"no finalist was read{why}"
