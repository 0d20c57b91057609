"""``sqlite-store``: keys and values in SQLite, through Python's own ``sqlite3``.

A reading is a mix of reads, reads of keys that are not there, scans and transactions, in random order, on a
table whose rows came in random order. Afterwards each answer is compared with what is true. What a
write-ahead log puts off is paid within the reading: it ends with a checkpoint.

The problem says how many rows are written together, and that what was acknowledged survives a loss of power;
no configuration can weaken that. The check kills a process that writes, by SIGKILL, in the midst of its
transactions, and reads every key again: each transaction that was acknowledged is there whole, and of the
one after it all or nothing. That takes no power away, so the kernel is asked as well whether anything of an
acknowledged transaction is only in memory. The page cache of the system holds all of the data (``resident``).

Workload: ``rows``, ``value_bytes`` (mean), ``skew`` (above 0; of Zipf's law), and of a reading ``reads``,
``misses``, ``scans`` of ``scan_rows`` each, and ``transactions`` of ``transaction_rows`` each.

Metrics: ``rate`` (operations a second; a transaction is one), ``write_p95`` (s, of a transaction; the fact
``write_p99`` is that of all readings of a trial), ``space`` (bytes of all files for a byte of keys and
values), ``written`` (bytes handed to the kernel for a byte that was to be written). Beside each reading
stands ``sync``, what it took just then to bring a page to the disk: on a busy machine a tick of the
scheduler, twenty times what it takes on an idle one. Baselines: what is recommended, and the same with the
rows in the order of their keys.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from files_of_kernel import IN_MEMORY, cached, file_system, sync_seconds, written_bytes
from key_values import Contents, Mix, Operation, Read, Scan, Transaction, Write
from sqlite_killed import killed_while_writing
from sqlite_table import DURABLE, EXTRA, Table

from autotune.measure.clocks import perf_counter
from autotune.measure.objective import Baseline, Context, Infeasible, Objective, WrongAnswer
from autotune.measure.readings import Sample

ROUNDS = 3
"""In which a process that writes is killed."""
KILLED_TRANSACTIONS = 12
"""That such a process would write, at most."""
CHECKED = 8
"""Of the operations of a reading, one in so many is done for the check, and one of each kind at least."""

RECOMMENDED: Mapping[str, Any] = {"journal": "wal", "cache_kib": 65536, "mmap_mib": 256}
"""What most advice on SQLite comes to, but for ``synchronous = NORMAL``: that is not durable."""


class Stored:
    """A table on the disk, and what is true of it."""

    def __init__(self, folder: Path, knobs: Mapping[str, Any], contents: Contents) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=folder)
        self.file, self.knobs, self.contents = Path(self._folder.name) / "kv.sqlite", knobs, contents
        unfilled = Table(self.file, knobs)
        unfilled.fill(contents.row(int(pair)) for pair in np.random.default_rng(0).permutation(contents.rows))
        unfilled.close()
        with self.file.open("rb") as made:
            os.fsync(made.fileno())
        self.table = Table(self.file, knobs)
        self.latencies: list[float] = []
        """Of the transactions of all readings."""

    def reopen(self) -> None:
        self.table.close()
        self.table = Table(self.file, self.knobs)

    def unwritten(self) -> int | None:
        """Pages of it that are not on the disk."""
        found = [cached(path) for path in self.table.files()]
        return None if None in found else sum(each.unwritten for each in found if each)

    def remove(self) -> None:
        self.table.close()
        self._folder.cleanup()


class SqliteStore(Objective):
    workload_facts = (
        *("rows", "value_bytes", "skew", "reads", "misses", "scans", "scan_rows"),
        *("transactions", "transaction_rows"),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rows, self.value_bytes = context.size("rows"), context.size("value_bytes")
        self.skew = context.amount("skew")
        kinds = (context.size(name, least=0) for name in ("reads", "misses", "scans"))
        sizes = (context.size(name) for name in ("scan_rows", "transactions", "transaction_rows"))
        self.mix = Mix(*kinds, *sizes)
        self._file_system = file_system(context.cache)
        if self._file_system in IN_MEMORY:
            raise Infeasible(
                f"{context.cache} is on a {self._file_system}, where nothing reaches a disk; set TMPDIR to a"
                " folder on one (TMPDIR=/var/tmp)"
            )
        self._stored: Stored | None = None

    def load(self, prepared: Mapping[str, Any]) -> Stored:
        if self._stored is not None:
            self._stored.remove()
        contents = Contents(self.rows, self.value_bytes, self.skew)
        self._stored = Stored(self.context.cache, prepared, contents)
        return self._stored

    def measure(self, loaded: Stored, rng: np.random.Generator) -> Sample:
        operations = loaded.contents.operations(self.mix, rng)
        answers, ends = [], [0.0] * (len(operations) + 1)
        table, before = loaded.table, written_bytes()
        ends[0] = perf_counter()
        for number, operation in enumerate(operations, 1):
            answers.append(_answer(table, operation))
            ends[number] = perf_counter()
        files = sum(path.stat().st_size for path in table.files())
        began = perf_counter()
        table.checkpoint()
        seconds = ends[-1] - ends[0] + perf_counter() - began
        after = written_bytes()
        _compare(operations, answers)
        writes = [operation for operation in operations if isinstance(operation, Write)]
        latencies = np.diff(ends)[[isinstance(operation, Write) for operation in operations]]
        loaded.latencies.extend(latencies)
        values = {
            "rate": len(operations) / seconds,
            "write_p95": float(np.percentile(latencies, 95)),
            "space": files / loaded.contents.bytes,
        }
        if before is not None and after is not None:
            asked = sum(len(change.key) + len(change.value) for write in writes for change in write.changes)
            values["written"] = (after - before) / asked
        return Sample(values, {"sync": sync_seconds(loaded.file.parent)}, facts=self._facts(loaded))

    def _facts(self, loaded: Stored) -> dict[str, object]:
        """Where it lies, how much of it the page cache holds, and the slowest transactions."""
        size, held = loaded.file.stat().st_size, cached(loaded.file)
        facts = {
            "file_system": self._file_system,
            "sqlite": sqlite3.sqlite_version,
            "database_bytes": size,
            "write_p99": float(np.percentile(loaded.latencies, 99)),
            "transactions": len(loaded.latencies),
        }
        if held is not None:
            facts["resident"] = round(min(1.0, held.held * os.sysconf("SC_PAGESIZE") / size), 3)
        return facts

    # -- the check -----------------------------------------------------------------------------

    def check(self, loaded: Stored, rng: np.random.Generator) -> Mapping[str, float]:
        self._check_settings(loaded)
        self._check_operations(loaded, rng)
        for _ in range(ROUNDS):
            self._check_killed(loaded, rng)
        return {}

    def _check_settings(self, loaded: Stored) -> None:
        """It is as durable as it has to be, and as it was asked to be."""
        asked, journal = loaded.table.knobs["journal"], loaded.table.setting("journal_mode")
        if journal != asked or journal not in DURABLE:
            raise WrongAnswer(f"the journal is {journal}, of {asked} that was asked for: not durable")
        if loaded.table.setting("synchronous") != EXTRA:
            raise WrongAnswer("what is acknowledged may not be on the disk: synchronous is not EXTRA")

    def _check_operations(self, loaded: Stored, rng: np.random.Generator) -> None:
        """Some of each kind are answered as they should be; what they write is on the disk at once."""
        counts = (self.mix.reads, self.mix.misses, self.mix.scans)
        few = [-(-count // CHECKED) for count in counts]
        mix = Mix(*few, self.mix.scan_rows, -(-self.mix.transactions // CHECKED), self.mix.rows)
        operations = loaded.contents.operations(mix, rng)
        for operation in operations:
            if isinstance(operation, Write):
                self._check_write(loaded, operation)
            else:
                _compare([operation], [_answer(loaded.table, operation)])
        loaded.table.checkpoint()
        loaded.reopen()
        if loaded.table.all() != list(loaded.contents.all()):
            raise WrongAnswer(
                "the table holds something else than was written, after it was closed and opened again"
            )

    def _check_write(self, loaded: Stored, write: Write) -> None:
        """Keys that were read before and are written now are read as they are, and are on the disk."""
        now: dict[bytes, bytes | None] = {}
        for change in write.changes:
            now |= {change.removed: None} if change.removed is not None else {}
            now[change.key] = change.value
        for key in now:
            loaded.table.read(key)
        loaded.table.write(write.changes)
        if loaded.unwritten():
            raise WrongAnswer("a transaction was acknowledged while it was only in memory")
        _compare([Read(key, value) for key, value in now.items()], [loaded.table.read(key) for key in now])

    def _check_killed(self, loaded: Stored, rng: np.random.Generator) -> None:
        """A process that writes is killed. What it had acknowledged is there, and nothing in part."""
        contents = loaded.contents
        states, transactions = [contents.saved()], list[Transaction]()
        for _ in range(KILLED_TRANSACTIONS):
            transactions.append(contents.transaction(contents.draw(rng, self.mix.rows), rng))
            states.append(contents.saved())
        loaded.table.close()
        done = killed_while_writing(loaded.file, loaded.knobs, transactions, rng)
        loaded.table = Table(loaded.file, loaded.knobs)
        found = loaded.table.all()
        for state in states[done : done + 2]:
            contents.restore(state)
            if found == list(contents.all()):
                break
        else:
            raise WrongAnswer(
                f"after SIGKILL the table is neither as its {done} acknowledged transactions have left it,"
                " nor as the next one would have"
            )
        if fault := loaded.table.fault():
            raise WrongAnswer(f"after SIGKILL the database is damaged: {fault}")

    # -- baselines -----------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (
            Baseline("recommended", "a write-ahead log, a cache of 64 MiB, 256 MiB mapped"),
            Baseline(
                "recommended-clustered", "the same, with rows in the order of their keys (WITHOUT ROWID)"
            ),
        )

    def load_baseline(self, baseline: Baseline) -> Stored:
        return self.load({**RECOMMENDED, "clustered": baseline.name == "recommended-clustered"})


def _answer(table: Table, operation: Operation) -> object:
    match operation:
        case Read(key=key):
            return table.read(key)
        case Scan(key=key, expected=rows):
            return table.scan(key, len(rows))
        case Write(changes=changes):
            return table.write(changes)


def _compare(operations: Sequence[Operation], answers: Sequence[object]) -> None:
    for operation, answer in zip(operations, answers, strict=True):
        if answer != operation.expected:
            kind = type(operation).__name__.lower()
            where = "" if isinstance(operation, Write) else f" at {operation.key.decode()}"
            raise WrongAnswer(f"a {kind}{where} was answered with something else than was written")
