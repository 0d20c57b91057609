"""Reports of running trials: kept in order, found by study and by trial."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from autotune.errors import InputError, StoreError
from autotune.measure.outcome import Report
from autotune.store.statements import reports
from autotune.store.store import Store
from tests.store.build import bench

Open = Callable[[str], Store]


def test_reports_are_kept_in_order(url: str, open_store: Open) -> None:
    store = open_store(url)
    study = bench(store)
    first, second = study.trial(1), study.trial(2)
    store.report(first.id, [Report(1, {"loss": 0.5, "rate": 3.0}, 0.25), Report(2, {"loss": math.nan}, 0.5)])
    store.report(second.id, [Report(1, {"loss": 0.75}, 0.25)])
    store.report(first.id, [])
    kept = store.reports(study.study.id)
    assert [(r.number, r.report.step) for r in kept] == [
        (first.number, 1),
        (first.number, 2),
        (second.number, 1),
    ]
    assert kept[0].report == Report(1, {"loss": 0.5, "rate": 3.0}, 0.25)
    assert math.isnan(kept[1].report.metrics["loss"])
    assert store.reports(study.study.id, after=kept[1].id) == kept[2:]
    assert store.reports_of(first.id) == kept[:2]
    assert store.integrity() == []


def test_other_studies_are_not_mixed_in(url: str, open_store: Open) -> None:
    store = open_store(url)
    one, other = bench(store), bench(store)
    store.report(one.trial(1).id, [Report(1, {"loss": 1.0})])
    assert store.reports(other.study.id) == []


def test_a_reader_who_goes_on_from_the_last_one_misses_none(shared_url: str, open_store: Open) -> None:
    if not shared_url.startswith("postgresql"):
        pytest.skip("a writer is alone")
    slow, quick, reader = (open_store(shared_url) for _ in range(3))
    study = bench(slow)
    first, second = study.trial(1), study.trial(2)
    with ThreadPoolExecutor(1) as threads:
        with slow._database.write() as connection:
            reports.add(connection, first.id, [Report(1, {"loss": 0.5})])
            later = threads.submit(quick.report, second.id, [Report(1, {"loss": 0.75})])
            while not (_waits(reader) or later.done()):
                pass
            seen = reader.reports(study.study.id)
        later.result()
    seen += reader.reports(study.study.id, after=seen[-1].id if seen else 0)
    assert [report.number for report in seen] == [first.number, second.number]


def _waits(store: Store) -> bool:
    with store._database.read() as connection:
        return bool(connection.scalar(sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")))


def test_a_report_of_no_trial_is_refused(url: str, open_store: Open) -> None:
    store = open_store(url)
    with pytest.raises((StoreError, InputError)):
        store.report(12345, [Report(1, {"loss": 1.0})])
    assert bench(store).trial(1).number == 0
