"""Kills a process in the midst of its transactions, and knows which of them it had acknowledged."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sqlite_writer
from key_values import Transaction

from autotune.measure.diagnostics import telling_line


def killed_while_writing(
    file: Path, knobs: Mapping[str, Any], transactions: Sequence[Transaction], rng: np.random.Generator
) -> int:
    """How many of the transactions were acknowledged by a process that was killed at a random moment.

    Raises ``RuntimeError`` with what it printed where it ended by itself.
    """
    rows = [[(c.removed, c.key, c.value) for c in changes] for changes in transactions]
    letters = sum(map(len, rows)) + len(rows)
    with subprocess.Popen(
        [sys.executable, sqlite_writer.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as writer:
        assert writer.stdin and writer.stdout and writer.stderr
        try:
            writer.stdin.write(pickle.dumps((str(file), dict(knobs), rows)))
            writer.stdin.flush()  # and left open: it ends by being killed
            wanted = int(rng.integers(1, letters + 1))
            said = writer.stdout.read(wanted)
        finally:
            writer.kill()
        said += writer.stdout.read()
        if len(said) < wanted:
            why = telling_line(writer.stderr.read().decode(errors="replace"))
            raise RuntimeError(f"the process that writes ended by itself: {why}")
    return said.count(sqlite_writer.COMMITTED)
