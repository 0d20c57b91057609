"""Freezing an objective's source, in real repositories and without one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from autotune.provenance.code.files import signature
from autotune.provenance.code.frozen import SourceSnapshot, snapshot, source_hash
from autotune.provenance.code.repository import (
    DIFF_BYTES,
    UNTRACKED_BYTES,
    UNTRACKED_FILE_BYTES,
    Diff,
    named_like_secret,
    read_commit,
    read_repository,
)
from autotune.provenance.document import differences

ME = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit: an objective of two files, and a helper beside them."""
    folder = tmp_path / "project"
    (folder / "objectives").mkdir(parents=True)
    (folder / "objectives" / "gemm.py").write_text("SIZE = 1\n")
    (folder / "objectives" / "gemm.c").write_text("int one;\n")
    (folder / "helper.py").write_text("x = 1\n")
    (folder / ".gitignore").write_text("*.db\n.venv/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *ME, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def own(project: Path) -> list[Path]:
    return [project / "objectives" / "gemm.py", project / "objectives" / "gemm.c"]


def paths(project: Path, before: SourceSnapshot) -> list[str]:
    """What counts as changed in the project."""
    return changed(before, own(project))


def changed(before: SourceSnapshot, files: list[Path]) -> list[str]:
    return [one.path for one in differences(before._comparable(), snapshot(files)._comparable())]


def test_a_clean_repository(project: Path) -> None:
    frozen = snapshot(own(project))
    repository = frozen.repository
    assert repository is not None and frozen.problem == ""
    assert repository.head.commit == git(project, "rev-parse", "HEAD").strip()
    assert (repository.head.branch, repository.head.dirty) == ("main", False)
    assert repository.diff == Diff(hashlib.sha256(b"").hexdigest(), 0, False)
    assert repository.untracked == ()
    assert dict(frozen.artifacts) == {"source/gemm.c": b"int one;\n", "source/gemm.py": b"SIZE = 1\n"}
    assert [file.sha256 for file in frozen.files] == [
        hashlib.sha256(content).hexdigest() for content in (b"int one;\n", b"SIZE = 1\n")
    ]


def test_it_is_the_same_until_something_changes(project: Path) -> None:
    before = snapshot(own(project))
    again = snapshot(reversed(own(project)))
    assert (again.source_hash, again.tree_hash) == (before.source_hash, before.tree_hash)
    assert paths(project, before) == []


def test_the_hash_of_the_sources_is_known_without_a_snapshot(project: Path) -> None:
    for files in (own(project), [project], [*own(project), project / "missing.py"], []):
        assert source_hash(files) == snapshot(files).source_hash


def test_its_own_files_change_both_hashes(project: Path) -> None:
    before = snapshot(own(project))
    own(project)[0].write_text("SIZE = 2\n")
    after = snapshot(own(project))
    assert after.source_hash != before.source_hash and after.tree_hash != before.tree_hash
    assert paths(project, before) == ["diff", "source.gemm.py"]
    assert after.repository is not None and after.repository.head.dirty
    assert b"-SIZE = 1\n+SIZE = 2\n" in after.artifacts["diff"]


def test_code_around_it_changes_the_tree_only(project: Path) -> None:
    before = snapshot(own(project))
    (project / "helper.py").write_text("x = 2\n")
    edited = snapshot(own(project))
    assert edited.source_hash == before.source_hash and edited.tree_hash != before.tree_hash
    assert paths(project, before) == ["diff"]
    git(project, "commit", "-qam", "second")
    assert paths(project, before) == ["commit"]
    (project / "new.py").write_text("y = 1\n")
    assert paths(project, before) == ["commit", "untracked.new.py"]
    assert snapshot(own(project)).artifacts["untracked/new.py"] == b"y = 1\n"


def test_the_diff_restores_the_tree(project: Path, tmp_path: Path) -> None:
    (project / "helper.py").write_text("x = 'é'\n")
    own(project)[1].write_bytes(bytes(range(256)))
    frozen = snapshot(own(project))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project), str(clone))
    (tmp_path / "saved.diff").write_bytes(frozen.artifacts["diff"])
    git(clone, "apply", str(tmp_path / "saved.diff"))
    assert (clone / "objectives" / "gemm.c").read_bytes() == bytes(range(256))
    assert (clone / "helper.py").read_text() == "x = 'é'\n"


LINES = "\n\n".join(f"x{n} = {n}" for n in range(20)) + "\n"


