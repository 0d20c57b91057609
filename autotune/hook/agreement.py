"""One choice for all ranks of a distributed job.

The ranks have a key-value store in common, the one that ``torch.distributed`` began with. Whoever comes first
for a case puts its choice there, and the others take it. There is no collective: ranks that call other
kernels, or call them in another order, wait for nobody.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

PATIENCE = timedelta(hours=1)
"""How long a rank waits for another one that tunes the case."""

_PREFIX = "autotune/"


def common_store() -> Any:
    """The store of this job's ranks; ``None`` where there is no job of several processes."""
    if "torch.distributed" not in sys.modules:
        return None
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return None
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_store()


def agree(name: str, mine: Callable[[], str], store: Any) -> str:
    """What all ranks take for ``name``: this rank's text where it is the first to say one.

    ``store`` is :func:`common_store`'s; without one it is this rank's.
    """
    text = mine()
    return text if store is None else _text(store.compare_set(_PREFIX + name, "", text))


def once(name: str, work: Callable[[], str], otherwise: Callable[[], str], store: Any) -> str:
    """What ``work`` of the first rank to come gives; the others wait for it.

    Where it raises, the others are given ``otherwise``, and this rank the exception.
    """
    if store is None:
        return work()
    mine = uuid.uuid4().hex
    if _text(store.compare_set(f"{_PREFIX}{name}/worker", "", mine)) != mine:
        store.wait([_PREFIX + name], PATIENCE)
        return _text(store.get(_PREFIX + name))
    try:
        text = work()
    except BaseException:
        store.set(_PREFIX + name, otherwise())
        raise
    store.set(_PREFIX + name, text)
    return text


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
