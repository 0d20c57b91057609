"""Archives: the same study elsewhere, and what was altered by name."""

from __future__ import annotations

import gc
import io
import json
import math
import os
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.errors import InputError, StoreError
from autotune.interop.archives.format import MANIFEST, NUMBER, README, decode, encode
from autotune.interop.archives.hashed import HashedZip
from autotune.interop.archives.importing import import_archive
from autotune.interop.archives.known import known_digest
from autotune.interop.archives.verifying import verify_archive
from autotune.interop.archives.zipped import Archive, Limits
from autotune.status import Status
from autotune.store.documents import content_hash
from autotune.store.statements.pruning import TAKEN_IN
from autotune.store.store import Store
from tests.hook.stores import add_study
from tests.interop.archives.cases import (
    ODD,
    READINGS,
    TRIALS,
    Members,
    edited,
    hashed_again,
    members_of,
    put,
    write,
)
from tests.report.studies import Written
from tests.store.build import outcome

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
        reports = ([r.report for r in store.reports(study)] for store, study in ((before, 2), (after, 3)))
        assert repr(next(reports)) == repr(next(reports)) and [r.report.step for r in after.reports(3)] == [
            1,
            2,
        ]
        assert after.artifact(content_hash(bytes(range(256)))) == bytes(range(256))
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


def test_the_studies_come_with_what_says_where_they_are_from_or_not_at_all(
    archive: Path, tmp_path: Path
) -> None:
    """The manifest was written after them, and who was killed in between never had it: they were here."""
    target = tmp_path / "target.db"
    Store.open(target).close()
    with closing(sqlite3.connect(target)) as database:
        fails = f"BEGIN SELECT raise(FAIL, 'no') WHERE new.kind = '{TAKEN_IN}'; END"
        database.execute(f"CREATE TRIGGER refuses BEFORE INSERT ON artifacts {fails}")
    with pytest.raises(StoreError):
        import_archive(archive, str(target))
    with Store.open(target) as store:
        assert store.studies() == []
    with closing(sqlite3.connect(target)) as database:
        database.execute("DROP TRIGGER refuses")
    digest = import_archive(archive, str(target)).digest
    with Store.open(target) as store:
        assert store.kind_of(digest) == TAKEN_IN


def test_studies_may_refer_to_one_that_follows(archive: Path, tmp_path: Path) -> None:
    """A study goes on and learns from one that was begun from it: the source has the study for its parent."""
    members = members_of(archive)
    edited(members, "studies/0/study.jsonl", 0, lambda row: row.__setitem__("parent", 1))
    edited(members, "studies/1/study.jsonl", 0, lambda row: row.__setitem__("parent", None))
    file = put(tmp_path / "later.zip", hashed_again(members))
    assert import_archive(file, str(tmp_path / "target.db")).new
    with Store.open(tmp_path / "target.db") as store:
        source, study = store.studies()
        assert (source.parent_id, study.parent_id) == (study.id, None)
    assert not import_archive(file, str(tmp_path / "target.db")).new


def test_a_study_that_came_alone_may_come_again_with_its_parent(archive: Path, tmp_path: Path) -> None:
    members = members_of(archive)
    edited(members, "studies/0/study.jsonl", 0, lambda row: row.__setitem__("parent", None))
    edited(members, "studies/1/study.jsonl", 0, lambda row: row.__setitem__("parent", None))
    alone = put(tmp_path / "alone.zip", hashed_again(members))
    edited(members, "studies/1/study.jsonl", 0, lambda row: row.__setitem__("parent", 0))
    both = put(tmp_path / "both.zip", hashed_again(members))
    assert import_archive(alone, str(tmp_path / "target.db")).new
    assert not import_archive(both, str(tmp_path / "target.db")).new


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


def a_reading(members: Members) -> None:
    edited(members, READINGS, 0, lambda row: row["readings"][2].__setitem__(1, 0.01))


def a_status(members: Members) -> None:
    edited(members, TRIALS, 2, lambda row: row.__setitem__("status", "ok"))


