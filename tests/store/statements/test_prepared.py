"""Statements that go past SQLAlchemy do what they do through it, on every backend there is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.schema import readings, studies
from autotune.store.statements.prepared import Prepared
from autotune.store.store import Store
from tests.store.build import bench

READING = {
    "trial_id": 1,
    "seq": 0,
    "metric": "a\0b",
    "value": math.nan,
    "at": 0.5,
    "discarded": "",
    "context": {"mhz": 2900},
}
INSERT = Prepared(sa.insert(readings), columns=list(READING))


def kept(store: Store) -> list[dict[str, Any]]:
    with store._database.read() as connection:
        return [dict(row._mapping) for row in connection.execute(sa.select(readings)).all()]


def test_values_are_encoded_as_their_columns_ask(store: Store) -> None:
    bench(store).trial(1)
    with store._database.write_directly() as direct:
        assert INSERT.run(direct, READING) == 1
    [row] = kept(store)
    assert math.isnan(row.pop("value"))
    assert row == {k: v for k, v in READING.items() if k != "value"} | {"metric": "a␀b"}


def test_one_for_each(store: Store) -> None:
    bench(store).trial(1)
    with store._database.write_directly() as direct:
        INSERT.run_for_each(direct, (READING | {"seq": seq} for seq in range(5)))
    assert [row["seq"] for row in kept(store)] == list(range(5))


def test_values_that_the_statement_brings_itself(store: Store) -> None:
    b = bench(store)
    count_up = Prepared(
        sa.update(studies)
        .where(studies.c.id == sa.bindparam("study"))
        .values(next_number=studies.c.next_number + 3)
        .returning(studies.c.next_number, studies.c.name)
    )
    with store._database.write_directly() as direct:
        assert count_up.rows(direct, {"study": b.study.id}) == [(3, "gemm")]
        assert count_up.row(direct, {"study": b.study.id}) == (6, "gemm")
        assert count_up.row(direct, {"study": 99}) is None


def test_a_refusal_is_explained_and_leaves_no_trace(store: Store) -> None:
    bench(store).trial(1)
    calls = (
        lambda c: INSERT.run(c, READING | {"trial_id": 99}),
        lambda c: INSERT.run_for_each(c, [READING | {"trial_id": 99}]),
        lambda c: Prepared(sa.insert(readings).returning(readings.c.seq), columns=list(READING)).rows(
            c, READING | {"trial_id": 99}
        ),
    )
    for call in calls:
        with pytest.raises(StoreError, match="does not hold"), store._database.write_directly() as direct:
            INSERT.run(direct, READING)
            call(direct)
        assert kept(store) == []


def test_a_list_of_values_is_refused() -> None:
    """It would be written into the text of the statement, which is compiled only once."""
    from sqlalchemy.dialects import sqlite

    listed = Prepared(sa.select(studies.c.id).where(studies.c.id.in_([1, 2])))
    with pytest.raises(AssertionError):
        listed._for(sqlite.dialect())
