"""Processes that write to a store, and what they finished."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from autotune.store.store import Store
from tests.store.build import Bench, results

ROOT = Path(__file__).parents[2]


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process of its own, in which the helpers of these tests can be imported."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(store: Store, b: Bench) -> list[int]:
    return [t.id for t in results(store, b.study.id)]
