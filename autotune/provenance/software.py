"""The software that can change a measurement: system, Python, packages, compilers."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from autotune.provenance import asking
from autotune.provenance.document import Documented
from autotune.provenance.host.system import System, key_values

COMPILERS = ("cc", "gcc", "g++", "clang", "clang++", "nvcc", "hipcc", "icx", "ld")


@dataclass(frozen=True)
class OperatingSystem(Documented):
    """``None`` is unknown."""

    kernel: str | None
    """Release, such as ``6.1.0-18-amd64``."""
    build: str | None
    distribution: str | None
    libc: str | None


@dataclass(frozen=True)
class Python(Documented):
    """The interpreter, by what it is and not by where it lies."""

    version: str
    implementation: str
    compiler: str
    build: str
    executable: str | None
    """Hash of the size and the first mebibyte of the executable."""
    free_threaded: bool


def read_operating_system(system: System) -> OperatingSystem:
    release = system.text("/etc/os-release") or system.text("/usr/lib/os-release") or ""
    names = key_values(release, "=")
    distribution = names.get("PRETTY_NAME") or names.get("NAME")
    return OperatingSystem(
        kernel=system.text("/proc/sys/kernel/osrelease") or (os.uname().release if system.live else None),
        build=system.text("/proc/sys/kernel/version") or (os.uname().version if system.live else None),
        distribution=distribution.strip("\"'") if distribution else None,
        libc=_libc() if system.live else None,
    )


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):  # another C library
        return None


def read_python() -> Python:
    """The running interpreter."""
    return Python(
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        compiler=platform.python_compiler(),
        build=" ".join(platform.python_build()),
        executable=_fingerprint(Path(sys.executable)) if sys.executable else None,
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    )


def _fingerprint(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return hashlib.sha256(b"%d\0" % size + file.read(1 << 20)).hexdigest()[:16]
    except OSError:
        return None


# -- packages --------------------------------------------------------------------------------------


def read_packages(folders: Iterable[str] | None = None) -> dict[str, str]:
    """Installed distributions: normalised name -> version, the first on ``sys.path`` as on import.

    Read from the names of the ``.dist-info`` and ``.egg-info`` entries, which the packaging
    specifications fix: opening every metadata file, as ``importlib.metadata`` does, costs ten times more.
    """
    found: dict[str, str] = {}
    for folder in sys.path if folders is None else folders:
        with suppress(OSError):
            for entry in sorted(os.listdir(folder or ".")):  # noqa: PTH208
                name, version = _distribution(Path(folder or "."), entry)
                if name and version:
                    found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    return dict(sorted(found.items()))


def _distribution(folder: Path, entry: str) -> tuple[str, str]:
    """Name and version of one entry of ``sys.path``; empty texts for anything that is no distribution."""
    stem, _, suffix = entry.rpartition(".")
    if suffix not in ("dist-info", "egg-info"):
        return "", ""
    name, _, version = stem.partition("-")
    if suffix == "egg-info":
        version = re.sub(r"-py\d.*$", "", version)
    return name, version or _recorded_version(folder / entry)


def _recorded_version(entry: Path) -> str:
    """The version of an old-style development install, whose entry has no version in its name."""
    try:
        text = (entry / "PKG-INFO").read_text(errors="replace")
    except OSError:
        return ""
    return key_values(text, ":").get("Version", "")


# -- compilers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VersionQueries:
    """Programs asked for their version, all at once, while the caller does something else."""

    running: Mapping[str, Popen[str]]
    deadline: float

    @classmethod
    def start(cls, programs: Iterable[str] = COMPILERS, seconds: float = 3.0) -> VersionQueries:
        """Ask those of ``programs`` that are on ``PATH``; stop waiting after ``seconds`` in all."""
        running = {}
        for program in programs:
            path = shutil.which(program)
            if path is None:
                continue
            with suppress(OSError):  # on PATH and still not executable
                env = {**os.environ, "LC_ALL": "C"}
                running[program] = asking.start([path, "--version"], errors_too=True, env=env)
        return cls(running, time.monotonic() + seconds)

    def result(self) -> dict[str, str]:
        """Program -> its version in one line; ``"unknown"`` for one that failed or took too long."""
        versions = {}
        for program, process in self.running.items():
            # One that hangs must not keep us from reading what the others have long written.
            said = asking.answer(process, max(0.1, self.deadline - time.monotonic()))
            versions[program] = version_line(said.stdout) if said and not said.returncode else "unknown"
        return versions


def version_line(text: str) -> str:
    """The line that says the version: the first, but for nvcc the one with the release and build."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"\brelease \d", line):
            return line
    return lines[0][:200] if lines else "unknown"
