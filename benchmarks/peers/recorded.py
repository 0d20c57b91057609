"""A peer's search on a recorded space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from autotune.measure.recordings.recording import Entry, Recording
from autotune.space.configuration import Configuration, plain
from autotune.space.space import Space
from benchmarks.peers.client import Client, Found, PeerError, kept
from benchmarks.peers.described import described

ASKS_A_TRY = 10
"""A peer that proposes nothing but repeats and what is not recorded is stopped after so many asks a try."""
MILLISECONDS = 1e3


def split(name: str) -> tuple[str, bool]:
    """The peer behind a name, and whether a useless proposal of it is replaced by a random one.

    Of Optuna's samplers both ways are had, ``-r`` the latter. skopt and HEBO always get the latter:
    they cannot be told of a failure, and propose much that is not feasible.
    """
    base = name.removesuffix("-r")
    return base, base != name or base.startswith("skopt-") or base == "hebo"


def search(
    found: Found, recording: Recording, space: Space, seed: int, tries: int, replace: bool
) -> tuple[list[dict[str, Any]], float]:
    """What a peer tries on ``recording``, in order, and the processor time that it took.

    A proposal that is not recorded is told as a failure and costs no try, a repeat is told again;
    or both are replaced by a random configuration that is recorded and new (``replace``). Times are in ms.
    :class:`PeerError` where nothing that is recorded was proposed.
    """
    client = kept(found)
    if found.name.startswith("kt-"):
        tried = client.search(_document(recording, space), seed, tries)
    else:
        client.start(described(space), seed, tries)
        tried = list(_asked(client, recording, np.random.default_rng(seed), tries, replace))
    if not tried:
        raise PeerError(f"{found.name} proposed nothing that is recorded in {ASKS_A_TRY * tries:,} asks")
    return tried, client.seconds


def _asked(
    client: Client, recording: Recording, rng: np.random.Generator, tries: int, replace: bool
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    shuffled = (recording.entries[place] for place in rng.permutation(len(recording.entries)))
    for _ in range(ASKS_A_TRY * tries):
        configuration = client.ask()
        entry = recording.find(Configuration(configuration))
        if replace and (entry is None or id(entry) in seen):
            entry = next(other for other in shuffled if id(other) not in seen)
            configuration = {name: plain(entry.configuration[name]) for name in configuration}
        client.tell([(configuration, _loss(entry))])
        if entry is not None and id(entry) not in seen:
            seen.add(id(entry))
            yield configuration
        if len(seen) == min(tries, len(recording.entries)):
            return


def _loss(entry: Entry | None) -> float | None:
    return None if entry is None or entry.time is None else entry.time * MILLISECONDS


def _document(recording: Recording, space: Space) -> Mapping[str, Any]:
    names = [knob.name for knob in space.knobs]
    return {
        "knobs": {name: [plain(value) for value in recording.knobs[name]] for name in names},
        "rows": [[plain(entry.configuration[name]) for name in names] for entry in recording.entries],
        "times": [_loss(entry) for entry in recording.entries],
    }
