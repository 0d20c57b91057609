"""postgres-store keeps what it has acknowledged, whatever the configuration, and catches what does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.objective import Infeasible, WrongAnswer
from autotune.measure.ownership import is_abandoned, sweep_scratch
from autotune.measure.workers.descendants import runs
from autotune.provenance.device import device_facts
from autotune.space.reading.reader import read_spec
from tests.objectives.beside import changed, importable, planted
from tests.objectives.ready import SPACES
from tests.objectives.storage.small import STORAGE, on_disk
from tests.objectives.storage.small_postgres import small_postgres, why_no_server

SPEC = read_spec(SPACES / "postgres-store.yaml", device=device_facts())
WHY_NOT = why_no_server()
needs_server = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is filled once for all tests."""
    return tmp_path_factory.mktemp("filled")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with on_disk(tmp_path) as folder:
        yield folder


@pytest.fixture
def store(disk: Path, kept: Path) -> Iterator[Any]:
    with small_postgres(disk, kept) as made:
        yield made


# -- with a server ---------------------------------------------------------------------------------


@needs_server
def test_the_default_of_the_space_is_that_of_postgresql(store: Any) -> None:
    server = store.load({}).server
    from postgres_settings import SETTINGS, is_as_told, settings_of

    assert {knob.name for knob in SPEC.space.knobs} == set(SETTINGS)
    boot = dict(server.ask("SELECT name, boot_val FROM pg_settings"))
    told = settings_of({name: value for name, value in SPEC.space.default().items() if value is not None})
    built = {"shared_buffers", "wal_sync_method"}  # initdb and the system's own choice; else as it is built
    found = dict(server.ask("SELECT name, setting FROM pg_settings"))
    assert [
        name for name in told if not is_as_told(told[name], (found if name in built else boot)[name])
    ] == []


@needs_server
def test_every_configuration_is_right(store: Any) -> None:
    for number, configuration in enumerate(SPEC.space.sample(np.random.default_rng(0), 2)):
        loaded = store.load(configuration)
        found = store.measure(loaded, np.random.default_rng(number))
        assert found.values["rate"] > 0 and found.values["p95"] > 0 and found.values["wal"] > 100
        assert store.check(loaded, np.random.default_rng(number)) == {}, "after it was measured"
        assert store.measure(loaded, np.random.default_rng(number)).values["rate"] > 0, "after it was killed"
        before, standing, after = loaded.server.processes(), store.standing(), loaded.server.processes()
        lasting = before & after  # a worker that vacuums comes and goes
        assert lasting and lasting <= standing <= before | after
    home = loaded.server.home
    store.tidy()
    assert not home.exists() and store.standing() == frozenset()


@needs_server
def test_its_baseline_is_right_and_needs_no_network(store: Any) -> None:
    (baseline,) = store.baselines()
    loaded = store.load_baseline(baseline)
    assert store.check(loaded, np.random.default_rng(0)) == {}
    ((addresses,),) = loaded.server.ask("SHOW listen_addresses")
    assert addresses == ""
    assert (loaded.server.home / ".s.PGSQL.5432").is_socket()


@needs_server
def test_durability_is_no_knob(store: Any) -> None:
    loaded = store.load({"fsync": "off", "synchronous_commit": "off"})
    assert [row[0] for row in loaded.server.ask("SHOW fsync", "SHOW synchronous_commit")] == ["on", "on"]


@needs_server
def test_what_the_server_refuses_is_infeasible_in_its_words(store: Any) -> None:
    with pytest.raises(Infeasible, match='for parameter "shared_buffers"'):
        store.load({"shared_buffers_mib": 1 << 30})
    with pytest.raises(Infeasible, match='invalid value for parameter "wal_compression"'):
        store.load({"wal_compression": "most"})
    assert store.load({}).server.number("SELECT 1") == 1, "and the next one starts"


@needs_server
def test_readings_have_as_many_of_each_kind(store: Any) -> None:
    loaded, load = store.load({}), store.load_of_reading
    for seed in range(2):
        before = loaded.server.number("SELECT count(*) FROM pgbench_history")
        store.measure(loaded, np.random.default_rng(seed))
        assert loaded.server.number("SELECT count(*) FROM pgbench_history") == before + load.updates
    assert 0 < load.updates < load.count


LOAD, SERVER, CHECK, SALES = (
    "postgres_load.py",
    "postgres_server.py",
    "postgres_check.py",
    "postgres_sales.py",
)


