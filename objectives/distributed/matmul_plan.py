"""How a product of N x N matrices is shared out on four processes, and in which order each gets what. Pure.

Each process holds a quarter of A, of B and of the product, as whole rows (``1d``) or as a square block of a
grid of 2 x 2. What it lacks comes in panels, ``panel`` columns of A and rows of B at a time:

* ``1d``: everybody needs all of B, and no part of A but its own. All begin at the first row.
* ``summa``: needs A's of its row of the grid and B's of its column; all go through the same panels at the
  same time (van de Geijn and Watts, SUMMA, 1997).
* ``cannon``: the same, but each process begins elsewhere, so that no two need the same panel at once (Cannon,
  A Cellular Computer to Implement the Kalman Filter Algorithm, 1969).
"""

from __future__ import annotations

from dataclasses import dataclass

WORLD = 4
LAYOUTS = ("1d", "summa", "cannon")


@dataclass(frozen=True)
class Plan:
    """One configuration."""

    layout: str = "summa"
    panel: int = 64
    prefetch: int = 0
    """Panels that are asked for ahead of the one in use; 0: transfers and products take turns."""


@dataclass(frozen=True)
class Block:
    """Rows and columns of a matrix, from and up to."""

    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def elements(self) -> int:
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])


@dataclass(frozen=True)
class Need:
    """A panel of the inner dimension, and which ranks have its part of A and of B."""

    inner: tuple[int, int]
    owners: tuple[int, int]


def block_of(plan: Plan, rank: int, n: int) -> Block:
    """What a rank holds of A, of B and of the product: of each the same."""
    if plan.layout == "1d":
        return Block((rank * n // WORLD, (rank + 1) * n // WORLD), (0, n))
    row, column = divmod(rank, 2)
    return Block((row * n // 2, (row + 1) * n // 2), (column * n // 2, (column + 1) * n // 2))


def needs(plan: Plan, rank: int, n: int) -> list[Need]:
    """The panels in the order in which a rank multiplies them."""
    parts = WORLD if plan.layout == "1d" else 2
    row, column = divmod(rank, 2)
    first = (row + column) % 2 if plan.layout == "cannon" else 0
    found = []
    for step in range(parts):
        part = (first + step) % parts
        begin, end = part * n // parts, (part + 1) * n // parts
        owners = (rank, part) if plan.layout == "1d" else (2 * row + part, 2 * part + column)
        for low in range(begin, end, plan.panel):
            found.append(Need((low, min(low + plan.panel, end)), owners))
    return found
