"""Archives: the same study elsewhere, what was altered by name, and archives that mean harm."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.interop.archive_format import MANIFEST, decode, digest_of, encode, is_member_name
from autotune.interop.archive_import import import_archive
from autotune.interop.archive_known import known_digest
from autotune.interop.archive_verify import verify_archive
from autotune.interop.archive_write import write_archive, write_down
from autotune.interop.archive_zip import Archive, Limits
from autotune.measure.outcome import Estimate, Reading, Report
from autotune.status import Status
from autotune.store.store import Store
from tests.hook.stores import add_study
from tests.store.build import bench, outcome

ODD = "a \x1b[31mred\x07 <script>alert(1)</script> \u202e \N{SNOWMAN} text"


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A store of two studies, one of which learned from the other, with all that a trial can have."""
    file = tmp_path / "origin.db"
    with Store.open(file) as store:
        add_study(store, tile=8)
        own = bench(store, "odd")
        first = own.trial(1)
        odd = (
            Reading("time", math.nan, 0.5, "throttled", {"sm_clock_mhz": 1980.0}),
            Reading("time", math.inf, 1.5),
            Reading("time", 0.1 + 0.2, 2.5, "", {"cpu": 1e-300}),
        )
        metrics = {"time": Estimate(0.1 + 0.2, 0.0, math.inf, 1, 0.0)}
        artifacts = {"compiler output": bytes(range(256)), "source": b"int main;"}
        store.finish(first.id, outcome(metrics=metrics, readings=odd, artifacts=artifacts), "environment1")
        store.report(own.trial(2).id, [Report(1, {"loss": 0.5}, 0.1), Report(2, {"loss": math.nan}, 0.2)])
        store.finish(own.trial(4).id, outcome(Status.CRASHED, message=ODD, stderr=ODD * 100))
        store.finish(own.trial(8, "final").id, outcome(value=0.25))
        store.put_environment("environment1", {"machine": {"processor": {"name": ODD}}, "odd": -math.inf})
        store.update_space(own.study.id, "new text", {"space": {"knobs": {}}, "identity": {}}, "space1")
        settings = {"sources": [{"study": 1, "trials": 1}, {"study": 77, "trials": 3}]}
        later = store.open_session(own.study.id, settings, "environment0", 1, "host")
        store.save_verdict(own.study.id, later, {"configuration": {"tile": 1}, "label": "trial 0"})
        store.close_session(later, "done")
    return file


@pytest.fixture
def archive(origin: Path, tmp_path: Path) -> Path:
    return write(origin, tmp_path / "odd.zip")


def write(origin: Path, file: Path, study: str = "odd") -> Path:
    with Store.open(origin, readonly=True) as store:
        written = write_archive(store, store.study(study), file)
    write_down(str(origin), written.manifest)
    return file


# -- the same study elsewhere


