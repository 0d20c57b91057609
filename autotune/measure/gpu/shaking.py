"""CUDA C *shaken*: the same kernels, whose warps are held up at random, so that a missing barrier shows.

The warps of a block mostly stay so close together that a barrier may be missing and the answer right all the
same, nearly every time. In a shaken kernel each warp waits where the kernel begins and behind every
``__syncthreads()``, ``__syncthreads_count()``, ``__syncthreads_and()`` and ``__syncthreads_or()``: a time of
its own, anew each time. What a barrier still divides stays right, however long a warp waits, and what none
divides any more runs into one another.

Not shaken are the lanes of one warp against each other (``__syncwarp``), barriers of cooperative groups, of
``cuda::barrier`` and of inline PTX (``bar.sync``, ``mbarrier``), and blocks against each other, beyond what
follows from their warps. A kernel that has only those is held up where it begins.
"""

from __future__ import annotations

import re

HOLD_CYCLES = 2048
"""The least that a warp is held up, if it is. Past a missing barrier a warp does what the one that is held up
has still to do, and mostly reads from memory in between: 600 to 1000 cycles, on a busy device more."""

MOST_HOLDS = 3
"""Nothing, once, twice or three times that: of two warps three quarters are held up unequally. Three times is
3.5 us at 1.75 GHz, also where a launch takes no longer than that."""

SHAKEN_NANOSECONDS = 20_000_000
"""For so long, from the first hold of a module that was loaded, warps are held up. A product of 4096^3 in
tiles of 16 has 65,536 blocks with 512 barriers each and would take a quarter of a second; the thousands of
blocks that begin in this time show as well what is missing, and no kernel, however many barriers it comes by,
takes much longer than this and its own time."""

_SHARES = re.compile(r"\b__(?:shared__|syncthreads)")
"""What a source has in which one thread waits for another, or should."""

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
    """Whether a barrier may be missing: there is one, or shared memory that may want one."""
    return _SHARES.search(source) is not None


def shaken(source: str, name: str) -> str:
    """The source whose warps are held up. Lines keep their numbers in ``name``."""
    held_from_the_start = _KERNEL.sub(lambda head: f"{head.group()} autotune_hold();", source)
    return f'{PRELUDE}#line 1 "{name}"\n{held_from_the_start}'


__all__ = ["PRELUDE", "shaken", "shares_between_threads"]
