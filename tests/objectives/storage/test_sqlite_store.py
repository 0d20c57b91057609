"""sqlite-store keeps what it has acknowledged, whatever the configuration, and catches what does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.objective import WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.beside import importable, planted
from tests.objectives.ready import SPACES
from tests.objectives.storage.small import SMALL, STORAGE, on_disk, small_store

SPEC = read_spec(SPACES / "sqlite-store.yaml", device={})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with on_disk(tmp_path) as folder:
        yield folder


def test_the_default_of_the_space_is_that_of_sqlite() -> None:
    import sqlite3

    importable(STORAGE)
    from sqlite_table import DEFAULT

    assert {**DEFAULT, **SPEC.space.default()} == DEFAULT
    assert set(DEFAULT) == {knob.name for knob in SPEC.space.knobs}
    pragmas = {"page_size": "page_size", "journal": "journal_mode", "checkpoint": "wal_autocheckpoint"}
    with closing(sqlite3.connect("")) as plain, plain:
        for knob, pragma in pragmas.items():
            found = plain.execute(f"PRAGMA {pragma}").fetchone()[0]
            assert found == DEFAULT[knob], "or this SQLite was built with other defaults"


@pytest.mark.parametrize("seed", range(4))
def test_every_configuration_is_right(disk: Path, seed: int) -> None:
    store = small_store(disk)
    for number, configuration in enumerate(SPEC.space.sample(np.random.default_rng(seed), 2)):
        loaded = store.load(configuration)
        found = store.measure(loaded, np.random.default_rng(number))
        assert found.values["rate"] > 0 and found.values["write_p95"] > 0 and found.values["space"] > 0.3
        assert found.facts["transactions"] == SMALL["transactions"]
        assert store.check(loaded, np.random.default_rng(number)) == {}, "after it was measured"
    assert len(list(disk.iterdir())) == 1, "of earlier configurations nothing is left"


def test_its_baselines_are_right(disk: Path) -> None:
    store = small_store(disk)
    for baseline in store.baselines():
        loaded = store.load_baseline(baseline)
        assert store.check(loaded, np.random.default_rng(0)) == {}
        assert loaded.table.setting("journal_mode") == "wal"


def test_knobs_are_what_sqlite_has(disk: Path) -> None:
    store = small_store(disk)
    knobs = {"page_size": 8192, "journal": "wal", "checkpoint": 30, "cache_kib": 500, "mmap_mib": 16}
    table = store.load({**knobs, "clustered": True, "compress": 6}).table
    pragmas = {"page_size": 8192, "journal_mode": "wal", "wal_autocheckpoint": 30, "cache_size": -500}
    assert {name: table.setting(name) for name in pragmas} == pragmas
    assert table.setting("mmap_size") == 16 << 20 and table.setting("synchronous") == 3
    for clustered, indices in ((True, 0), (False, 1)):
        table = store.load({"clustered": clustered}).table
        found = table._database.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND rootpage"
        )
        without = "WITHOUT ROWID" in table._database.execute("SELECT sql FROM sqlite_master").fetchone()[0]
        assert without == clustered and (clustered or found.fetchone()[0] == indices)


def test_what_is_put_off_is_paid_in_the_reading(disk: Path) -> None:
    store = small_store(disk)
    late = store.load({"journal": "wal", "checkpoint": 10_000})
    found = store.measure(late, np.random.default_rng(0))
    assert found.values["space"] > 2, "the log counts while it is there"
    shutil.copy(late.file, disk / "alone")
    from sqlite_table import Table

    with closing(Table(disk / "alone", WAL)) as alone:
        assert alone.all() == late.table.all(), "and it was brought into the database"


def test_values_that_compress_take_less(disk: Path) -> None:
    store = small_store(disk, rows=2000, value_bytes=400)
    space = {}
    for level in (0, 6):
        loaded = store.load({"compress": level})
        space[level] = store.measure(loaded, np.random.default_rng(0)).values["space"]
    assert 0.5 < space[6] / space[0] < 0.9, "half of them, to a part"


TABLE = "sqlite_table.py"
SYNCHRONOUS = '_set("synchronous", EXTRA)'
BEGIN, COMMIT = 'self._database.execute("BEGIN IMMEDIATE")', 'self._database.execute("COMMIT")'
FOUND = "None if found is None else self._unpack(found[0])"
PAGES, THROWN_AWAY = 'self._set("page_size"', 'Path(f"{file}-wal").unlink(True); '
WAL = {"journal": "wal"}


@dataclass(frozen=True)
class Fault:
    says: str
    changes: tuple[tuple[str, str], ...] = ()
    """Texts of the table, and what is planted in their places."""
    knobs: Mapping[str, str] = field(default_factory=dict)


FAULTS = {
    "nothing is synchronised": Fault("is not EXTRA", ((SYNCHRONOUS, '_set("synchronous", 0)'),)),
    "only checkpoints are": Fault("is not EXTRA", ((SYNCHRONOUS, '_set("synchronous", 1)'),), WAL),
    "the journal is in memory": Fault("memory, of memory that was .* not durable", (), {"journal": "memory"}),
    "there is no journal": Fault("off, of off that was .* not durable", (), {"journal": "off"}),
    "several transactions are committed at once": Fault(
        "SIGKILL|than was written, after|only in memory",
        (
            (BEGIN, f"self._database.in_transaction or {BEGIN}"),
            (COMMIT, f"self._database.total_changes % 4 or {COMMIT}"),
        ),
    ),
    "each row is a transaction": Fault("SIGKILL", ((f"   {BEGIN}", "   0"), (f"   {COMMIT}", "   0"))),
    "the log is thrown away": Fault("SIGKILL", ((PAGES, THROWN_AWAY + PAGES),), WAL),
    "values lose their ends": Fault("than was written", (("_pack(value)))", "_pack(value[:-1])))"),)),
    "values are kept stale": Fault(
        "a read at user",
        ((f"return {FOUND}", f"return vars(self).setdefault('seen', {{}}).setdefault(key, {FOUND})"),),
    ),
    "a missing key has the value of the next": Fault(
        "a read at user", (("FROM kv WHERE key = ?", "FROM kv WHERE key >= ? ORDER BY key"),)
    ),
    "a scan ends early": Fault("a scan at user", (("(key, count))]", "(key, count - 1))]"),)),
    "a row that moves stays": Fault("a read|a scan|the table", (("if removed is not None:", "if not key:"),)),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_always_caught(disk: Path, fault: str) -> None:
    store = small_store(disk, planted(STORAGE, TABLE, FAULTS[fault].changes, disk))
    for seed in range(2):
        with pytest.raises(WrongAnswer, match=FAULTS[fault].says):
            store.check(store.load(FAULTS[fault].knobs), np.random.default_rng(seed))


def test_what_lies_that_it_is_on_the_disk_is_caught(disk: Path) -> None:
    told = 'return self._database.execute(f"PRAGMA {pragma}").fetchone()[0]'
    lie = (told, f"return 3 if pragma == 'synchronous' else {told.removeprefix('return ')}")
    changes = ((SYNCHRONOUS, '_set("synchronous", 0)'), lie)
    store = small_store(disk, planted(STORAGE, TABLE, changes, disk))
    from files_of_kernel import cached

    if cached(Path(__file__)) is None:
        pytest.skip("this kernel does not say what of a file is on the disk")
    for journal in ("truncate", "wal"):
        with pytest.raises(WrongAnswer, match="while it was only in memory"):
            store.check(store.load({"journal": journal}), np.random.default_rng(0))


def test_a_wrong_answer_to_a_reading_is_caught_too(disk: Path) -> None:
    store = small_store(disk)
    loaded = store.load({})
    for pair in range(SMALL["rows"]):
        loaded.contents.transaction([pair], np.random.default_rng(pair))  # and the table knows nothing of it
    with pytest.raises(WrongAnswer, match="was answered with something else"):
        store.measure(loaded, np.random.default_rng(0))


def test_a_writer_that_cannot_write_says_why(tmp_path: Path) -> None:
    importable(STORAGE)
    from key_values import Contents
    from sqlite_killed import killed_while_writing

    rng = np.random.default_rng(0)
    transaction = Contents(9, 50, 1).transaction([0, 1], rng)
    with pytest.raises(RuntimeError, match=r"ended by itself: sqlite3\.OperationalError: unable to open"):
        killed_while_writing(tmp_path / "missing" / "kv", {}, [transaction], rng)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder that lies in memory")
def test_a_disk_in_memory_is_none() -> None:
    importable(STORAGE)
    from files_of_kernel import IN_MEMORY, file_system

    if file_system(Path("/dev/shm")) not in IN_MEMORY:
        pytest.skip("/dev/shm lies on a disk")
    with pytest.raises(InputError, match="tmpfs, where nothing reaches a disk; set TMPDIR"):
        small_store(Path("/dev/shm"))


@pytest.mark.parametrize(("fact", "value"), [("rows", 0), ("skew", 0), ("misses", -1), ("scan_rows", 1.5)])
def test_a_workload_that_means_nothing_is_refused(disk: Path, fact: str, value: float) -> None:
    with pytest.raises(InputError, match=f"refuses this workload: {fact} should be"):
        small_store(disk, **{fact: value})
