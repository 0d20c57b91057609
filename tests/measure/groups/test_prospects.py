"""What this machine is said to give objectives of several processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.groups import prospects


def test_each_works_or_it_is_said_why_not() -> None:
    found = prospects.group_prospects()
    assert [one.name for one in found] == ["processor quota", "links"]
    for one in found:
        assert one.detail and one.needed_for and (one.available or one.remedy), one


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        ("def unable(): return 'no network here'", "no network here"),
        ("import missing_module", "No module named 'missing_module'"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
def test_links_that_cannot_be_tried_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: str, why: str
) -> None:
    """Killed without a word, the process that tries them had counted as one that could make them."""
    folder = tmp_path / "objectives" / "distributed"
    folder.mkdir(parents=True)
    (folder / "testbed.py").write_text(tried)
    monkeypatch.setattr(prospects, "ready_root", lambda: tmp_path)
    links = {one.name: one for one in prospects.group_prospects()}["links"]
    assert not links.available and why in links.detail and links.remedy
