"""What a search uses unless it is told otherwise."""

from __future__ import annotations

from typing import ClassVar

from autotune.search.strategies.structured import Structured


class Auto(Structured):
    """What did best in the benchmarks.

    That is :class:`~autotune.search.strategies.bayes.Bayes` over the recorded spaces
    (``benchmarks/results/search_efficiency.md``), and
    :class:`~autotune.search.strategies.structured.Structured` where an assignment is most of what there is to
    choose (``benchmarks/results/constrained_spaces.md``). The latter is the former in all other spaces, so
    that nothing is added to it here.
    """

    name: ClassVar[str] = "auto"
