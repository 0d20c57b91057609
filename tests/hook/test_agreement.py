"""Ranks that share a store agree on what the first of them says."""

from __future__ import annotations

import importlib.util
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from autotune.hook.agreement import agree, once

shared = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def test_alone_everybody_is_right() -> None:
    assert agree("add", lambda: "mine", None) == "mine"
    assert once("add", lambda: "found", lambda: "else", None) == "found"


@pytest.mark.torch
@shared
def test_the_first_is_taken_by_all() -> None:
    from torch.distributed import HashStore

    store = HashStore()
    assert agree("add", lambda: "first", store) == "first"
    assert agree("add", lambda: "second", store) == "first"
    assert agree("mul", lambda: "second", store) == "second"


@pytest.mark.torch
@shared
def test_one_rank_works_and_the_others_wait_for_it() -> None:
    from torch.distributed import HashStore

    store, everybody = HashStore(), threading.Barrier(4)
    worked: list[int] = []

    def rank(number: int) -> str:
        def work() -> str:
            worked.append(number)
            return f"of {number}"

        everybody.wait()
        return once("add", work, lambda: "else", store)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rank, range(4)))
    assert len(worked) == 1
    assert found == [f"of {worked[0]}"] * 4


@pytest.mark.torch
@shared
def test_where_the_work_fails_the_others_go_on() -> None:
    from torch.distributed import HashStore

    store = HashStore()

    def fails() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once("add", fails, lambda: "else", store)
    assert once("add", lambda: "never", lambda: "never", store) == "else"
