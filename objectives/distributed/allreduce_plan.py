"""How one reduction is carried out: the knobs as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """The default is one call of gloo's allreduce.

    ``chunk``: bytes of a piece; ``depth``: pieces in flight. ``algorithm``: gloo's own ring; a ring, a
    binomial tree or a parameter server (rank 0) over sends and receives. ``compression``: ``fp16`` halves
    what is sent and sums in half precision; ``int8`` quarters it, exchanged all to all, and keeps what it
    rounds away for the next time (error feedback: Seide et al., 2014; Karimireddy et al., 2019).
    """

    chunk: int = 1 << 30
    depth: int = 1
    threads: int = 2
    connections: int = 1
    congestion: str = "host"
    algorithm: str = "gloo"
    compression: str = "none"

    @classmethod
    def of(cls, knobs: Mapping[str, Any]) -> Plan:
        """From a configuration, in which ``chunk_kb`` is in KiB; what is not in it is the default."""
        values = dict(knobs)
        if "chunk_kb" in values:
            values["chunk"] = int(values.pop("chunk_kb")) << 10
        return cls(**values)
