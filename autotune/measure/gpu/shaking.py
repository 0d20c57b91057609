"""CUDA C *shaken*: the same kernels with random delays of their warps, so that a missing barrier shows.

The warps of a block mostly stay so close together that the answer is nearly always right although a barrier
is missing. In a shaken kernel each warp is delayed by a random time where the kernel begins and after every
``__syncthreads()``, ``__syncthreads_count()``, ``__syncthreads_and()`` and ``__syncthreads_or()``. Where
barriers separate two steps, the answer stays right however long a warp is delayed; where one is missing, the
steps overlap.

Not delayed against each other are the lanes of one warp (``__syncwarp``), and blocks beyond the delays of
their warps. There are no delays at barriers of cooperative groups, of ``cuda::barrier`` and of inline PTX
(``bar.sync``, ``mbarrier``): a kernel that has only those is delayed only where it begins.
"""

from __future__ import annotations

import re

HOLD_CYCLES = 2048
"""The unit of a delay. It has to be longer than what a warp does after a missing barrier before it interferes
with the delayed one, mostly a read from memory: 600 to 1000 cycles, on a busy device more."""

MOST_HOLDS = 3
"""A delay is 0 to 3 units, so that two warps have different delays in three of four cases. Three units are
3.5 us at 1.75 GHz."""

SHAKEN_NANOSECONDS = 20_000_000
"""Warps are delayed only for so long after the first delay in a loaded module. A product of 4096^3 in tiles
of 16 has 65,536 blocks with 512 barriers each, and would take a quarter of a second. The thousands of blocks
that begin in this time show a missing barrier just as well, and no kernel, however many barriers it has,
takes much longer than this plus its own time."""

_SHARES = re.compile(r"\b__(?:shared__|syncthreads)")
"""Words in a source in which threads wait for each other, or should."""

_KERNEL = re.compile(r"__global__[^{};]*\)\s*\{")
"""A kernel's head, up to the brace behind its parameters."""

_PRELUDE = f"""
static __device__ unsigned long long autotune_shaken_until; /* zero in a module just loaded */

__device__ __forceinline__ void autotune_hold()
{{
    unsigned long long now, until = *(volatile unsigned long long *)&autotune_shaken_until;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (until == 0) {{
        until = now + {SHAKEN_NANOSECONDS}ull;
        atomicCAS(&autotune_shaken_until, 0ull, until);
    }}
    if (now >= until)
        return;
    long long start = clock64();
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned mixed = (unsigned)start ^ (thread / 32 + 1) * 0x9e3779b9u ^ block * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
    mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
    long long wait = (long long)((mixed ^ mixed >> 16) % {MOST_HOLDS + 1}u) * {HOLD_CYCLES};
    while (clock64() - start < wait) {{
    }}
    __threadfence_block(); /* nothing that follows may be read before the wait */
}}

__device__ __forceinline__ void autotune_syncthreads()
{{
    __syncthreads();
    autotune_hold();
}}
#define __syncthreads() autotune_syncthreads()
"""

_COUNTING = """
__device__ __forceinline__ int autotune_syncthreads_{kind}(int predicate)
{{
    int found = __syncthreads_{kind}(predicate);
    autotune_hold();
    return found;
}}
#define __syncthreads_{kind}(predicate) autotune_syncthreads_{kind}(predicate)
"""

PRELUDE = _PRELUDE + "".join(_COUNTING.format(kind=kind) for kind in ("count", "and", "or"))


def shares_between_threads(source: str) -> bool:
    """Whether a barrier may be missing: the source has barriers, or shared memory that may need one."""
    return _SHARES.search(source) is not None


def shaken(source: str, name: str) -> str:
    """The source with delays. Its lines keep their numbers in messages about ``name``."""
    held_from_the_start = _KERNEL.sub(lambda head: f"{head.group()} autotune_hold();", source)
    return f'{PRELUDE}#line 1 "{name}"\n{held_from_the_start}'
