"""Sales and who bought: tables whose rows follow from their numbers, so that what a query gives is known.

Row ``i`` has the fields of ``hash(i)``, in SQL and in numpy alike, exact in 64-bit integers. So rows lie in
no order of any field, and a query that wants some of them reads pages from all over the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

DAYS, WINDOW = 360, 120
"""Of the sales, and of those that a query is about."""
REGIONS = 64
CUSTOMER_SALES = 10
"""Of a customer, in the mean."""
BEST = 5

_HASH = "((i * 2654435761) % 4294967296)"
_NOTE_BYTES = 300

Answer = list[list[str]]


@dataclass(frozen=True)
class Sales:
    """``rows`` of them."""

    rows: int

    @property
    def customers(self) -> int:
        return max(1, self.rows // CUSTOMER_SALES)

    def fill(self) -> Sequence[str]:
        """The statements that make the tables and their indices."""
        return (
            "CREATE TABLE customers (id int PRIMARY KEY, region int NOT NULL)",
            f"INSERT INTO customers SELECT i, {_HASH} % {REGIONS} FROM generate_series(0::bigint,"
            f" {self.customers - 1}) AS i",
            "CREATE TABLE sales (id int PRIMARY KEY, customer int NOT NULL, day int NOT NULL,"
            " amount int NOT NULL, note text NOT NULL)",
            f"INSERT INTO sales SELECT i, ({_HASH} / 7) % {self.customers}, ({_HASH} / 3) % {DAYS},"
            f" ({_HASH} / 11) % 1000, repeat('n', {_NOTE_BYTES})"
            f" FROM generate_series(0::bigint, {self.rows - 1}) AS i",
            "CREATE INDEX ON customers (region)",
            "CREATE INDEX ON sales (customer)",
            "CREATE INDEX ON sales (day)",
        )

    # -- queries, with parameters as pgbench writes them -----------------------------------------

    of_a_customer = "SELECT count(*), coalesce(sum(amount), 0) FROM sales WHERE customer = :customer"
    of_a_region = (
        "SELECT count(*), coalesce(sum(s.amount), 0) FROM customers c JOIN sales s ON s.customer = c.id"
        " WHERE c.region = :region"
    )
    regions = (
        "SELECT c.region, count(*), sum(s.amount) FROM sales s JOIN customers c ON c.id = s.customer"
        f" WHERE s.day >= :day AND s.day < :day + {WINDOW} GROUP BY c.region ORDER BY c.region"
    )
    best = (
        "SELECT customer, sum(amount) FROM sales GROUP BY customer HAVING min(day) <> :day"
        f" ORDER BY 2 DESC, 1 LIMIT {BEST}"
    )
    ranked = (
        "SELECT sum(amount * (place % 7)), max(length(note)) FROM (SELECT amount, note, row_number() OVER"
        f" (ORDER BY amount, id) AS place FROM sales WHERE day >= :day AND day < :day + {WINDOW}) AS placed"
    )
    analysis = (regions, best, ranked)
    """What an analysis asks, one after the other."""

    # -- what is true ----------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], ...]:
        numbers = np.arange(self.rows, dtype=np.int64)
        mixed = _hash(numbers)
        return (mixed // 7) % self.customers, (mixed // 3) % DAYS, (mixed // 11) % 1000

    def _in(self, day: int) -> NDArray[np.bool_]:
        days = self._columns[1]
        return (days >= day) & (days < day + WINDOW)

    def customer_answer(self, customer: int) -> Answer:
        customers, _, amounts = self._columns
        own = amounts[customers == customer]
        return _rows([(len(own), own.sum())])

    def region_answer(self, region: int) -> Answer:
        customers, _, amounts = self._columns
        own = amounts[_regions(customers) == region]
        return _rows([(len(own), own.sum())])

    def analysis_answer(self, day: int) -> Answer:
        """The rows of all queries of an analysis."""
        return self._regions_answer(day) + self._best_answer(day) + self._ranked_answer(day)

    def _regions_answer(self, day: int) -> Answer:
        customers, _, amounts = self._columns
        inside = self._in(day)
        region = _regions(customers[inside])
        counts = np.bincount(region, minlength=REGIONS)
        sums = np.bincount(region, amounts[inside], REGIONS).astype(np.int64)
        return _rows((each, counts[each], sums[each]) for each in range(REGIONS) if counts[each])

    def _best_answer(self, day: int) -> Answer:
        customers, days, amounts = self._columns
        sums = np.bincount(customers, amounts, self.customers).astype(np.int64)
        first = np.full(self.customers, DAYS)
        np.minimum.at(first, customers, days)
        there = (np.bincount(customers, minlength=self.customers) > 0) & (first != day)
        order = np.lexsort((np.arange(self.customers), -sums))
        return _rows((each, sums[each]) for each in order[there[order]][:BEST])

    def _ranked_answer(self, day: int) -> Answer:
        inside = np.flatnonzero(self._in(day))
        amounts = self._columns[2][inside]
        ordered = amounts[np.lexsort((inside, amounts))]
        total = (ordered * (np.arange(1, len(ordered) + 1) % 7)).sum()
        return [[str(total), str(_NOTE_BYTES)]] if len(inside) else [["", ""]]


def _hash(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return (numbers * 2654435761) % 4294967296


def _regions(customers: NDArray[np.int64]) -> NDArray[np.int64]:
    return _hash(customers) % REGIONS


def _rows(found: Iterable[Sequence[object]]) -> Answer:
    return [[str(value) for value in row] for row in found]
