"""What the hash of a kernel's source is of, with kernels of Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.hook.kernels import kernel_child
from tests.objectives.triton_child import child, needs_triton

pytestmark = [pytest.mark.torch, needs_triton]

TEXT = """
import triton
import triton.language as tl

FACTOR = tl.constexpr(2.0)
UNUSED = 3.0

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, act(tl.load(x + at, mask=at < n)), mask=at < n)

@triton.jit
def act(value):
    return tl.exp(value) * FACTOR

def prepare(x):
    return x + 1
"""


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with child(interpret=True) as pool:
        yield pool


def test_a_source_is_of_what_the_kernel_calls_and_reads_and_of_nothing_else(
    process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """Only the kernel's own text had counted: with another activation its recipe was as fresh as before."""
    edits = [
        ("", ""),
        ("UNUSED = 3.0", "UNUSED = 4.0"),
        ("x + 1", "x + 2"),
        ("tl.exp(value)", "tl.log(value)"),
        ("FACTOR = tl.constexpr(2.0)", "FACTOR = tl.constexpr(3.0)"),
        ("program_id(0)", "program_id(1)"),
    ]
    texts = [TEXT.replace(old, new) if old else TEXT for old, new in edits]
    found = [
        process.submit(kernel_child.source_of, tmp_path, number, text).result()
        for number, text in enumerate(texts)
    ]
    assert found[0] == found[1] == found[2] and len(set(found)) == 4 and all(found)
