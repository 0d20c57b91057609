"""What a program printed under ``torchrun`` (or ``accelerate launch``), without what the launcher adds.

When a rank fails, the launcher ends the others, logs that, raises an exception of its own and prints a table
whose last part, the root cause, is of the rank that failed first. None of this says why.
"""

from __future__ import annotations

import re

_OWN_ERROR = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
_OWN_TRACEBACK = "\nTraceback (most recent call last):\n"
_LOG = re.compile(r"^[EWI]\d{4} [\d:.]+ \d+ torch/distributed/.*\n?", re.MULTILINE)
_ROOT_CAUSE = re.compile(
    r"Root Cause.*?\brank +: (\d+).*?\bexitcode +: (-?\d+) \(pid: \d+\) *\(?(\w*)", re.DOTALL
)


def without_torchrun(text: str) -> str:
    """What the rank that failed first printed, or how it ended if that is unknown; without a failure, all.

    In a rank that has joined the others, PyTorch writes ``[rank1]: `` before each line of an exception.
    Exceptions of further ranks only say that the first one is gone.
    """
    printed, failed, table = _LOG.sub("", text).partition(_OWN_ERROR)
    cause = _ROOT_CAUSE.search(table)
    if not failed or cause is None:
        return printed + failed + table
    rank, code, signal = cause.groups()
    prefix = f"[rank{rank}]: "
    if own := [line.removeprefix(prefix) for line in printed.splitlines() if line.startswith(prefix)]:
        return "\n".join(own)
    if signal:
        return f"rank {rank}: killed by {signal}"
    others, _, _ = f"\n{printed}".rpartition(_OWN_TRACEBACK)
    return others.strip() or f"rank {rank}: exit code {code}"
