"""What a search uses unless it is told otherwise."""

from __future__ import annotations

from typing import ClassVar

from autotune.search.bayes import Bayes


class Auto(Bayes):
    """:class:`~autotune.search.bayes.Bayes`, which measured best over the recorded spaces.

    ``benchmarks/results/search_efficiency.md`` has the evidence. Where its model fails, or nothing has
    succeeded yet, it draws at random.
    """

    name: ClassVar[str] = "auto"
