"""What a search uses unless it is told otherwise."""

from __future__ import annotations

from typing import ClassVar

from autotune.search.strategies.structured import Structured


class Auto(Structured):
    """:class:`~autotune.search.strategies.bayes.Bayes`, which measured best over the recorded spaces.

    ``benchmarks/results/search_efficiency.md`` has the evidence. Where its model fails, or nothing has
    succeeded yet, it draws at random. Where an assignment is most of what there is to choose it is
    :class:`~autotune.search.strategies.structured.Structured`, by
    ``benchmarks/results/constrained_spaces.md``.
    """

    name: ClassVar[str] = "auto"
