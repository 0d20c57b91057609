"""One thread for the linear algebra of all that is tested here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autotune.search.threads import one_thread


@pytest.fixture(autouse=True, scope="package")
def alone() -> Iterator[None]:
    """As inside a proposal: on two threads, models of some dozen trials take longer than on one."""
    with one_thread():
        yield
