"""What a store knows of the digest of an archive."""

from __future__ import annotations

from autotune.errors import AutotuneError
from autotune.store.statements.pruning import WRITTEN
from autotune.store.store import Store


def known_digest(url: str | None, digest: str) -> str:
    """That an archive with this digest was written from the store at ``url``, in words; else nothing.

    A store that took the archive in says nothing of who wrote it, so it does not vouch for it.
    """
    try:
        with Store.open(url, readonly=True) as store:
            return f"it was written from {store.url}" if store.kind_of(digest) == WRITTEN else ""
    except AutotuneError:
        return ""
