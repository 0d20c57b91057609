"""How far trials of one configuration differ on a GPU, and how far they say that they may.

    python -m benchmarks.gpu_repeat --seconds 60 --out results/h100/repeat.md

Three products of ``triton-gemm`` are taken through whole trials in turn, check included, as a search does and
without what makes up for the power that was drawn. ``differ by`` is the standard deviation between the trials
of a product, ``claimed`` the mean of the error that a trial states. Where the second is far below the first,
a search takes luck for merit. Ends with 2 where there is no GPU.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from autotune.measure.gpu import power_limit
from autotune.measure.gpu.prospects import prospects
from autotune.measure.outcome import Estimate
from autotune.space.configuration import Value
from benchmarks.gpu_products import is_missing, products
from benchmarks.gpu_search import device_line, facts, seconds_text
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish

_BASE: Mapping[str, Value] = {"block_m": 128, "block_n": 256, "group": 8, "split_k": 1, "warps": 8}
PRODUCTS: Mapping[str, Mapping[str, Value]] = {
    "wide, by descriptors": {**_BASE, "block_k": 64, "stages": 3, "loads": "descriptors", "programs": 1},
    "wide": {**_BASE, "block_k": 32, "stages": 4},
    "the default": {},
}

WAYS: Mapping[str, Mapping[str, float]] = {"as in a search": {}, "as it was read": {"EXPONENT": 0.0}}
"""By what is otherwise in :mod:`autotune.measure.gpu.power_limit`."""

SWINGING_SECONDS = 10.0
"""For so long a device that comes to its limit of power from rest swings about it, by 8 % either way at first
(H100): trials until then are not counted."""


@dataclass(frozen=True)
class Repeat:
    """One trial of one product."""

    product: str
    way: str
    known: Estimate
    took: float
    """Seconds, the preparation left out."""


def main() -> int:
    parser = Options(__file__, __doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.read()
    if is_missing(prospects()):
        return 2
    rows = table(list(repeats(options.seconds)))
    publish(page("How far trials differ on a GPU", options.command, device_line(), rows), options.out)
    return 0


def repeats(seconds: float) -> Iterator[Repeat]:
    """Trials in turn, for about so many seconds once the device no longer swings."""
    with products(facts(), final=False) as here:
        built = {name: here.prepare(name, knobs) for name, knobs in PRODUCTS.items()}
        made = {name: one[1] for name, one in built.items() if one is not None}
        counted = time.monotonic() + SWINGING_SECONDS
        until = counted + seconds
        for seed in itertools.count():
            for (way, otherwise), (product, prepared) in itertools.product(WAYS.items(), made.items()):
                if time.monotonic() > until:
                    return
                with _changed(otherwise):
                    began = time.monotonic()
                    outcome = here.runner.measure(lambda prepared=prepared: prepared, seed)  # type: ignore[misc]
                if began < counted:
                    continue
                if "time" in outcome.metrics:
                    yield Repeat(product, way, outcome.metrics["time"], time.monotonic() - began)
                else:
                    print(f"{product}: {outcome.status}: {outcome.message}", file=sys.stderr)


@contextmanager
def _changed(constants: Mapping[str, float]) -> Iterator[None]:
    before = {name: getattr(power_limit, name) for name in constants}
    vars(power_limit).update(constants)
    try:
        yield
    finally:
        vars(power_limit).update(before)


def table(done: Sequence[Repeat]) -> list[str]:
    """A row for each product and way."""
    lines = head("product | way | trials | median | differ by | claimed | readings a trial | seconds a trial")
    for product, way in itertools.product(PRODUCTS, WAYS):
        own = [one for one in done if (one.product, one.way) == (product, way)]
        if len(own) < 2:
            lines.append(f"| {product} | {way} | {len(own)}, which is too few | - | - | - | - | - |")
            continue
        times = np.log([one.known.value for one in own])
        claimed = fmean(one.known.error / one.known.value for one in own)
        lines.append(
            f"| {product} | {way} | {len(own)} | {seconds_text(float(np.exp(np.median(times))))}"
            f" | {times.std(ddof=1):.2%} | {claimed:.2%} | {fmean(one.known.n for one in own):.1f}"
            f" | {fmean(one.took for one in own):.2f} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
