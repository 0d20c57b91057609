"""Statements on asks: what a strategy knew when it proposed. Each runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from autotune.store.records import NO_ROOM, AskRecord, NewAsk, Place, TrialRecord
from autotune.store.schema import asks
from autotune.store.statements.prepared import Direct, Prepared

_INSERT = Prepared(sa.insert(asks), columns=[c.name for c in asks.c if c is not asks.c.id])


def add(
    direct: Direct, place: Place, ask: NewAsk, written: Sequence[TrialRecord | None], proposals: int
) -> None:
    """Keep an ask beside the trials that came of it; for the last of its ``proposals`` there was no room."""
    numbers = [None if trial is None else trial.number for trial in written]
    numbers += [NO_ROOM] * (proposals - len(written))
    row = {**vars(ask), "study_id": place.study, "session_id": place.session, "trials": numbers}
    _INSERT.run(direct, row)


def list_asks(connection: sa.Connection, study_id: int, number: int | None = None) -> list[AskRecord]:
    """In the order in which they were written: all, or only those that had this ``number``."""
    columns = [asks.c[name] for name in AskRecord.__dataclass_fields__]
    wanted = [asks.c.study_id == study_id] + ([] if number is None else [asks.c.number == number])
    rows = connection.execute(sa.select(*columns).where(*wanted).order_by(asks.c.id))
    return [AskRecord(**{**row._mapping, "trials": tuple(row.trials)}) for row in rows]