def test_a_users_settings_do_not_change_the_hash(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "helper.py").write_text(LINES)
    (project / "other.py").write_text(LINES)
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "lines")
    for name in ("helper.py", "other.py"):
        (project / name).write_text(LINES.replace("x3 ", "y3 ").replace("x15 ", "y15 "))
    (tmp_path / "order").write_text("other.py\n")
    before = snapshot(own(project))
    for setting in (
        ("diff.interHunkContext", "20"),
        ("diff.orderFile", str(tmp_path / "order")),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.context", "9"),
        ("color.ui", "always"),
        ("status.showUntrackedFiles", "no"),
        ("status.branch", "false"),
        ("core.quotePath", "true"),
    ):
        git(project, "config", *setting)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert snapshot(own(project)).tree_hash == before.tree_hash


def test_staged_renamed_and_deleted_files(project: Path) -> None:
    before = snapshot(own(project))
    git(project, "mv", "helper.py", "renamed helper.py")
    frozen = snapshot(own(project))
    assert frozen.repository is not None and frozen.repository.untracked == ()
    assert b"renamed helper.py" in frozen.artifacts["diff"]
    (project / "renamed helper.py").unlink()
    assert paths(project, before) == ["diff"]


def test_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    file = tmp_path / "a.py"
    file.write_text("a = 1\n")
    git(tmp_path, "add", "a.py")
    frozen = snapshot([file])
    assert frozen.repository is not None
    assert (frozen.repository.head.commit, frozen.repository.head.branch) == (None, "main")
    assert b"+a = 1" in frozen.artifacts["diff"]


def test_a_detached_head_and_a_remote_with_a_password(project: Path) -> None:
    git(project, "checkout", "-q", "--detach")
    git(project, "remote", "add", "origin", "https://me:hunter22@example.org/p.git")
    frozen = snapshot(own(project))
    assert frozen.repository is not None
    assert frozen.repository.head.branch is None
    assert frozen.repository.remote == "https://***@example.org/p.git"
    assert "hunter22" not in json.dumps(frozen.to_document())