@dataclass(frozen=True)
class Fault:
    says: str
    file: str
    changes: tuple[tuple[str, str], ...]
    knobs: Mapping[str, Any] = field(default_factory=dict)


GIVEN = "value in {**settings, **own}.items()"
RECOVERED = "        server.start(told)"
LOST = "UPDATE pgbench_{0} a SET {1}balance = {1}balance - delta FROM lost WHERE lost.{1}id = a.{1}id"
LOSES = f"""
        server.ask(
            "WITH lost AS (DELETE FROM pgbench_history WHERE filler = (SELECT max(filler) FROM"
            f" pgbench_history WHERE filler::bigint % 1000000000 = {{begin}} + 1) RETURNING *),"
            " a AS ({LOST.format("accounts", "a")}),"
            " t AS ({LOST.format("tellers", "t")})"
            " {LOST.format("branches", "b")}"
        )"""
TELLER = "tbalance = tbalance + :delta"
FAULTS = {
    "nothing is synchronised": Fault(
        "fsync is off", SERVER, ((GIVEN, GIVEN.replace("**own", "**own, 'fsync': 'off'")),)
    ),
    "commits do not wait": Fault(
        "synchronous_commit is off",
        SERVER,
        ((GIVEN, GIVEN.replace("**own", "**own, 'synchronous_commit': 'off'")),),
    ),
    "pages may be torn": Fault(
        "full_page_writes is off",
        SERVER,
        ((GIVEN, GIVEN.replace("**own", "**own, 'full_page_writes': 'off'")),),
    ),
    "settings are forgotten": Fault(
        "work_mem is 4096, of 64 that was asked",
        SERVER,
        ((GIVEN, "value in own.items()"),),
        {"work_mem_kib": 64},
    ),
    "the log is thrown away": Fault(
        "SIGKILL",
        SERVER,
        (
            (
                "            time.sleep(_NAP_SECONDS)\n        self._process = None",
                "            time.sleep(_NAP_SECONDS)\n        self._process = None\n"
                "        (self.data / 'postmaster.pid').unlink()\n"
                "        reset = ('-f', '-D', str(self.data))\n"
                "        self.programs.run('pg_resetwal', *reset, account=self.account)",
            ),
        ),
    ),
    "a transaction is lost": Fault(
        "SIGKILL .* of client", CHECK, ((RECOVERED, RECOVERED + LOSES),)
    ),
    "the tellers get something else": Fault("sums of the balances", LOAD, ((TELLER, f"{TELLER} + 1"),)),
    "each statement is a transaction": Fault(
        "SIGKILL|sums of the balances", LOAD, (('"BEGIN;",', '"",'), ('"END;",', '"",'))
    ),
    "the best are the worst": Fault("an analysis of day", SALES, (("ORDER BY 2 DESC, 1", "ORDER BY 2, 1"),)),
    "a region lacks a sale": Fault(
        "the sales of region", SALES, (("count(*), coalesce(sum(s", "count(*) - 1, coalesce(sum(s"),)
    ),
}  # fmt: skip


AT_ONCE = (
    "nothing is synchronised",
    "the log is thrown away",
    "a transaction is lost",
    "a region lacks a sale",
)
"""The others in their own time."""


@needs_server
@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.long) for name in FAULTS]
)
def test_what_is_wrong_is_caught(disk: Path, kept: Path, fault: str) -> None:
    wrong = FAULTS[fault]
    folder = planted(STORAGE, wrong.file, wrong.changes, disk)
    with (
        small_postgres(disk, kept, folder, clients=6) as store,
        pytest.raises(WrongAnswer, match=wrong.says),
    ):
        store.check(store.load(wrong.knobs), np.random.default_rng(0))


@needs_server
def test_what_lies_that_it_is_on_the_disk_is_caught(disk: Path, kept: Path) -> None:
    folder = planted(STORAGE, SERVER, ((GIVEN, GIVEN.replace("**own", "**own, 'fsync': 'off'")),), disk)
    changed(folder / CHECK, 'if found[name] != "on":', "if not found:")
    changed(folder / CHECK, "if not is_as_told(value, found[name]):", "if not found:")
    importable(STORAGE)
    from files_of_kernel import cached

    if cached(Path(__file__)) is None:
        pytest.skip("this kernel does not say what of a file is on the disk")
    with (
        small_postgres(disk, kept, folder) as store,
        pytest.raises(WrongAnswer, match="while its log was only in memory"),
    ):
        store.check(store.load({}), np.random.default_rng(0))


