"""A study exported, verified and imported, as a user does it."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from autotune.cli.derive import command as derive
from autotune.cli.export import command as export
from autotune.cli.import_ import command as import_
from autotune.cli.show import command as show
from autotune.cli.verify import command as verify
from autotune.errors import InputError, OutputError
from tests.cli.calling import call, document


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(folder / "study.db", tmp_path / "study.db"))


def test_a_study_goes_into_an_archive_and_out_of_it(store: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "small.zip", tmp_path / "target.db"
    written = document(export, "--to", file, "--store", store)
    assert written["format"] == "archive" and "written down in" in written["recorded"]
    whole = document(verify, file, "--store", store)
    assert whole["whole"] and whole["vouched"] and whole["digest"] == written["digest"]
    brought = document(import_, file, "--store", target)
    assert brought["new"] and brought["study"] == "small#1"
    assert not document(import_, file, "--store", target)["new"]
    shown = document(show, "--study", "small", "--store", store)
    assert written["trials"] == brought["trials"] == shown["trials"], (
        "a trial is one of the search everywhere"
    )
    assert written["repeats"] == brought["repeats"] > 0
    rows = document(export, "--readings", "--to", tmp_path / "rows.csv", "--store", store)
    assert (rows["trials"], rows["repeats"]) == (shown["trials"] - len(shown["failed"]), written["repeats"])
    before, after = (document(show, "--study", "small", "--store", s) for s in (store, target))
    assert before | {"store": ""} == after | {"store": ""}
    followed = document(derive, "--store", target)
    assert followed["follows"] and followed["compared"] == 12
    again = document(export, "--to", tmp_path / "again.zip", "--store", target)
    assert again["digest"] == written["digest"]
    assert "already, and it is the same" in call(import_, file, "--store", target).stdout


def test_an_altered_archive_is_said_to_be_so(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "small.zip"
    digest = document(export, "--to", file, "--store", store)["digest"]
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    name = "studies/0/trials.jsonl"
    members[name] = members[name].replace(b'"status":"ok"', b'"status":"wrong"', 1)
    with zipfile.ZipFile(file, "w") as opened:
        for other, content in members.items():
            opened.writestr(other, content)
    done = call(verify, file, "--store", store, "--digest", digest)
    assert done.return_value == 4
    assert f"altered    {name}, line 1 (trial 0): altered or added" in done.stdout
    assert isinstance(call(import_, file, "--store", tmp_path / "target.db").exception, InputError)
    assert not (tmp_path / "target.db").exists()


def test_what_is_asked_wrongly_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"PK no archive")
    for verb in (verify, import_):
        error = call(verb, tmp_path / "no.zip", "--store", store).exception
        assert isinstance(error, InputError) and "cannot be read as a ZIP file" in str(error)
    assert isinstance(call(verify, "small", "--digest", "00", "--store", store).exception, InputError)
    error = call(verify, tmp_path / "no.zip", "--digest", "2e24", "--store", store).exception
    assert isinstance(error, InputError) and "expected: 64 hexadecimal digits" in str(error)
    assert isinstance(call(verify, "small", "--study", "small", "--store", store).exception, InputError)
    call(export, "--to", tmp_path / "a.zip", "--store", store)
    assert isinstance(call(import_, tmp_path / "a.zip", "-o", "x.yaml").exception, InputError)
    away = call(export, "--to", tmp_path / "no.zip" / "a.zip", "--store", store).exception
    assert isinstance(away, OutputError) and "cannot write" in str(away)


def test_every_reading_is_a_row(store: Path, tmp_path: Path) -> None:
    document(export, "--to", tmp_path / "r.json", "--readings", "--store", store)
    rows = json.loads((tmp_path / "r.json").read_text())
    assert {"study", "trial", "purpose", "seq", "metric", "value", "discarded"} <= set(rows[0])
    assert {row["purpose"] for row in rows} == {"search", "final", "default"}
    refused = call(export, "--to", tmp_path / "r.zip", "--readings", "--store", store).exception
    assert isinstance(refused, InputError)
