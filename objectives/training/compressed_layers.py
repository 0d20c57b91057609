"""Layers of a perceptron as they are kept and computed: dense, in three types of numbers, or sparse rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Layer:
    """From inputs of shape (n, before) to (n, after); and the bytes of what it keeps."""

    run: Callable[[Tensor], Tensor]
    bytes: int


@dataclass(frozen=True)
class Compressed:
    """A perceptron of such layers."""

    layers: Sequence[Layer]

    def __call__(self, x: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            x = torch.relu(layer.run(x))
        return last.run(x).float()

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)


def layer_of(linear: nn.Linear, layout: str, numbers: str) -> Layer:
    """``linear`` in a layout (``dense`` or ``csr``); ``numbers`` are those of a dense one."""
    with torch.no_grad():
        if layout == "csr":
            return _sparse(linear.weight, linear.bias)
        return _int8(linear) if numbers == "int8" else _dense(linear, TYPES[numbers])


def _dense(linear: nn.Linear, numbers: torch.dtype) -> Layer:
    weight, bias = linear.weight.to(numbers), linear.bias.to(numbers)
    return Layer(lambda x: nn.functional.linear(x.to(numbers), weight, bias), _bytes(weight, bias))


def _int8(linear: nn.Linear) -> Layer:
    """A scale for each output; inputs are rounded as they come, by a scale of their own."""
    from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is to move to another package
        made = quantize_dynamic(nn.Sequential(linear), {nn.Linear: per_channel_dynamic_qconfig})[0]
    weight = made.weight()
    scales, zeros = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
    size = _bytes(weight.int_repr(), scales, zeros, made.bias())
    return Layer(lambda x: made(x.float()), size)


def _sparse(weight: Tensor, bias: Tensor) -> Layer:
    """What is not 0, row by row, in float32 with indices of 32 bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse rows are called a beta
        long = weight.to_sparse_csr()
        rows, columns, values = long.crow_indices().int(), long.col_indices().int(), long.values()
        matrix = torch.sparse_csr_tensor(rows, columns, values, size=weight.shape)
    bias = bias.detach()

    def run(x: Tensor) -> Tensor:
        x = x.float()
        if len(x) == 1:  # a product with a vector takes a third of the time of one with a matrix
            return (torch.mv(matrix, x[0]) + bias)[None]
        return (matrix @ x.t()).t() + bias

    return Layer(run, _bytes(rows, columns, values, bias))


def _bytes(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
