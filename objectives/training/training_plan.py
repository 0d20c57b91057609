"""How a model is trained: what the knobs of the training spaces mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from training_schedule import COUPLINGS, SCHEDULES, coupled

CHOICES: Mapping[str, Collection[str]] = {
    "schedule": SCHEDULES,
    "coupling": tuple(COUPLINGS),
    "optimiser": ("sgd", "adamw"),
    "dtype": ("float32", "bfloat16", "float16"),
    "scaling": ("dynamic", "static"),
}


@dataclass(frozen=True)
class Plan:
    """One way to train. A knob that does not exist in a configuration has the value that stands here."""

    rate: float = 1e-3
    """The peak learning rate, of a batch of 64 samples where it is coupled to the batch."""
    warmup: float = 0.0
    """The fraction of all updates in which the rate rises."""
    schedule: str = "constant"
    coupling: str = "none"
    optimiser: str = "adamw"
    """``sgd`` or ``adamw``."""
    momentum: float = 0.9
    """Of SGD; of AdamW the first beta."""
    nesterov: bool = False
    beta2: float = 0.999
    weight_decay: float = 0.0
    """Decoupled from the gradient for AdamW, an L2 penalty for SGD."""
    clip: float = 0.0
    """The largest norm of a gradient; 0: it is not clipped."""
    batch: int = 64
    """Samples that go through the model at once (the micro-batch)."""
    accumulate: int = 1
    """So many of them make one update."""
    dtype: str = "float32"
    """What the model computes in: ``float32``, ``bfloat16`` or ``float16``."""
    masters: bool = False
    """Below float32: hold the weights in ``dtype`` too, and update a float32 copy of them (P. Micikevicius et
    al., *Mixed Precision Training*, ICLR 2018, section 3.1); else the weights are float32, and cast where
    they are used."""
    scaling: str = "dynamic"
    """Of float16's loss (section 3.2 there): ``dynamic``, or ``static`` by ``loss_scale``."""
    loss_scale: float = 2.0**12
    recompute: bool = False
    """Keep only what goes into each block, and compute the rest again in the backward pass (T. Chen et al.,
    *Training Deep Nets with Sublinear Memory Cost*, arXiv:1604.06174)."""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"there is no {name} {getattr(self, name)!r}; there are {', '.join(choices)}"
                )

    @classmethod
    def of(cls, knobs: Mapping[str, Any]) -> Plan:
        """The plan of a configuration; knobs that are no part of a plan are somebody else's."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in knobs.items() if name in known})

    @property
    def samples(self) -> int:
        """Samples of one update."""
        return self.batch * self.accumulate

    @property
    def peak(self) -> float:
        """The peak rate of its own batch."""
        return coupled(self.rate, self.samples, self.coupling)