def test_a_study_is_the_same_elsewhere(origin: Path, archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    with Store.open(target) as store:
        add_study(store, name="another", tile=4)  # so that ids differ
    brought = import_archive(archive, str(target))
    assert (brought.study, brought.others, brought.new) == ("odd#3", ("gemm#2",), True)
    with Store.open(origin) as before, Store.open(target) as after:
        old, new = before.trials(2), after.trials(3)
        for one, other in zip(old, new, strict=True):
            assert repr(before.readings(one.id)) == repr(after.readings(other.id))  # NaN is not itself
            for name in type(one).__slots__:
                if name not in ("id", "study_id", "session_id", "segment_id", "metrics"):
                    assert getattr(one, name) == getattr(other, name), name
            assert repr(one.metrics) == repr(other.metrics)
        assert [r.report.step for r in after.reports(3)] == [1, 2]
        assert after.artifact(digest_of(bytes(range(256)))) == bytes(range(256))
        assert after.environment("environment1") == before.environment("environment1")
        assert [s.settings.get("sources") for s in after.sessions(3)] == [
            None,
            [{"study": 2, "trials": 1}, {"study": None, "trials": 3}],
        ]
        assert after.integrity() == []


def test_it_can_be_imported_again_and_written_again(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    assert import_archive(archive, str(target)).new
    again = import_archive(archive, str(target))
    assert not again.new and again.study == "odd#2"
    with Store.open(target) as store:
        assert len(store.studies()) == 2
    assert write(target, tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_a_study_that_went_on_since_is_not_overwritten(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    import_archive(archive, str(target))
    with Store.open(target) as store:
        running = next(t for t in store.trials(2) if t.status is Status.RUNNING or not t.status.finished)
        store.finish(running.id, outcome())
    with pytest.raises(InputError, match="is here already and is not the same"):
        import_archive(archive, str(target))


# -- nothing was altered


def test_what_was_not_altered_is_whole(origin: Path, archive: Path) -> None:
    found = verify_archive(archive, None, lambda digest: known_digest(str(origin), digest))
    assert found.whole and found.vouched and "it was written from" in found.known
    alone = verify_archive(archive)
    assert alone.whole and not alone.vouched and "nobody has named this digest" in alone.known
    assert verify_archive(archive, found.digest).vouched
    other = verify_archive(archive, "0" * 64)
    assert not other.whole and not other.vouched


Members = dict[str, bytes]


def members_of(file: Path) -> Members:
    with zipfile.ZipFile(file) as opened:
        return {info.filename: opened.read(info) for info in opened.infolist()}


def put(file: Path, members: Members) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return file


TRIALS, READINGS = "studies/1/trials.jsonl", "studies/1/readings.jsonl"


def edited(members: Members, name: str, line: int, change: Callable[[Any], None]) -> None:
    lines = members[name].splitlines()
    row = json.loads(lines[line])
    change(row)
    lines[line] = encode(row).encode()
    members[name] = b"\n".join(lines) + b"\n"


def a_reading(members: Members) -> None:
    edited(members, READINGS, 0, lambda row: row["readings"][2].__setitem__(1, 0.01))


def a_status(members: Members) -> None:
    edited(members, TRIALS, 2, lambda row: row.__setitem__("status", "ok"))


def a_line_less(members: Members) -> None:
    members[TRIALS] = b"\n".join(members[TRIALS].splitlines()[1:]) + b"\n"


def a_line_more(members: Members) -> None:
    members[TRIALS] += b'{"number": 99}\n'


def another_order(members: Members) -> None:
    members[TRIALS] = b"\n".join(reversed(members[TRIALS].splitlines())) + b"\n"


def a_file_missing(members: Members) -> None:
    del members[READINGS]


def a_file_more(members: Members) -> None:
    members["studies/1/notes.md"] = b"believe me"


def a_file_renamed(members: Members) -> None:
    members["studies/1/trails.jsonl"] = members.pop(TRIALS)


def a_source(members: Members) -> None:
    name = next(name for name in members if name.startswith("files/"))
    members[name] += b" "


def the_description(members: Members) -> None:
    members["ro-crate-metadata.json"] = members["ro-crate-metadata.json"].replace(b"odd", b"even")


def a_line_and_its_hash(members: Members) -> None:
    a_status(members)
    members["lines.json"] = members["lines.json"].replace(b"a", b"b", 1)


ALTERED = {
    a_reading: f"{READINGS}, line 1 (trial 0): altered or added",
    a_status: f"{TRIALS}, line 3 (trial 2): altered or added",
    a_line_less: f"{TRIALS}: 1 of 4 lines are missing",
    a_line_more: f"{TRIALS}, line 5: altered or added",
    another_order: f"{TRIALS}: its lines were put into another order",
    a_file_missing: f"{READINGS} is missing",
    a_file_more: "studies/1/notes.md was added",
    a_file_renamed: f"{TRIALS} was renamed to studies/1/trails.jsonl",
    a_source: "was altered",
    the_description: "ro-crate-metadata.json was altered",
    a_line_and_its_hash: f"{TRIALS} was altered",
}


@pytest.mark.parametrize("alter", ALTERED, ids=lambda alter: alter.__name__)
def test_what_was_altered_is_named(archive: Path, tmp_path: Path, alter: Callable[[Members], None]) -> None:
    members = members_of(archive)
    alter(members)
    altered = put(tmp_path / "altered.zip", members)
    found = verify_archive(altered)
    assert not found.whole
    assert any(ALTERED[alter] in said for said in found.altered), found.altered
    with pytest.raises(InputError, match="it was altered"):
        import_archive(altered, str(tmp_path / "target.db"))
    assert not (tmp_path / "target.db").exists()


def hashed_again(members: Members) -> Members:
    """As whoever alters an archive and knows how would do it."""
    manifest = json.loads(members[MANIFEST])
    manifest["members"] = {
        name: {"bytes": len(content), "sha256": digest_of(content)}
        for name, content in members.items()
        if name != MANIFEST
    }
    return {**members, MANIFEST: (encode(manifest) + "\n").encode()}


def test_a_new_manifest_is_noticed_by_whoever_knows_the_digest(
    origin: Path, archive: Path, tmp_path: Path
) -> None:
    digest = verify_archive(archive).digest
    members = members_of(archive)
    a_status(members)
    forged = put(tmp_path / "forged.zip", hashed_again(members))
    found = verify_archive(forged, None, lambda digest: known_digest(str(origin), digest))
    assert found.whole and not found.vouched  # it is whole, and nobody has named it
    assert not verify_archive(forged, digest).whole
    assert not verify_archive(forged, digest.upper()).whole


def test_taking_an_archive_in_vouches_for_nothing(archive: Path, tmp_path: Path) -> None:
    import_archive(archive, str(tmp_path / "target.db"))
    assert known_digest(str(tmp_path / "target.db"), verify_archive(archive).digest) == ""
    assert known_digest(str(tmp_path / "none.db"), "0" * 64) == ""


# -- archives that mean harm


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


STUDY, SEGMENTS, SESSIONS = (f"studies/1/{part}.jsonl" for part in ("study", "segments", "sessions"))

WRONG: dict[str, tuple[str, int, Callable[[Any], None], str]] = {
    "a status that is none": (TRIALS, 0, sets("status", "splendid"), "status is 'splendid'"),
    "a status of another type": (TRIALS, 0, sets("status", ["ok"]), "status is no text"),
    "a purpose that is none": (TRIALS, 0, sets("purpose", "fun"), "purpose is 'fun'"),
    "another configuration": (TRIALS, 0, sets("configuration", {"tile": 2}), "hash stands for"),
    "a configuration of nothing": (TRIALS, 0, sets("configuration", {"tile": None}), "cannot be set to"),
    "a metric of text": (TRIALS, 0, sets("metrics", {"time": "fast"}), "metrics.time is no estimate"),
    "a phase of text": (TRIALS, 0, sets("phases", {"measure": "long"}), "phases.measure is no number"),
    "a huge number": (TRIALS, 0, sets("number", 10**30), "number is no whole number"),
    "a number of text": (TRIALS, 0, sets("number", "1; DROP TABLE trials"), "number is no whole number"),
    "a session that is not there": (TRIALS, 0, sets("session", 7), "is not there"),
    "a negative session": (TRIALS, 0, sets("session", -1), "session is no whole number"),
    "a file that is not there": (TRIALS, 0, sets("artifacts", {"x": "0" * 64}), "is not in the archive"),
    "a file by its path": (TRIALS, 0, sets("artifacts", {"x": "../../etc"}), "is no hash of a file"),
    "readings that were taken away": (READINGS, 0, sets("readings", []), "should have 3 readings"),
    "readings of text": (READINGS, 0, sets("readings", "many"), "readings is no list"),
    "a reading of text": (READINGS, 0, sets("readings", [["time", "1", 0, "", None]] * 3), "is no number"),
    "readings of nobody": (READINGS, 0, sets("trial", 55), "there is no trial 55"),
    "a column more": (TRIALS, 0, sets("evil", 1), "has 'evil'"),
    "no goal": (STUDY, 0, sets("metrics", []), "no metric has a goal"),
    "a document of text": (STUDY, 0, sets("document", "x"), "document is no object"),
    "a parent that comes later": (STUDY, 0, sets("parent", 5), "its parent comes after it"),
    "a flag of text": (STUDY, 0, sets("replayed", "no"), "neither true nor false"),
    "segments out of order": (SEGMENTS, 0, sets("number", 4), "not numbered"),
    "a source of text": (SESSIONS, 1, sets("settings", {"sources": ["x"]}), "a source is no object"),
    "settings of text": (SESSIONS, 0, sets("settings", []), "settings is no object"),
}


@pytest.mark.parametrize("what", WRONG)
def test_rows_that_no_store_may_hold_are_refused(archive: Path, tmp_path: Path, what: str) -> None:
    name, line, change, said = WRONG[what]
    found = replaced(archive, tmp_path, name, line, change)
    assert said in found and name in found


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


def test_odd_texts_go_through_as_they_are(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    import_archive(archive, str(target))
    with Store.open(target) as store:
        crashed = store.trials(2, status=Status.CRASHED)[0]
        assert crashed.message == ODD and crashed.stderr == ODD * 100


# -- the form


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_encoded_is_read_as_it_was(document: Any) -> None:
    text = encode(document)
    assert "NaN" not in text.replace('"NaN"', "") or '"' in text
    strict(text)
    assert repr(decode(text, "here")) == repr(document)


def strict(text: str) -> None:
    def refuse(word: str) -> object:
        raise AssertionError(word)

    json.loads(text, parse_constant=refuse)


def test_the_description_says_who_what_and_when(archive: Path) -> None:
    document = json.loads(members_of(archive)["ro-crate-metadata.json"])
    entities = {entity["@id"]: entity for entity in document["@graph"]}
    assert len(entities) == len(document["@graph"])
    descriptor, root = entities["ro-crate-metadata.json"], entities["./"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert descriptor["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license", "hasPart"} <= set(root)
    parts = {part["@id"] for part in root["hasPart"]}
    described = {"ro-crate-metadata.json", MANIFEST}
    assert parts == set(members_of(archive)) - described
    assert all(entities[part]["sha256"] for part in parts)
    for entity in document["@graph"]:
        for reference in references(entity):
            assert reference in entities or reference.startswith("https://w3id.org/"), reference
    search = entities["#search-studies-1-1"]
    assert {"@id": "studies/0/trials.jsonl"} in search["prov:used"]
    assert search["prov:wasAssociatedWith"] == {"@id": "#autotune"}


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value["@id"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_a_stream_of_lines_is_read_whole(tmp_path: Path) -> None:
    lines = [b"x" * n for n in (0, 1, 5, 3_000_000)]
    file = put(tmp_path / "lines.zip", {"a": b"\n".join(lines) + b"\nlast"})
    with Archive(file) as opened:
        assert list(opened.lines("a")) == [*lines, b"last"]
    with Archive(file, Limits(line=1000)) as opened, pytest.raises(InputError, match="has a line of more"):
        list(opened.lines("a"))


def test_bytes_alone_do_not_make_an_archive() -> None:
    with pytest.raises(InputError):
        Archive(Path("/dev/null"))
    assert zipfile.is_zipfile(io.BytesIO(b"")) is False