def a_line_less(members: Members) -> None:
    members[TRIALS] = b"\n".join(members[TRIALS].splitlines()[1:]) + b"\n"


def a_line_more(members: Members) -> None:
    members[TRIALS] += b'{"number": 99}\n'


def one_of_two_lines_that_are_equal(members: Members) -> None:
    before = members[TRIALS]
    members[TRIALS] += before.splitlines(keepends=True)[0]
    known = json.loads(members["lines.json"])
    members["lines.json"] = json.dumps(known | {TRIALS: [*known[TRIALS], known[TRIALS][0]]}).encode()
    members.update(hashed_again(members))
    members[TRIALS] = before


def the_last_end_of_a_line(members: Members) -> None:
    members[TRIALS] = members[TRIALS].removesuffix(b"\n")


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


def a_status_where_no_lines_are_named(members: Members) -> None:
    members["lines.json"] = json.dumps({TRIALS: 7, READINGS: [{}]}).encode()
    members.update(hashed_again(members))
    a_status(members)


ALTERED = {
    a_reading: f"{READINGS}, line 1 (trial 0): altered or added",
    a_status: f"{TRIALS}, line 3 (trial 2): altered or added",
    a_line_less: f"{TRIALS}: 1 of 5 lines are missing",
    a_line_more: f"{TRIALS}, line 6: altered or added",
    one_of_two_lines_that_are_equal: f"{TRIALS}: 1 of 6 lines are missing",
    the_last_end_of_a_line: f"{TRIALS}: the end of its last line is missing",
    another_order: f"{TRIALS}: its lines were put into another order",
    a_file_missing: f"{READINGS} is missing",
    a_file_more: "studies/1/notes.md was added",
    a_file_renamed: f"{TRIALS} was renamed to studies/1/trails.jsonl",
    a_source: "was altered",
    the_description: "ro-crate-metadata.json was altered",
    a_line_and_its_hash: f"{TRIALS} was altered",
    a_status_where_no_lines_are_named: f"{TRIALS} was altered",
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
@example([math.nan, math.inf, -math.inf])
@example([{NUMBER: "NaN", "and": "more"}, {NUMBER: "no word"}, {NUMBER: 1.5}])
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


def test_a_finale_that_nobody_stood_has_no_winner(tmp_path: Path) -> None:
    """It was said that "the winner" had won."""
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 1.0)
    own.no_verdict({})
    own.verdict({"tile": 1, "layout": "row"})
    gain = {"against": "the default", "estimate": 3.0, "low": 2.9, "high": 3.1}
    own.verdict({"tile": 1, "layout": "row"}, speedup=None, gain=gain)
    file = write(tmp_path / "written.db", tmp_path / "it.zip", "gemm")
    document = json.loads(members_of(file)["ro-crate-metadata.json"])
    claims = [entity for entity in document["@graph"] if "Claim" in entity["@type"]]
    assert [(claim["name"], claim["text"]) for claim in claims] == [
        ("nobody won gemm", "no finalist could be measured again"),
        ("trial 1 won gemm", "2 [1.8, 2.2] times as good as the default"),
        ("trial 1 won gemm", "better than the default by 3 [2.9, 3.1]"),
    ]


def test_each_file_is_said_to_be_something(archive: Path) -> None:
    document = json.loads(members_of(archive)["ro-crate-metadata.json"])
    files = {entity["@id"]: entity for entity in document["@graph"] if "File" in entity["@type"]}
    assert not [name for name, entity in files.items() if entity["name"] == name]
    assert files["studies/1/trials.jsonl"]["encodingFormat"] == "application/jsonl"
    readme = members_of(archive)[README].decode()
    assert "Earlier studies that it learned from, which are in it: 1." in readme
    assert "Its trials (4) and repeated measurements (1) with every reading" in readme


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


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_is_one_error(tmp_path: Path) -> None:
    """A traceback had followed it, of the ZIP file that was closed once more as it went."""
    with pytest.raises(OSError, match="No space left"), HashedZip(Path("/dev/full")) as writer:
        writer.begin("lines")
        writer.line(os.urandom(1 << 20))
    gc.collect()
