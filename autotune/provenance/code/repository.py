"""The git repository around some files: commit, diff against it, and what is not tracked yet."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.provenance.code import git
from autotune.provenance.code.files import held_open
from autotune.provenance.document import Documented
from autotune.provenance.variables import mask_text

DIFF_BYTES = 4 << 20
"""What is kept of a diff; all of it is hashed."""
UNTRACKED_FILES = 1000
UNTRACKED_FILE_BYTES = 256 << 10
"""A larger untracked file is listed with its size only."""
UNTRACKED_BYTES = 4 << 20
"""What is kept of all untracked files together."""

_DIFF = (
    *("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--binary", "--full-index", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--diff-algorithm=myers", "--indent-heuristic", "--unified=3"),
    *("--inter-hunk-context=0", "-O/dev/null", "--submodule=short", "--ignore-submodules=untracked"),
)
"""Spelt out, so that no setting of the user changes the diff and with it the hash."""

_STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=untracked")

_SECRET_FILES = (".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", "id_rsa", "id_ed25519", "id_ecdsa")
_SECRET_WORDS = ("secret", "credential", "password", "token")
_SOURCES = (
    *(".py", ".pyx", ".pyi", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".hip"),
    *(".s", ".asm", ".rs", ".go", ".f90", ".jl", ".java"),
)
"""Endings of programs: a tokenizer is no secret."""
_SECRET_SUFFIXES = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks")
_COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database: it comes and goes while a search runs."""


@dataclass(frozen=True)
class Commit(Documented):
    """Where a repository stands. ``commit`` is ``None`` before the first; ``branch`` when detached."""

    commit: str | None
    branch: str | None
    dirty: bool
    """Whether a tracked file differs from the commit."""


@dataclass(frozen=True)
class Diff(Documented):
    """The tracked files against the commit. ``truncated``: less than all of it is kept."""

    sha256: str
    bytes: int
    truncated: bool


@dataclass(frozen=True)
class Untracked(Documented):
    """A file that git neither tracks nor ignores.

    ``sha256`` is of the contents of small text files, which count as code; ``why`` says why another one
    is only listed: ``binary``, ``large``, ``named like a secret``, ``in use``, ``unreadable``,
    ``not a file``.
    """

    name: str
    bytes: int
    sha256: str | None
    kept: bool
    why: str = ""


