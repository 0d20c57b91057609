"""One thread for the linear algebra of a proposal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """BLAS uses one thread inside the block.

    The matrices of a proposal are small: more threads spend their time waiting for one another (seconds per
    proposal on a busy machine), on cores where something may be measured at this moment.
    """
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Controls the libraries that are loaded. Kept, since to look for them takes 10 ms."""
    import scipy.linalg  # noqa: F401  (it loads a BLAS of its own, which is to be found as well)

    return ThreadpoolController()