def test_a_large_diff_is_cut_and_says_so(project: Path) -> None:
    (project / "helper.py").write_text("x = 1\n" * (DIFF_BYTES // 4))
    first = snapshot(own(project))
    assert first.repository is not None and first.repository.diff is not None
    assert first.repository.diff.truncated
    assert len(first.artifacts["diff"]) == DIFF_BYTES < first.repository.diff.bytes
    with (project / "helper.py").open("a") as file:
        file.write("y = 2\n")  # beyond what is kept
    assert snapshot(own(project)).tree_hash != first.tree_hash, "all of it is hashed"


def test_untracked_files_that_are_no_code(project: Path) -> None:
    before = snapshot(own(project))
    (project / "ignored.db").write_bytes(b"x")
    (project / "store.sqlite").write_bytes(b"SQLite format 3\0")
    (project / "store.sqlite-wal").write_bytes(b"")
    (project / "weights.txt").write_text("1" * (UNTRACKED_FILE_BYTES + 1))
    (project / ".env").write_text("TOKEN=hunter22\n")
    (project / "dangling").symlink_to("nowhere")
    os.mkfifo(project / "pipe")
    frozen = snapshot(own(project))
    assert frozen.repository is not None
    listed = {file.name: file.why for file in frozen.repository.untracked}
    listed.pop("pipe", None)  # some releases of git do not list it
    assert listed == {
        ".env": "named like a secret",
        "dangling": "",
        "store.sqlite": "binary",
        "store.sqlite-wal": "in use",
        "weights.txt": "large",
    }
    assert paths(project, before) == ["untracked.dangling"], "only code and links to it count"
    assert b"hunter22" not in b"".join(frozen.artifacts.values())


def test_a_database_that_this_process_has_open_keeps_its_locks(project: Path) -> None:
    """Else another program that looks into it takes it for unused, and deletes what was written last."""
    file = project / "store.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE trials (number INTEGER)")
        database.commit()
        frozen = snapshot([*own(project), file])
        assert frozen.repository is not None
        assert {one.name: one.why for one in frozen.repository.untracked} == {
            "store.sqlite": "in use",
            "store.sqlite-shm": "in use",
            "store.sqlite-wal": "in use",
        }
        look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM trials').fetchall()"
        subprocess.run([sys.executable, "-c", look, str(file)], check=True)
        database.execute("INSERT INTO trials VALUES (1)")
        database.commit()
        assert Path(f"{file}-wal").exists()
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT number FROM trials").fetchall() == [(1,)]


def test_room_for_untracked_files_is_bounded(project: Path) -> None:
    size = UNTRACKED_FILE_BYTES
    for number in range(UNTRACKED_BYTES // size + 2):
        (project / f"data{number:02}.txt").write_text(f"{number:02}" * (size // 2))
    frozen = snapshot(own(project))
    assert frozen.repository is not None
    kept = [file for file in frozen.repository.untracked if file.kept]
    assert len(kept) == UNTRACKED_BYTES // size
    assert all(file.sha256 for file in frozen.repository.untracked), "all of them still count"
    assert {f"untracked/{file.name}" for file in kept} < set(frozen.artifacts)


def test_names_that_are_no_text(project: Path) -> None:
    Path(os.fsdecode(bytes(project) + b"/caf\xe9 new\nline.py")).write_text("z = 1\n")
    frozen = snapshot(own(project))
    assert frozen.repository is not None and frozen.repository.untracked_count == 1
    assert json.dumps(frozen.to_document()).encode("utf-8")
    for name in frozen.artifacts:
        name.encode("utf-8")


def test_names_that_are_no_text_are_told_apart(project: Path) -> None:
    """They had been the same name, and of the files one was kept."""
    for name in (b"\xe8.py", b"\xe9.py", b"\\350.py", b'"\\350.py"'):
        Path(os.fsdecode(bytes(project) + b"/" + name)).write_bytes(name)
    frozen = snapshot(own(project))
    kept = {name: content for name, content in frozen.artifacts.items() if name.startswith("untracked/")}
    assert kept == {
        'untracked/"\\350.py"': b"\xe8.py",
        'untracked/"\\351.py"': b"\xe9.py",
        "untracked/\\350.py": b"\\350.py",
        'untracked/"\\"\\\\350.py\\""': b'"\\350.py"',
    }


def test_a_repository_that_git_cannot_read_is_no_stranger(project: Path) -> None:
    """It had been said not to hold the files."""
    (project / ".git" / "index").write_text("damaged")
    frozen = snapshot(own(project))
    assert frozen.repository is None and "git cannot read the index" in frozen.problem


def test_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    file = tmp_path / "a.py"
    file.write_text("a = 1\n")
    frozen = snapshot([file])
    assert frozen.repository is None
    assert "not in a git repository" in frozen.problem
    assert frozen.tree_hash == frozen.source_hash
    assert read_commit(tmp_path) is None


def test_without_git(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_git = snapshot(own(project))
    monkeypatch.setenv("PATH", str(tmp_path))
    without = snapshot(own(project))
    assert without.repository is None and without.problem
    assert without.source_hash == with_git.source_hash


def test_a_git_that_hangs_is_not_waited_for(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec /bin/sleep 100\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent))
    assert read_commit(project, seconds=0.1) is None
    repository, problem = read_repository(own(project), seconds=0.1)
    assert repository is None and problem


def test_an_installed_package_is_no_part_of_the_project_around_it(project: Path) -> None:
    installed = project / ".venv" / "objective.py"
    installed.parent.mkdir()
    installed.write_text("a = 1\n")
    frozen = snapshot([installed])
    assert frozen.repository is None and "does not hold them" in frozen.problem


@pytest.mark.parametrize("elsewhere", ["../a/shared.h", "../z/shared.h"])
def test_a_file_outside_of_the_repository_does_not_hide_it(project: Path, elsewhere: str) -> None:
    """Commit and diff were in no record, since git could not read its index, or there was none, it said."""
    outside = project / elsewhere
    outside.parent.mkdir()
    outside.write_text("#define N 1\n")
    frozen = snapshot([*own(project), outside])
    assert frozen.repository is not None and frozen.problem == ""
    assert frozen.repository.head == read_commit(project)
    assert {file.sha256 is not None for file in frozen.files} == {True}


def test_of_two_repositories_the_one_with_most_of_the_files_counts(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "another"
    other.mkdir()
    (other / "tools.py").write_text("y = 1\n")
    git(other, "init", "-q", "-b", "side")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "first")
    frozen = snapshot([other / "tools.py", *own(project)])
    assert frozen.repository is not None and frozen.repository.head.branch == "main"


def test_what_a_submodule_does_not_track_makes_nothing_dirty(project: Path, tmp_path: Path) -> None:
    """Its build folder made the environment another one, while the diff was empty."""
    shutil.copytree(project, tmp_path / "library")
    allowed = ("-c", "protocol.file.allow=always")
    git(project, *allowed, "submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    git(project, "commit", "-q", "-m", "with a library")
    (project / "library" / "built.o").write_text("built")
    commit = read_commit(project)
    assert commit is not None and not commit.dirty
    (project / "library" / "helper.py").write_text("x = 2\n")
    commit = read_commit(project)
    assert commit is not None and commit.dirty
    beside = snapshot([project / "library" / "helper.py", *own(project)])
    assert beside.repository is not None and beside.repository.head == commit


def test_the_same_files_elsewhere_have_the_same_hash(project: Path, tmp_path: Path) -> None:
    before = snapshot(own(project))
    shutil.copytree(project / "objectives", tmp_path / "elsewhere")
    moved = snapshot([tmp_path / "elsewhere" / "gemm.py", tmp_path / "elsewhere" / "gemm.c"])
    assert moved.source_hash == before.source_hash
    assert moved.folder == str(tmp_path / "elsewhere")


def test_a_folder_stands_for_its_files(project: Path) -> None:
    (project / "objectives" / "__pycache__").mkdir()
    (project / "objectives" / "__pycache__" / "gemm.pyc").write_bytes(b"x")
    (project / "objectives" / ".swp").write_bytes(b"x")
    assert snapshot([project / "objectives"]).source_hash == snapshot(own(project)).source_hash


def test_a_folder_behind_a_link_is_part_of_the_folder(project: Path, tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "tile.h").write_text("#define N 1\n")
    (project / "objectives" / "common").symlink_to(tmp_path / "common")
    (tmp_path / "common" / "back").symlink_to(project / "objectives")
    before, signs = snapshot([project / "objectives"]), signature([project / "objectives"])
    assert [file.name for file in before.files] == ["common/tile.h", "gemm.c", "gemm.py"]
    (tmp_path / "common" / "tile.h").write_text("#define N 22\n")
    assert snapshot([project / "objectives"]).source_hash != before.source_hash
    assert signature([project / "objectives"]) != signs


def test_missing_files_and_none_at_all(tmp_path: Path) -> None:
    frozen = snapshot([tmp_path / "missing.py"])
    assert [(file.name, file.sha256) for file in frozen.files] == [("missing.py", None)]
    (tmp_path / "missing.py").write_text("")
    assert changed(frozen, [tmp_path / "missing.py"]) == ["source.missing.py"]
    empty = snapshot([])
    assert empty.files == () and empty.source_hash and json.dumps(empty.to_document())


def test_a_pipe_in_the_place_of_a_source_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert snapshot([tmp_path / "pipe.py"]).files[0].sha256 is None


def test_the_document_says_what_is_where(project: Path) -> None:
    (project / "helper.py").write_text("x = 2\n")
    frozen = snapshot(own(project))
    document = json.loads(json.dumps(frozen.to_document()))
    assert document["source_hash"] == frozen.source_hash and document["tree_hash"] == frozen.tree_hash
    assert document["repository"]["diff"]["sha256"] == hashlib.sha256(frozen.artifacts["diff"]).hexdigest()
    assert "artifacts" not in document["repository"]


def test_signatures_notice_edits_without_reading(project: Path) -> None:
    files = own(project)
    before = signature(files)
    assert signature(files) == before
    stat = files[0].stat()
    files[0].write_text("SIZE = 3\n")
    os.utime(files[0], ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert signature(files) != before
    files[0].unlink()
    assert signature(files)[0][1:] == (0, 0, 0)


def test_a_file_that_is_replaced_has_another_signature(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    for path in (file, other):
        path.write_text("same")
        os.utime(path, ns=(1, 1))
    before = signature([file])
    other.replace(file)
    assert signature([file]) != before, "the inode tells"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True),
        (".env.local", True),
        ("deploy/id_rsa", True),
        ("server.pem", True),
        ("aws_credentials.json", True),
        ("prod.env", True),
        ("tokenizer.py", False),
        ("tokenizer.cuh", False),
        ("secret_sharing.rs", False),
        ("secrets.py", False),
        ("environment.yaml", False),
        ("keyboard.txt", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert named_like_secret(name) is secret


def test_a_repository_that_git_refuses_since_another_user_owns_it_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been called no repository, and nobody knew why a trial has no commit."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    repository, problem = read_repository(own(project))
    assert repository is None
    assert f"git config --global --add safe.directory {project}" in problem
