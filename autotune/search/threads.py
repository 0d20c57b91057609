"""One thread for the linear algebra of a proposal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """BLAS on one thread inside the block; as before after it.

    The matrices of a proposal are small: more threads spend their time waiting for one another (seconds a
    proposal, on a busy machine), on cores where something may be measured at this moment.
    """
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """The libraries that are loaded by now. To look for them takes 10 ms."""
    import scipy.linalg  # noqa: F401  (it brings a BLAS of its own, which is to be found)

    return ThreadpoolController()
