"""Archives that mean harm: nothing is written, and a sentence says why."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.interop.archives.format import ENVIRONMENTS, MANIFEST, is_member_name
from autotune.interop.archives.importing import import_archive
from autotune.interop.archives.zipped import Archive, Limits
from autotune.store.store import Store
from tests.interop.archives.cases import READINGS, TRIALS, edited, hashed_again, members_of, put


def refused(file: Path, tmp_path: Path) -> str:
    """What importing and verifying say; nothing may have been written."""
    target = tmp_path / "target.db"
    with pytest.raises(InputError) as caught:
        import_archive(file, str(target))
    assert not target.exists() or Store.open(target).studies() == []
    return str(caught.value)


BAD_NAMES = [
    "../../evil",
    "/etc/passwd",
    "studies/../../evil",
    "C:\\evil",
    "a\\b",
    ".hidden",
    "a//b",
    "a/./b",
    "a\nb",
    "a" * 300,
    "ünicode",
    "studies/",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_elsewhere_are_refused(archive: Path, tmp_path: Path, name: str) -> None:
    members = members_of(archive) | {name: b"evil"}
    said = refused(put(tmp_path / "evil.zip", hashed_again(members)), tmp_path)
    assert "a name that it must not have" in said and len(said) < 500
    assert not (tmp_path / "evil").exists() and not (tmp_path.parent / "evil").exists()


@given(st.text(max_size=20))
def test_a_name_that_is_taken_stays_below_its_folder(name: str) -> None:
    if is_member_name(name):
        assert (Path("/a/b") / name).resolve().is_relative_to("/a/b")


def test_links_are_refused(archive: Path, tmp_path: Path) -> None:
    file = put(tmp_path / "link.zip", members_of(archive))
    with zipfile.ZipFile(file, "a") as opened:
        info = zipfile.ZipInfo("studies/0/link")
        info.external_attr = 0o120777 << 16
        opened.writestr(info, "/etc/passwd")
    assert "is a link" in refused(file, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(archive: Path, tmp_path: Path) -> None:
    file = put(tmp_path / "twice.zip", members_of(archive))
    with zipfile.ZipFile(file, "a") as opened:
        opened.writestr(TRIALS, b"{}\n")
    assert "is there twice" in refused(file, tmp_path)


def test_a_bomb_is_refused_before_it_is_unpacked(archive: Path, tmp_path: Path) -> None:
    file = put(tmp_path / "bomb.zip", members_of(archive))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as opened, opened.open("files/bomb", "w") as stream:
        for _ in range(300):
            stream.write(bytes(1 << 20))
    assert "no study is so repetitive" in refused(file, tmp_path)
    with pytest.raises(InputError, match="are the most"):
        Archive(file, Limits(total=1000))
    with pytest.raises(InputError, match="are the most"):
        Archive(file, Limits(members=3))
    with pytest.raises(InputError, match="unpacks to"):
        Archive(file, Limits(member=1000))


def test_a_member_that_is_larger_than_it_says_is_not_read_on(archive: Path, tmp_path: Path) -> None:
    content = archive.read_bytes()
    size = len(members_of(archive)[TRIALS])
    lying = content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != content
    file = tmp_path / "lying.zip"
    file.write_bytes(lying)
    assert str(file) in refused(file, tmp_path)


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(archive: Path, tmp_path: Path, cut: float) -> None:
    content = archive.read_bytes()
    file = tmp_path / "cut.zip"
    file.write_bytes(content[: int(cut * len(content)) if cut < 1 else int(cut)])
    assert "cannot be read as a ZIP file" in refused(file, tmp_path)


def replaced(archive: Path, tmp_path: Path, name: str, line: int, change: Callable[[Any], None]) -> str:
    members = members_of(archive)
    edited(members, name, line, change)
    return refused(put(tmp_path / "wrong.zip", hashed_again(members)), tmp_path)


def sets(name: str, value: object) -> Callable[[Any], None]:
    return lambda row: row.__setitem__(name, value)


PARTS = ("study", "segments", "sessions", "asks", "pauses", "verdicts")
METRIC = {"name": "time", "goal": "minimize", "unit": "s"}
STUDY, SEGMENTS, SESSIONS, ASKS, PAUSES, VERDICTS = (f"studies/1/{part}.jsonl" for part in PARTS)

WRONG: dict[str, tuple[str, int, Callable[[Any], None], str]] = {
    "a status that is none": (TRIALS, 0, sets("status", "splendid"), "status is 'splendid'"),
    "a status of another type": (TRIALS, 0, sets("status", ["ok"]), "status is no text"),
    "a purpose that is none": (TRIALS, 0, sets("purpose", "fun"), "purpose is 'fun'"),
    "another configuration": (TRIALS, 0, sets("configuration", {"tile": 2}), "hash stands for"),
    "a configuration of nothing": (TRIALS, 0, sets("configuration", {"tile": None}), "cannot be set to"),
    "a metric of text": (TRIALS, 0, sets("metrics", {"time": "fast"}), "metrics.time is no estimate"),
    "an estimate of a value alone": (TRIALS, 0, sets("metrics", {"time": {"value": 1.0}}), "has no 'error'"),
    "a status of nothing": (TRIALS, 0, sets("status", None), "status is no text"),
    "an end of text": (SESSIONS, 0, sets("finished_at", "soon"), "finished_at is no number"),
    "a phase of text": (TRIALS, 0, sets("phases", {"measure": "long"}), "phases.measure is no number"),
    "a huge number": (TRIALS, 0, sets("number", 10**30), "number is no whole number"),
    "a number of text": (TRIALS, 0, sets("number", "1; DROP TABLE trials"), "number is no whole number"),
    "a session that is not there": (TRIALS, 0, sets("session", 7), "is not there"),
    "an ask for less than nothing": (ASKS, 0, sets("wanted", -1), "wanted is no whole number"),
    "a hash of no letters": (SESSIONS, 0, sets("environment_hash", "\ud800"), "environment_hash is no key"),
    "a negative session": (TRIALS, 0, sets("session", -1), "session is no whole number"),
    "a file that is not there": (TRIALS, 0, sets("artifacts", {"x": "0" * 64}), "is not in the archive"),
    "a file by its path": (TRIALS, 0, sets("artifacts", {"x": "../../etc"}), "is no hash of a file"),
    "readings that were taken away": (READINGS, 0, sets("readings", []), "should have 3 readings"),
    "readings of text": (READINGS, 0, sets("readings", "many"), "readings is no list"),
    "a reading of text": (READINGS, 0, sets("readings", [["time", "1", 0, "", None]] * 3), "is no number"),
    "readings of nobody": (READINGS, 0, sets("trial", 55), "there is no trial 55"),
    "a pause of nobody": (PAUSES, 0, sets("trial", 55), "there is no trial 55"),
    "a pause of text": (PAUSES, 0, sets("facts", []), "facts is no object"),
    "a pause without a place": (PAUSES, 0, sets("told", -1), "told is no whole number"),
    "a column more": (TRIALS, 0, sets("evil", 1), "has 'evil'"),
    "no goal": (STUDY, 0, sets("metrics", []), "no metric has a goal"),
    "a document of text": (STUDY, 0, sets("document", "x"), "document is no object"),
    "a parent that is not there": (STUDY, 0, sets("parent", 5), "its parent is no other study"),
    "a parent of text": (STUDY, 0, sets("parent", "0"), "parent is no whole number"),
    "a parent that it is itself": (STUDY, 0, sets("parent", 1), "its parent is no other study"),
    "a flag of text": (STUDY, 0, sets("replayed", "no"), "neither true nor false"),
    "a next number that is taken": (STUDY, 0, sets("next_number", 1), "its next trial is to be number 1"),
    "a next result that is there": (STUDY, 0, sets("next_told", 0), "its next result is to be number 0"),
    "segments out of order": (SEGMENTS, 0, sets("number", 4), "not numbered"),
    "a study without a space": (STUDY, 0, sets("document", {}), "document has no 'space'"),
    "a source of nowhere": (SESSIONS, 1, sets("settings", {"sources": [{"trials": 1}]}), "has no 'study'"),
    "a source of text": (SESSIONS, 1, sets("settings", {"sources": ["x"]}), "settings.sources is no object"),
    "a source that is anywhere": (
        SESSIONS,
        1,
        sets("settings", {"sources": [{"trials": 1, "study": 0, "apart": "x"}]}),
        "apart is no number",
    ),
    "a source of no study": (
        SESSIONS,
        1,
        sets("settings", {"sources": [{"trials": 1}]}),
        "a source has no 'study'",
    ),
    "a verdict of text": (VERDICTS, 0, sets("document", {"metrics": {"time": 1}}), "is no estimate"),
    "a speed-up of text": (VERDICTS, 0, sets("document", {"speedup": {"x": 1}}), "it has no 'against'"),
    "baselines of text": (VERDICTS, 0, sets("document", {"baselines": "x"}), "baselines is no list"),
    "a drift of text": (VERDICTS, 0, sets("document", {"drift": "x"}), "drift is no number"),
    "a shift of text": (VERDICTS, 0, sets("document", {"shift": "x"}), "shift is no number"),
    "a baseline of text": (VERDICTS, 0, sets("document", {"baselines": ["x"]}), "comparison is no object"),
    "settings of text": (SESSIONS, 0, sets("settings", []), "settings is no object"),
    "a budget of text": (SESSIONS, 0, sets("settings", {"budget": "x"}), "settings.budget is no object"),
    "a limit of a list": (SESSIONS, 0, sets("settings", {"budget": {"time": []}}), "time is no number"),
    "a time beyond all calendars": (SESSIONS, 0, sets("started_at", 1e15), "no time that a calendar has"),
    "a reason of text": (TRIALS, 0, sets("reason", {"success": "likely"}), "success is no number"),
    "a prediction of text": (TRIALS, 0, sets("reason", {"predicted": {"time": "1"}}), "time is no number"),
    "a unit of a list": (STUDY, 0, sets("metrics", [METRIC | {"unit": []}]), "unit is no text"),
    "a bound of a list": (STUDY, 0, sets("metrics", [METRIC | {"at_most": []}]), "at_most is no number"),
    "values of a number": (
        STUDY,
        0,
        sets("document", {"space": {"knobs": {"a": {"values": 3}}}}),
        "is no list",
    ),
    "a winner of nothing": (VERDICTS, 0, sets("document", {"configuration": {"a": None}}), "cannot be set"),
    "lengths of text": (SEGMENTS, 0, sets("document", {"files": [{"name": "a", "bytes": "1"}]}), "no whole"),
    "an environment of no letters": (ENVIRONMENTS, 0, sets("hash", "\ud800"), "hash is no key"),
    "a machine of text": (ENVIRONMENTS, 0, sets("document", {"machine": "x"}), "machine is no object"),
    "compilers of text": (ENVIRONMENTS, 0, sets("document", {"compilers": "gcc"}), "compilers is no object"),
    "a curve of text": (TRIALS, 0, sets("facts", {"curve": [[1, "2"]]}), "is no number"),
    "a curve of single numbers": (TRIALS, 0, sets("facts", {"curve": [[1]]}), "has not 2 items"),
    "an outcome without a message": (VERDICTS, 0, sets("document", {"outcomes": {"x": ["ok"]}}), "2 items"),
    "no steps": (TRIALS, 0, sets("facts", {"step": 0, "steps": 0}), "steps is no whole number"),
    "a share of nothing": (VERDICTS, 0, sets("document", {"waited": None}), "waited is no number"),
    "runs of nothing": (VERDICTS, 0, sets("document", {"processes": None}), "processes is no whole number"),
    "numbers of nothing": (VERDICTS, 0, sets("document", {"metrics": None}), "metrics is no object"),
    "a level of nothing": (STUDY, 0, sets("document", {"measure": {"confidence": None}}), "is no number"),
    "devices of nothing": (ENVIRONMENTS, 0, sets("document", {"gpus": {"devices": None}}), "is no list"),
    "a number that is none": (TRIALS, 0, sets("reason", {"best": {"$number": {}}}), "best is no number"),
}


@pytest.mark.parametrize("what", WRONG)
def test_rows_that_no_store_may_hold_are_refused(archive: Path, tmp_path: Path, what: str) -> None:
    name, line, change, said = WRONG[what]
    found = replaced(archive, tmp_path, name, line, change)
    assert said in found and name in found


def test_parents_that_go_in_a_circle_are_refused(archive: Path, tmp_path: Path) -> None:
    members = members_of(archive)
    edited(members, "studies/0/study.jsonl", 0, sets("parent", 1))
    edited(members, STUDY, 0, sets("parent", 0))
    assert "its parents go in a circle" in refused(
        put(tmp_path / "circle.zip", hashed_again(members)), tmp_path
    )


def raw(archive: Path, tmp_path: Path, name: str, content: bytes) -> str:
    members = members_of(archive) | {name: content}
    return refused(put(tmp_path / "raw.zip", hashed_again(members)), tmp_path)


def test_texts_that_are_no_rows_are_refused(archive: Path, tmp_path: Path) -> None:
    deep = b"[" * 200_000
    assert "nested too deeply" in raw(archive, tmp_path, TRIALS, deep + b"]" * 200_000)
    assert "nested too deeply" in raw(archive, tmp_path, TRIALS, b'{"a":' * 200 + b"1" + b"}" * 200)
    assert "nested too deeply" in raw(archive, tmp_path, TRIALS, deep)
    assert "cannot be read as JSON" in raw(archive, tmp_path, TRIALS, deep[:50])
    assert "cannot be read as JSON" in raw(archive, tmp_path, TRIALS, b"\xff\xfe\n")
    assert "cannot be read as JSON" in raw(archive, tmp_path, TRIALS, b'{"a": NaN}\n')
    assert "cannot be read as JSON" in raw(archive, tmp_path, TRIALS, b'{"a": ' + b"9" * 5000 + b"}\n")
    assert "is no object" in raw(archive, tmp_path, TRIALS, b"[]\n")
    assert "there are 0 studies" in raw(archive, tmp_path, STUDY, b"")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    assert "it has no manifest.json" in refused(put(tmp_path / "a.zip", {"x.txt": b"1"}), tmp_path)
    for manifest in (
        b"{}",
        b"[]",
        b"null",
        b'{"autotune_archive": 99}',
        b'{"autotune_archive": 1}',
        deepest(),
    ):
        refused(put(tmp_path / "b.zip", {MANIFEST: manifest}), tmp_path)
    assert "there is no file" in refused(tmp_path / "none.zip", tmp_path)
    refused(tmp_path, tmp_path)


def deepest() -> bytes:
    return b'{"autotune_archive":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def test_a_file_cannot_claim_to_be_a_manifest(archive: Path, tmp_path: Path) -> None:
    """Imported, it would vouch for the forged archive whose manifest it is."""
    members = members_of(archive)
    edited(members, "files.jsonl", 0, sets("kind", "archive manifest"))
    assert "claims to be the manifest" in refused(put(tmp_path / "x.zip", hashed_again(members)), tmp_path)
