"""Old stores open, new ones are refused, foreign ones are left alone."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from autotune.errors import InputError, StoreError
from autotune.status import Status
from autotune.store.databases.address import read_address
from autotune.store.databases.connect import altering, make_engine
from autotune.store.databases.migrate import MIGRATIONS, is_current, upgrade, version_of
from autotune.store.schema import VERSION, VERSION_TABLE, metadata
from autotune.store.store import Store
from tests.store import postgres
from tests.store.build import bench, outcome

STORED = Path(__file__).parent / "data" / "0001.sql"


def restore(dump: Path, file: Path) -> Path:
    connection = sqlite3.connect(file)
    connection.executescript(dump.read_text())
    connection.close()
    return file


def set_version(file: Path, version: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (version,))
    connection.close()


def test_the_newest_migration_is_the_version_we_know() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [VERSION]


def test_migrations_make_the_tables_that_the_statements_use(url: str) -> None:
    with Store.open(url) as store, store._database._engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": lambda *types: _differ(types[3], types[4]),
                "include_object": lambda thing, name, kind, *_: (kind, name) != ("table", VERSION_TABLE),
            },
        )
        assert compare_metadata(context, metadata) == []


def test_a_new_database_is_what_the_migrations_make_to_the_letter(tmp_path: Path) -> None:
    copy = shutil.copytree(MIGRATIONS, tmp_path / "migrations")  # which are not the ones it may do without
    address = read_address(tmp_path / "migrated.db")
    engine = make_engine(address, readonly=False)
    with altering(engine) as connection:
        upgrade(connection, address, migrations=copy)
    engine.dispose()
    Store.open(tmp_path / "new.db").close()
    assert schema_of(tmp_path / "new.db") == schema_of(tmp_path / "migrated.db")
    assert version_in(tmp_path / "new.db") == version_in(tmp_path / "migrated.db") == VERSION


def test_a_new_database_is_made_without_alembic_or_what_postgresql_needs(tmp_path: Path) -> None:
    """Both are slow to load."""
    text = (
        f"import sys; from autotune.store.store import Store; Store.open({str(tmp_path / 'a.db')!r}).close()"
    )
    text += "; sys.exit(bool({'alembic', 'sqlalchemy.dialects.postgresql'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", text], check=True)


def schema_of(file: Path) -> dict[str, tuple[str, str, list[str]]]:
    """Of each table and index its kind, its table, and its SQL, however that is broken into lines."""
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
    connection.close()
    return {name: (kind, table, (sql or "").split()) for name, kind, table, sql in rows}


def _differ(inspected: sa.types.TypeEngine[object], ours: sa.types.TypeEngine[object]) -> bool:
    plain = ours.impl_instance if isinstance(ours, sa.types.TypeDecorator) else ours
    families = (sa.types.Text, sa.types.Float, sa.types.Boolean, sa.types.LargeBinary, sa.types.Integer)
    return not any(isinstance(inspected, f) and isinstance(plain, f) for f in families)


def test_a_stored_database_of_the_first_version_opens(tmp_path: Path) -> None:
    file = restore(STORED, tmp_path / "old.db")
    with Store.open(file) as store:
        study = store.study("gemm")
        trials = store.trials(study.id)
        assert [t.status for t in trials] == [Status.OK, Status.CRASHED, Status.WAITING]
        assert trials[0].configuration == {
            "tile": 1,
            "layout": "row",
            "order": ("i", "j"),
            "place": {"embed": 0},
        }
        assert trials[0].metrics["time"].value == 0.5
        assert store.readings(trials[0].id) == outcome().readings
        assert store.artifact(trials[1].artifacts["source"]) == b"int main(void) { return 0; }\n" * 20
        assert store.verdicts(study.id)[0].document == {"speedup": {"estimate": 1.25}}
        assert store.environment("environment0") == {"machine": {"cores": 2}}
        assert store.integrity() == []
        # ... and goes on.
        assert store.finish(trials[2].id, outcome()) == 2
    assert version_in(file) == VERSION


def test_an_old_database_keeps_every_row_and_what_it_refers_to(tmp_path: Path) -> None:
    file = restore(STORED, tmp_path / "old.db")
    before = rows_of(file)
    Store.open(file).close()
    after = rows_of(file)
    assert {name: after[name] for name in before if name != VERSION_TABLE} == {
        name: rows for name, rows in before.items() if name != VERSION_TABLE
    }
    with Store.open(file) as store:
        first = store.study("gemm")
        store.delete([first.id])
        assert store.integrity() == [] and store.studies() == []
        assert bench(store).study.id > first.id


def rows_of(file: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(file)
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    rows = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for (name,) in named}
    connection.close()
    return rows


def test_a_study_that_is_gone_from_an_old_database_keeps_its_number(tmp_path: Path) -> None:
    file = restore(STORED, tmp_path / "old.db")
    connection = sqlite3.connect(file)
    with connection:
        learned = '{"seed":0,"sources":[{"study":7,"trials":9},{"study":null,"trials":8}]}'
        connection.execute("UPDATE sessions SET settings = ?", (learned,))
    connection.close()
    with Store.open(file) as store:
        assert bench(store).study.id == 8


def test_what_has_rows_that_refer_to_it_is_upgraded_with_foreign_keys_enforced_again(tmp_path: Path) -> None:
    with Store.open(restore(STORED, tmp_path / "old.db")) as store, store._database.write() as connection:
        assert connection.scalar(sa.text("PRAGMA foreign_keys")) == 1
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(sa.text("DELETE FROM studies"))


def version_in(file: Path) -> str | None:
    engine = make_engine(read_address(file), readonly=True)
    with engine.connect() as connection:
        version = version_of(connection)
    engine.dispose()
    return version


LATER = f'''
import sqlalchemy as sa
from alembic import op

revision = "{int(VERSION) + 1:04}"
down_revision = "{VERSION}"


def upgrade() -> None:
    op.add_column("trials", sa.Column("energy", sa.Double))
    op.execute("INSERT INTO environments VALUES ('marker', '{{}}', 0)")
    FAIL
'''


def later_migrations(folder: Path, last_line: str) -> Path:
    """The migrations of an autotune yet to come."""
    copied = folder / "100% migrations"
    shutil.copytree(MIGRATIONS, copied)
    (copied / "versions" / "later.py").write_text(LATER.replace("FAIL", last_line))
    return copied


def test_an_older_database_is_brought_up_to_date(url: str, tmp_path: Path) -> None:
    if url == "sqlite://":
        pytest.skip("a store in memory is never older")
    with Store.open(url) as store:
        study = bench(store).study
    address = read_address(url)
    engine = make_engine(address, readonly=False)
    with altering(engine) as connection:
        upgrade(connection, address, migrations=later_migrations(tmp_path, "pass"))
    with engine.connect() as connection:
        assert version_of(connection) == f"{int(VERSION) + 1:04}"
        assert connection.scalar(sa.text("SELECT name FROM studies")) == study.name
        assert connection.execute(sa.text("SELECT energy FROM trials")).all() == []
    engine.dispose()


def test_a_migration_that_fails_changes_nothing(url: str, tmp_path: Path) -> None:
    if url == "sqlite://":
        pytest.skip("a store in memory is never older")
    with Store.open(url) as store:
        bench(store)
    address = read_address(url)
    engine = make_engine(address, readonly=False)
    migrations = later_migrations(tmp_path, "op.execute('INSERT INTO nowhere VALUES (1)')")
    with pytest.raises(sa.exc.DBAPIError), altering(engine) as connection:
        upgrade(connection, address, migrations=migrations)
    engine.dispose()
    with Store.open(url) as store, store._database._engine.connect() as connection:
        assert "energy" not in {c["name"] for c in sa.inspect(connection).get_columns("trials")}
        assert len(store.studies()) == 1


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    Store.open(file).close()
    set_version(file, "9000")
    before = file.read_bytes()
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"newer autotune \(schema 9000; this one knows"):
            Store.open(file, readonly=readonly)
    assert file.read_bytes() == before


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    connection = sqlite3.connect(file)
    connection.executescript("CREATE TABLE studies (id); CREATE TABLE alembic_version (version_num);")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"tables of another program \(alembic_version, studies\)"):
        Store.open(file)
    assert file.read_bytes() == before


def test_tables_that_another_process_makes_between_two_looks_are_no_other_programs(postgres_url: str) -> None:
    """Two machines begin a study at once: one had ended with the other's tables, "of another program"."""
    address = read_address(postgres.emptied(postgres_url))
    engine = make_engine(address, readonly=False)
    looks: list[str] = []

    def make_meanwhile(*event: Any) -> None:
        looks.append(event[2])
        if len(looks) == 2:  # after the version, before the names of the tables
            Store.open(postgres_url).close()

    with engine.connect() as connection:
        sa.event.listen(connection, "before_cursor_execute", make_meanwhile)
        assert is_current(connection, address)
    engine.dispose()
    assert len(looks) > 2


def test_an_empty_file_becomes_a_store_but_not_by_a_reader(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    with pytest.raises(InputError, match=r"there is nothing in the store .*empty.db yet"):
        Store.open(file, readonly=True)
    assert [(one.name, one.stat().st_size) for one in tmp_path.iterdir()] == [("empty.db", 0)]
    Store.open(file).close()
    with Store.open(file, readonly=True) as store:
        assert store.studies() == []


def test_an_empty_database_is_left_empty_by_a_reader(url: str) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match=r"there is no store at|is in memory|there is nothing in"):
            Store.open(url, readonly=True)


def test_threads_make_stores_of_their_own_at_once(tmp_path: Path) -> None:
    together = Barrier(4)

    def make(number: int) -> int:
        together.wait()
        with Store.open(tmp_path / f"{number}.db") as store:
            return len(store.studies())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(make, range(4))) == [0, 0, 0, 0]


@pytest.mark.parametrize("readonly", [False, True])
def test_alembic_is_not_loaded_when_there_is_nothing_to_do(tmp_path: Path, readonly: bool) -> None:
    file = tmp_path / "a.db"
    Store.open(file).close()
    program = (
        "import sys; from autotune.store.store import Store;"
        f"Store.open({str(file)!r}, readonly={readonly}).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