@needs_server
def test_a_wrong_sum_is_caught_in_a_reading_too(disk: Path, kept: Path) -> None:
    folder = planted(STORAGE, LOAD, ((TELLER, f"{TELLER} + 1"),), disk)
    with (
        small_postgres(disk, kept, folder) as store,
        pytest.raises(WrongAnswer, match=r"tellers .*, branches .*, history"),
    ):
        store.measure(store.load({}), np.random.default_rng(0))


LEFT_BEHIND = """
import sys
sys.path.insert(0, sys.argv[1])
from postgres_programs import find_programs
from postgres_server import Server
server = Server(find_programs())
server.initdb()
server.start({})
server.ask("SELECT 1")
print(server.home, *server.processes(), flush=True)
sys.stdin.read()
"""


@needs_server
def test_a_server_does_not_outlive_who_started_it() -> None:
    before = shared_memory()
    with subprocess.Popen(
        [sys.executable, "-c", LEFT_BEHIND, str(STORAGE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        home, *numbers = owner.stdout.readline().split()
        owner.kill()
    processes = [int(number) for number in numbers]
    assert len(processes) > 3
    while any(map(runs, processes)):
        time.sleep(0.01)
    assert is_abandoned(Path(home).name)
    sweep_scratch()
    assert not Path(home).exists()
    assert shared_memory() <= before, "or other servers have begun just then"


def shared_memory() -> set[str]:
    """What there is of all kinds of it that PostgreSQL uses, in our own namespace."""
    segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1] for line in segments} | set(os.listdir("/dev/shm"))  # noqa: PTH208


# -- without one -----------------------------------------------------------------------------------


def test_what_is_missing_is_said(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_POSTGRES", str(disk))
    with (
        pytest.raises(
            InputError, match=r"no PostgreSQL server in .*AUTOTUNE_POSTGRES.*apt install postgresql"
        ),
        small_postgres(disk, disk),
    ):
        pass


@needs_server
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder that lies in memory")
def test_a_disk_in_memory_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importable(STORAGE)
    from files_of_kernel import IN_MEMORY, file_system

    if file_system(Path("/dev/shm")) not in IN_MEMORY:
        pytest.skip("/dev/shm lies on a disk")
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    with (
        pytest.raises(InputError, match="tmpfs, where nothing reaches a disk; set TMPDIR"),
        small_postgres(tmp_path, tmp_path),
    ):
        pass


@needs_server
@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"scale": 0}, "scale should be"),
        ({"transactions": 61}, "a multiple of clients"),
        ({"reads": 90}, "are of 100 transactions, and 110 together"),
        ({"analyses": -1}, "analyses should be"),
    ],
)
def test_a_workload_that_means_nothing_is_refused(disk: Path, facts: Mapping[str, int], says: str) -> None:
    with (
        pytest.raises(InputError, match=f"refuses this workload: .*{says}"),
        small_postgres(disk, disk, **facts),
    ):
        pass


def test_advice_is_as_pgtune_has_it() -> None:
    importable(STORAGE)
    from postgres_settings import pgtune

    small = pgtune(16 << 30, 2)
    assert (small["shared_buffers"], small["effective_cache_size"]) == (524288, 1572864)  # 4 and 12 GiB
    assert (small["work_mem"], small["wal_buffers"]) == (19418, 2048)  # kB, and 16 MiB
    assert "max_parallel_workers" not in small
    large = pgtune(64 << 30, 16)
    assert large["max_parallel_workers_per_gather"] == 4 and large["max_worker_processes"] == 16
    assert pgtune(1 << 30, 2)["work_mem"] == 4096


def test_what_is_true_of_sales_does_not_follow_from_the_same_code() -> None:
    importable(STORAGE)
    from postgres_sales import Sales

    sales = Sales(50)
    rows = [(i, (h := i * 2654435761 % 4294967296) // 7 % 5, h // 3 % 360, h // 11 % 1000) for i in range(50)]
    own = [amount for _, customer, _, amount in rows if customer == 3]
    assert sales.customer_answer(3) == [[str(len(own)), str(sum(own))]]
    placed = sorted((amount, i) for i, _, day, amount in rows if 100 <= day < 220)
    ranked = sum(amount * (place % 7) for place, (amount, _) in enumerate(placed, 1))
    assert sales.analysis_answer(100)[-1] == [str(ranked), "300"]
    assert sum(int(row[1]) for row in sales.analysis_answer(100) if len(row) == 3) == len(placed)
