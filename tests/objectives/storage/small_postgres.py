"""A small load on PostgreSQL, and why there may be no server for it here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, Infeasible
from autotune.provenance.device import device_facts
from autotune.space.spec import PythonObjective
from tests.objectives.beside import importable
from tests.objectives.storage.small import STORAGE

SMALL = {
    "scale": 1,
    "sales": 3000,
    "clients": 3,
    "transactions": 60,
    "reads": 30,
    "reports": 10,
    "analyses": 10,
}


def why_no_server() -> str:
    """Why PostgreSQL cannot run here; empty where it can."""
    importable(STORAGE)
    from postgres_programs import find_programs, server_account

    try:
        find_programs()
        server_account()
    except Infeasible as why:
        return str(why)
    return ""


@contextmanager
def small_postgres(cache: Path, kept: Path, folder: Path = STORAGE, **workload: Any) -> Iterator[Any]:
    """The objective, without a server in the end. What is filled lies in ``kept``."""
    importable(folder)
    spec = PythonObjective("postgres_store.py:PostgresStore", folder)
    context = Context({**SMALL, **workload}, device_facts(), cache, compiled=kept)
    store: Any = load_objective(spec, context)
    try:
        yield store
    finally:
        store.tidy()
