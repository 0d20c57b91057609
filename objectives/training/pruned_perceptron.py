"""A perceptron that has learned scikit-learn's digits, and the same with most of its weights left out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from training_data import Arrays, Part
from training_models import perceptron

HIDDEN = 2
"""Layers; a third one has the logits."""
RATE, BATCH = 1e-3, 64
"""Of Adam."""
RECIPE = f"Adam at {RATE} for {BATCH}"
"""What a trained one is kept under: by another it becomes another."""


def trained(part: Part, width: int, epochs: int, seed: int) -> Arrays:
    """The dense perceptron, as ``weight0``, ``bias0`` and so on, after so many epochs of ``part``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = perceptron(width, HIDDEN)
    _learn(network, part, epochs, seed, [])
    return _weights_of(network)


def pruned(dense: Arrays, densities: Sequence[float], part: Part, epochs: int, seed: int) -> Arrays:
    """Of each layer the weights of the largest magnitude, as many as its density says, and those trained
    further for ``epochs``."""
    network = network_of(dense)
    masks = [_largest(layer.weight, share) for layer, share in zip(linears(network), densities, strict=True)]
    _keep(network, masks)
    _learn(network, part, epochs, seed, masks)
    return _weights_of(network)


def network_of(weights: Arrays) -> nn.Module:
    """The perceptron with these weights."""
    network = perceptron(len(weights["bias0"]), HIDDEN)
    with torch.no_grad():
        for number, layer in enumerate(linears(network)):
            layer.weight.copy_(torch.tensor(weights[f"weight{number}"]))
            layer.bias.copy_(torch.tensor(weights[f"bias{number}"]))
    return network


def linears(network: nn.Module) -> list[nn.Linear]:
    return [part for part in network.modules() if isinstance(part, nn.Linear)]


def kept(size: int, density: float) -> int:
    """How many of so many weights are kept."""
    return max(1, round(density * size))


def _weights_of(network: nn.Module) -> Arrays:
    found: Arrays = {}
    for number, layer in enumerate(linears(network)):
        found[f"weight{number}"] = layer.weight.detach().numpy().copy()
        found[f"bias{number}"] = layer.bias.detach().numpy().copy()
    return found


def _largest(weight: Tensor, density: float) -> Tensor:
    mask = torch.zeros(weight.numel())
    mask[weight.detach().abs().flatten().topk(kept(weight.numel(), density)).indices] = 1
    return mask.view_as(weight)


def _keep(network: nn.Module, masks: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for layer, mask in zip(linears(network), masks, strict=False):
            layer.weight.mul_(mask)


def _learn(network: nn.Module, part: Part, epochs: int, seed: int, masks: Sequence[Tensor]) -> None:
    """Where there are masks, weights outside them stay 0."""
    inputs, targets = (torch.tensor(array) for array in (part.inputs, part.targets))
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(part), generator=order).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs[batch]), targets[batch]).backward()
            optimiser.step()
            _keep(network, masks)
