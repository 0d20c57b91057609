"""Whether a study goes on in another environment than the one that earlier trials were measured in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from autotune.provenance.environment import Environment, compare
from autotune.store.records import TrialRecord
from autotune.store.store import Store

MOST_NAMED = 3
"""How many differences are named."""


def say_changed(store: Store, trials: Iterable[TrialRecord], now: Environment) -> str:
    """What to tell the user if ``trials`` were measured in another environment than ``now``; else empty.

    A number of threads set in the shell, for example, is part of neither the objective nor the space. If it
    has changed, earlier and new values cannot be compared, and the best may no longer be the best.
    """
    counts = Counter(t.environment_hash for t in trials if t.status.finished and t.environment_hash)
    del counts[now.hash]
    changed = {digest: _differences(store, digest, now) for digest in counts}
    count = sum(counts[digest] for digest, found in changed.items() if found)
    if not count:
        return ""
    found = max(changed.values(), key=len)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    which = "1 earlier trial was" if count == 1 else f"{count} earlier trials were"
    return (
        f"{which} measured in another environment ({', '.join(found[:MOST_NAMED])}{more}): --fresh measures"
        " everything anew, and autotune verify the winner"
    )


def _differences(store: Store, digest: str, now: Environment) -> list[str]:
    before = store.environment(digest)
    return [str(one) for one in compare(before, now)] if before else []
