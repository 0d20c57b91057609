"""Statements on imported recipes. Each function runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from autotune.store.records import NewRecipe, RecipeRecord
from autotune.store.schema import recipes


def put(connection: sa.Connection, new: Iterable[NewRecipe], now: float) -> None:
    """Keep each, in the place of an earlier one of the same name, device and case."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE recipes IN SHARE ROW EXCLUSIVE MODE"))
    for recipe in new:
        c = recipes.c
        same = (c.name == recipe.name, c.device == recipe.device, c.case == recipe.case)
        connection.execute(sa.delete(recipes).where(*same))
        connection.execute(sa.insert(recipes).values(**vars(recipe), imported_at=now))


def list_recipes(connection: sa.Connection, name: str | None) -> list[RecipeRecord]:
    """Those of one name or all, the newest first."""
    query = sa.select(recipes).order_by(recipes.c.id.desc())
    if name is not None:
        query = query.where(recipes.c.name == name)
    return [RecipeRecord(**row._mapping) for row in connection.execute(query)]
