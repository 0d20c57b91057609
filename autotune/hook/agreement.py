"""One choice for all ranks of a distributed job.

The ranks share the key-value store that ``torch.distributed`` was started with. The first rank that needs a
choice for a case writes its own there, and the others take it. This is no collective operation: ranks that
call different kernels, or call them in a different order, do not wait for each other.
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
    """The text that all ranks use for ``name``: that of the first rank to call this.

    ``mine`` gives this rank's text. ``store`` is from :func:`common_store`; without one, ``mine()`` is
    returned.
    """
    text = mine()
    return text if store is None else _text(store.compare_set(_PREFIX + name, "", text))


def once(name: str, work: Callable[[], str], otherwise: Callable[[], str], store: Any) -> str:
    """The result of ``work``, which only the first rank to call this runs; the others wait for it.

    If ``work`` raises, the exception is raised on that rank, and the others get the text of ``otherwise``.
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
