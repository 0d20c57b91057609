"""Kernels whose warps are held up: what of a source is changed, and that every architecture takes it."""

from __future__ import annotations

import pytest

from autotune.measure.gpu.cuda_compiler import find_compiler, options
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.measure.gpu.ptxas import read_log
from autotune.measure.gpu.shaking import PRELUDE, shaken, shares_between_threads

BARRIERS = """extern "C" __global__ void __launch_bounds__(64, 2)
    both(const int *x, int *y /* two parameters, (of which
    one is written) */)
{
    extern __shared__ int held[];
    held[threadIdx.x] = x[threadIdx.x];
    if (x)
        __syncthreads();
    y[0] = __syncthreads_count(held[0]) + __syncthreads_and(held[1] == 1) * __syncthreads_or((held[2], 3));
}
template <int N> __global__ void second() { __syncthreads(); }
__device__ void no_kernel() { __syncthreads(); }
template __global__ void second<3>();
"""

HELD = " autotune_hold();"

compiles = pytest.mark.skipif(find_compiler() is None, reason="neither NVRTC nor nvcc is installed")


def compiled(source: str, architecture: str = "sm_90") -> tuple[bytes, str]:
    compiler = find_compiler()
    assert compiler is not None
    return compiler.compile(source, "both.cu", options(architecture, {}))


def test_kernels_hold_their_warps_up_where_they_begin() -> None:
    text = shaken(BARRIERS, "both.cu").removeprefix(f'{PRELUDE}#line 1 "both.cu"\n')
    head = "    one is written) */)\n{"
    expected = BARRIERS.replace(head, head + HELD).replace("second() {", f"second() {{{HELD}")
    assert text == expected, "and nowhere else: barriers are macros"


def test_what_the_macros_stand_for_is_defined_before_them() -> None:
    for barrier in ("__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"):
        before, _, behind = PRELUDE.partition(f"#define {barrier}(")
        assert behind and f" {barrier}(" in before, "else it would call itself"


@pytest.mark.parametrize(
    ("source", "shares"),
    [
        ("__syncthreads();", True),
        ("if (__syncthreads_or(1))", True),
        ("extern __shared__ float held[]; /* the only barrier was forgotten */", True),
        ("y[i] = x[i];", False),
        ("my__shared__ = __shared; __syncwarp();", False),
    ],
)
def test_where_a_barrier_may_be_missing(source: str, shares: bool) -> None:
    assert shares_between_threads(source) == shares


@compiles
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_every_barrier_compiles(architecture: str) -> None:
    plain, _ = compiled(BARRIERS, architecture)
    cubin, log = compiled(shaken(BARRIERS, "both.cu"), architecture)
    assert "both" in read_log(log), "its name is the same"
    assert b"autotune_shaken_until" in cubin and b"autotune_shaken_until" not in plain


@compiles
def test_an_error_names_the_line_of_the_source() -> None:
    with pytest.raises(CompilerRefusal, match=r'both\.cu\(9\).*"unheard_of" is undefined'):
        compiled(shaken(BARRIERS.replace("held[2]", "unheard_of"), "both.cu"))
