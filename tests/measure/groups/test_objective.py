"""Objectives that keep a group: the example of the documentation, and when it is made anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.groups.device import Device, Link
from autotune.measure.groups.objective import GroupObjective
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "distributed.md"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The objective that the page shows, from a file of its own."""
    folder = tmp_path_factory.mktemp("shown")
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    (folder / "shown.py").write_text(code[1])
    found: Any = load_objective(PythonObjective("shown.py:Exchange", folder), Context({}, {}, folder))
    yield found
    found.tidy()
    assert found.standing() == frozenset()


def test_what_the_page_shows_works(shown: Any) -> None:
    for messages in (1, 10):
        sample = shown.measure({"messages": messages}, np.random.default_rng(0))
        assert sample.values["time"] > 0
        assert sample.facts["world"] == 2 and sample.facts["network"] == "loopback"


def test_a_group_is_kept_while_the_same_is_asked_for(shown: Any) -> None:
    shown.measure({"messages": 1}, np.random.default_rng(0))
    first = shown.standing()
    shown.measure({"messages": 2}, np.random.default_rng(0))
    assert shown.standing() == first and len(first) >= 2  # the ranks, and what keeps their cores awake
    assert shown.group([Device()]).world == 1 and shown.standing() == frozenset()


def test_links_without_a_network_for_them_are_said(tmp_path: Path) -> None:
    objective = GroupObjective(Context({}, {}, tmp_path))
    group = objective.group([Device(link=Link(1e9, 1e-3))])
    assert group.facts["not_shaped"] == "this objective has no other network"
    with pytest.raises(TypeError, match="cannot be pickled"):
        objective.__getstate__()


def test_what_ranks_need_is_asked_for_before_any_trial(tmp_path: Path) -> None:
    class Needy(GroupObjective):
        preload = ("os", "no_such_module.inner")

    with pytest.raises(ModuleNotFoundError, match="the ranks need no_such_module"):
        Needy(Context({}, {}, tmp_path))