@dataclass(frozen=True)
class Repository(Documented):
    """The repository that holds an objective, as it was when it was frozen."""

    head: Commit
    remote: str | None
    """Where ``origin`` is, credentials masked."""
    diff: Diff | None
    """``None`` where git could not tell in time."""
    untracked: tuple[Untracked, ...]
    untracked_count: int
    """How many there are; only the first thousand are listed."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """``diff`` and ``untracked/NAME``: what is kept."""


def read_commit(folder: Path, seconds: float = 2.0) -> Commit | None:
    """Commit, branch and dirtiness of the repository around ``folder``; ``None`` where there is none."""
    text = git.ask(folder, *_STATUS, "--untracked-files=no", seconds=seconds)
    return None if text is None else _parse_status(text)[0]


def read_repository(files: Sequence[Path], seconds: float = 5.0) -> tuple[Repository | None, str]:
    """The repository that most of ``files`` belong to, or ``None`` and the reason why there is none.

    ``seconds`` bounds each of half a dozen questions to git.
    """
    problems = []
    for folder, own in _by_repository(files):
        found, problem = _read_around(folder, own, seconds)
        if found is not None:
            return found, ""
        problems.append(problem)
    return None, problems[0] if problems else "not in a git repository"


def _by_repository(files: Iterable[Path]) -> list[tuple[Path, list[Path]]]:
    """The folders with a ``.git`` that hold some of ``files``, each with those; files in none are left out.

    The folder with most files comes first, of two with as many the outer one. Each is asked for its own files
    alone, since one file outside of a repository makes git refuse all of them.
    """
    found: dict[Path, list[Path]] = {}
    for file in files:
        root = next((one for one in file.parents if os.path.exists(one / ".git")), None)  # noqa: PTH110
        if root is not None:
            found.setdefault(root, []).append(file)
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), len(pair[0].parts)))


def _read_around(folder: Path, files: Sequence[Path], seconds: float) -> tuple[Repository | None, str]:
    top = git.ask(folder, "rev-parse", "--show-toplevel", seconds=seconds)
    if not top:
        return None, _unreadable(folder)
    root = Path(top.rstrip("\n"))
    # Files that git ignores (an installed package in a project's .venv) are no part of the repository.
    known = git.ask(
        root,
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
        "--",
        *map(str, files),
        seconds=seconds,
    )
    if known is None:
        return None, f"git cannot read the index of {root.name}, or not within {seconds:g} s"
    if not known:
        return None, f"the repository {root.name} does not hold them"
    status = git.ask(root, *_STATUS, "--untracked-files=all", seconds=seconds)
    if status is None:
        return None, f"git could not tell the status of {root.name} within {seconds:g} s"
    head, names = _parse_status(status)
    diff = _diff(root, head, seconds)
    untracked, contents = _freeze_untracked(root, names)
    artifacts = {f"untracked/{name}": content for name, content in contents.items()}
    if diff is not None and diff.size:
        artifacts["diff"] = diff.kept
    remote = git.ask(root, "config", "--get", "remote.origin.url", seconds=seconds)
    repository = Repository(
        head=head,
        remote=mask_text(remote.strip()) if remote else None,
        diff=Diff(diff.sha256, diff.size, diff.truncated) if diff is not None else None,
        untracked=untracked,
        untracked_count=len(names),
        artifacts=artifacts,
    )
    return repository, ""


def _unreadable(root: Path) -> str:
    """Why git names no repository where there is a ``.git``. It refuses one that another user owns."""
    if root.stat().st_uid != os.getuid():
        return (
            f"git refuses the repository {root.name}, which another user owns, until it is trusted:"
            f" git config --global --add safe.directory {root}"
        )
    return f"git cannot read the repository {root.name}"


def _diff(root: Path, head: Commit, seconds: float) -> git.Output | None:
    if not head.dirty:  # to ask would have git look at all files once more
        return git.NOTHING
    against = head.commit
    if against is None:  # before the first commit: everything is new
        empty = git.ask(root, "hash-object", "-t", "tree", "/dev/null", seconds=seconds)
        against = (empty or "").strip() or "HEAD"
    return git.stream(root, (*_DIFF, against), limit=DIFF_BYTES, seconds=seconds)


def _parse_status(text: str) -> tuple[Commit, list[str]]:
    """What ``git status --porcelain=v2 --branch -z`` says, and the untracked names, sorted."""
    commit = branch = None
    dirty, untracked = False, []
    entries = iter(text.split("\0"))
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            key, _, value = rest.partition(" ")
            if key == "branch.oid" and value != "(initial)":
                commit = value
            if key == "branch.head" and value != "(detached)":
                branch = value
        elif kind == "?":
            untracked.append(rest)
        elif kind in ("1", "2", "u"):
            dirty = True
            if kind == "2":
                next(entries, "")  # a rename: its old name follows
    return Commit(commit, branch, dirty), sorted(untracked)


def _freeze_untracked(root: Path, names: Iterable[str]) -> tuple[tuple[Untracked, ...], dict[str, bytes]]:
    listed, contents, room = [], {}, UNTRACKED_BYTES
    for name in list(names)[:UNTRACKED_FILES]:
        shown = _as_text(name)
        size, content, why = _read(root / name, name)
        if content is None:
            listed.append(Untracked(shown, size, None, False, why))
            continue
        kept = len(content) <= room
        if kept:
            room -= len(content)
            contents[shown] = content
        listed.append(
            Untracked(shown, size, hashlib.sha256(content).hexdigest(), kept, "" if kept else "no room")
        )
    return tuple(listed), contents


def _as_text(name: str) -> str:
    """A file's name as text, in quotes and with escapes (as git does it) where it is not UTF-8 or begins with
    a quote, so that different names stay different."""
    raw = os.fsencode(name)
    text = raw.decode(errors="surrogateescape")
    odd = {c for c in text if 0xDC80 <= ord(c) <= 0xDCFF}
    if not odd and not text.startswith('"'):
        return text
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = (f"\\{ord(c) - 0xDC00:03o}" if c in odd else c for c in text)
    return f'"{"".join(escaped)}"'


def _read(path: Path, name: str) -> tuple[int, bytes | None, str]:
    """Size, contents and, where they do not count as code, why not."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return status.st_size, os.readlink(path).encode(errors="surrogateescape"), ""  # noqa: PTH115
        if not stat.S_ISREG(status.st_mode):
            return 0, None, "not a file"
        if named_like_secret(name):
            return status.st_size, None, "named like a secret"
        if status.st_size > UNTRACKED_FILE_BYTES:
            return status.st_size, None, "large"
        if name.endswith(_COMPANIONS) or held_open(status):
            return status.st_size, None, "in use"
        content = path.read_bytes()
    except OSError:
        return 0, None, "unreadable"
    binary = b"\0" in content
    return len(content), None if binary else content, "binary" if binary else ""


def named_like_secret(name: str) -> bool:
    """Whether a file's name says that it holds credentials: then its contents are not kept."""
    base = Path(name).name.lower()
    stem = Path(base)
    return (
        base.startswith(_SECRET_FILES)
        or stem.suffix in (*_SECRET_SUFFIXES, ".env")
        or (any(word in base for word in _SECRET_WORDS) and stem.suffix not in _SOURCES)
    )
