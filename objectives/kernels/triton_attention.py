"""``triton-attention``: softmax(Q K' / sqrt(d)) V without ever writing the scores, in Triton.

The forward pass of T. Dao, *FlashAttention-2*, arXiv:2307.08691: a program has one block of queries, goes
over the keys, and keeps each query's maximum, its sum of exponentials and the output so far.

Workload: ``batch``, ``heads``, ``length`` (of queries), ``keys`` (default: as many), ``head_dim`` (any
positive integers), ``causal`` (query i sees keys up to i; needs as many keys as queries), ``dtype``
(``float16``, ``bfloat16``, ``float32``), ``precision`` of float32 (``tf32`` or ``ieee``).
The oracle is the definition in float64. The mean of many values is small: each output is held against
the size that such a mean has by chance, or keys that are left out of a long row would be lost in the rounding
of a short one. Vendor baselines: torch's scaled dot product attention, and cuDNN's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from triton_compile import Launch
from triton_objective import PRECISIONS, Shape, TritonObjective, float_type

from autotune.measure.gpu.tensors import tensor_error
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

TOLERANCES: Mapping[str, float] = {"float16": 2e-3, "bfloat16": 1e-2, "tf32": 1e-2, "ieee": 1e-5}
"""Tensor cores cut the factors off to tf32, which is up to twice what rounding them would be."""

CUDNN = "cudnn"
"""The name of a baseline."""


@triton.jit
def attend(
    k, v, queries, top, total, result, begin, end, keys, row, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
    WIDEN: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Add the keys from ``begin`` to ``end``; where not MASKED, all exist and every query sees them.

    FAR: the last key of a head is 2^31 elements from the first, or more.
    """
    lanes = tl.arange(0, BLOCK_N)
    if FAR:
        lanes = lanes.to(tl.int64)
    dims = tl.arange(0, BLOCK_D)
    offsets = (begin + lanes)[:, None] * D + dims[None, :]
    for start in tl.range(begin, end, BLOCK_N, num_stages=STAGES):
        key = start + lanes
        if MASKED:
            inside = (key < keys)[:, None] & (dims < D)[None, :]
        else:
            inside = (dims < D)[None, :]
        k_values = tl.load(k + offsets, mask=inside, other=0.0)
        if WIDEN:
            k_values = k_values.to(tl.float32)
        scores = tl.dot(queries, tl.trans(k_values), input_precision=PRECISION) * scale
        if MASKED:
            scores = tl.where((key < keys)[None, :], scores, float("-inf"))
            if CAUSAL:
                scores = tl.where(key[None, :] <= row[:, None], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp2(top - higher)
        powers = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(powers, 1)
        v_values = tl.load(v + offsets, mask=inside, other=0.0)
        powers = powers.to(v_values.dtype)
        if WIDEN:
            powers = powers.to(tl.float32)
            v_values = v_values.to(tl.float32)
        result = tl.dot(powers, v_values, result * shrink[:, None], input_precision=PRECISION)
        top = higher
        offsets += BLOCK_N * D
    return top, total, result


@triton.jit
def attention(
    q, k, v, o, length, keys, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr, SPLIT: tl.constexpr, REVERSED: tl.constexpr, STAGES: tl.constexpr,
    PRECISION: tl.constexpr, WIDEN: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head. SPLIT: blocks of keys that need no mask have a loop of their own;
    REVERSED: the last queries, which see the most keys, come first."""
    tiles = tl.cdiv(length, BLOCK_M)
    tile = tl.program_id(0) % tiles
    if REVERSED:
        tile = tiles - 1 - tile
    head = (tl.program_id(0) // tiles).to(tl.int64)  # a grid's second side ends at 65,535
    q += head * length * D
    o += head * length * D
    k += head * keys * D
    v += head * keys * D

    row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    inside = (row < length)[:, None] & (dims < D)[None, :]
    offsets = row.to(tl.int64)[:, None] * D + dims[None, :]
    queries = tl.load(q + offsets, mask=inside, other=0.0)
    if WIDEN:
        queries = queries.to(tl.float32)

    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    result = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    if CAUSAL:
        end = min(keys, (tile + 1) * BLOCK_M)
        whole = min(keys, tile * BLOCK_M + 1) // BLOCK_N * BLOCK_N  # all rows see the keys before that
    else:
        end = keys
        whole = keys // BLOCK_N * BLOCK_N
    first = 0
    if SPLIT:
        top, total, result = attend(
            k, v, queries, top, total, result, 0, whole, keys, row, scale,
            D, BLOCK_N, BLOCK_D, False, CAUSAL, STAGES, PRECISION, WIDEN, FAR,
        )  # fmt: skip
        first = whole
    top, total, result = attend(
        k, v, queries, top, total, result, first, end, keys, row, scale,
        D, BLOCK_N, BLOCK_D, True, CAUSAL, STAGES, PRECISION, WIDEN, FAR,
    )  # fmt: skip
    tl.store(o + offsets, (result / total[:, None]).to(o.dtype.element_ty), mask=inside)


class Attention(TritonObjective):
    """o = attention of q to k and v. Metrics: ``time`` in seconds, ``error`` over the largest entry of o.

    For ``error`` each entry is taken over the root of the sum of the squares of its row's weights: by so much
    it deviates from zero, since v is standard normal.
    """

    sizes = ("batch", "heads", "length", "keys", "head_dim")
    workload_facts = (*TritonObjective.device_facts, *sizes, "causal", "dtype", "precision")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.batch, self.heads, self.length, self.head_dim = (
            context.size(name) for name in ("batch", "heads", "length", "head_dim")
        )
        self.keys = context.size("keys", self.length)
        self.causal = context.flag("causal")
        if self.causal and self.keys != self.length:
            raise Infeasible(f"causal needs as many keys as queries, not {self.keys} and {self.length}")
        self.dtype = float_type(context)
        self.precision = context.choice("precision", PRECISIONS, default="tf32")
        self.arithmetic = (
            self.precision if self.dtype is torch.float32 else str(self.dtype).removeprefix("torch.")
        )
        self.tolerance = TOLERANCES[self.arithmetic]

    def inputs(self) -> Mapping[str, Shape]:
        of_keys = ((self.batch, self.heads, self.keys, self.head_dim), self.dtype)
        return {"q": self.outputs()["o"], "k": of_keys, "v": of_keys}

    def outputs(self) -> Mapping[str, Shape]:
        return {"o": ((self.batch, self.heads, self.length, self.head_dim), self.dtype)}

    def reference(self, inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """The definition, a head at a time: the scores of all of them would not fit; and each row's size."""
        q, k, v = (inputs[name].double().flatten(0, 1) for name in "qkv")
        o, size = torch.empty_like(q), torch.empty_like(q[..., :1])
        unseen = torch.ones(self.length, self.keys, dtype=torch.bool, device=q.device).triu(1)
        for head in range(q.shape[0]):
            scores = q[head] @ k[head].T / math.sqrt(self.head_dim)
            if self.causal:
                scores.masked_fill_(unseen, -math.inf)
            weights = torch.softmax(scores, dim=1)
            o[head], size[head] = weights @ v[head], weights.norm(dim=1, keepdim=True)
        shape = (self.batch, self.heads, self.length, -1)
        return {"o": o.view(shape), "size": size.view(shape)}

    def _error(self, name: str, answer: torch.Tensor, expected: Mapping[str, torch.Tensor]) -> float:
        size = expected["size"].to(answer.device)
        in_sizes = {name: expected[name].to(answer.device) / size}
        allowed = self._allowed(name, self.arithmetic, in_sizes)
        return tensor_error("o over its size", answer.double() / size, in_sizes[name], allowed)

    def work(self) -> Work:
        """The two products; exponentials are few beside them."""
        pairs = self.length * (self.length + 1) // 2 if self.causal else self.length * self.keys
        heads = self.batch * self.heads
        moved = 2 * heads * (self.length + self.keys) * self.head_dim * self.dtype.itemsize
        arithmetic = "float32" if self.arithmetic == "ieee" else self.arithmetic
        return Work(moved, 4 * heads * pairs * self.head_dim, arithmetic)

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        block_m, block_n = int(configuration["block_m"]), int(configuration["block_n"])
        # 16 is the least that a tensor core multiplies.
        block_d = max(16, triton.next_power_of_2(self.head_dim))
        stages = int(configuration["stages"])
        return (
            Launch(
                attention,
                (triton.cdiv(self.length, block_m) * self.batch * self.heads,),
                {
                    "q": "q", "k": "k", "v": "v", "o": "o", "length": self.length, "keys": self.keys,
                    "scale": math.log2(math.e) / math.sqrt(self.head_dim),
                },
                {
                    "D": self.head_dim, "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_D": block_d,
                    "CAUSAL": self.causal, "SPLIT": bool(configuration["split"]),
                    "REVERSED": bool(configuration["reversed"]), "STAGES": stages,
                    "PRECISION": self.precision, "WIDEN": self.widens(self.dtype),
                    "FAR": self.keys * self.head_dim >= 2**31,
                },
                warps=int(configuration["warps"]),
                stages=stages,
            ),
        )  # fmt: skip

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """On a GPU cuDNN's as well: torch may have it, be slower with what it chooses, and not say so."""
        found = super().baselines()
        if self.device.type != "cuda" or self.dtype is torch.float32:
            return found
        return (*found, Baseline(CUDNN, "torch's scaled dot product attention, by cuDNN alone"))

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        return LibraryCall(_by_cudnn) if baseline.name == CUDNN else super().load_baseline(baseline)

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's scaled dot product attention, which chooses among its own kernels."""
        return torch.nn.functional.scaled_dot_product_attention(
            inputs["q"], inputs["k"], inputs["v"], is_causal=self.causal
        )


def _by_cudnn(attention: Attention, inputs: Mapping[str, torch.Tensor], outputs: Any) -> torch.Tensor:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        found: torch.Tensor = attention.library(inputs)
    return found
