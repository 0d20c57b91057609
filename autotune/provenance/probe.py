"""What works on this machine, and what is missing for what. Everything is tried, nothing is assumed.

Each probe is bounded in time and leaves nothing behind. Packages are not imported, since some take seconds:
for those a capability says only whether they are installed, and which version.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.metadata
import importlib.util
import os
import platform
import shlex
import shutil
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from autotune.provenance import asking, postgres
from autotune.provenance.compiler import NoCompilerError, c_compiler
from autotune.provenance.document import Documented
from autotune.provenance.host.cgroup import Group, find_group
from autotune.provenance.host.system import System
from autotune.provenance.software import version_line

_SECONDS = 20.0
"""No single program is waited for longer."""


@dataclass(frozen=True)
class Capability(Documented):
    """One thing that works here or does not."""

    name: str
    available: bool
    detail: str
    """Which one it is (a version, a folder), or why it does not work."""
    needed_for: str
    remedy: str = ""
    """What to do where it is missing."""


def probe() -> tuple[Capability, ...]:
    """Try everything: a second or less where nothing hangs."""
    return tuple(_tried(one) for one in PROBES)


def _tried(one: Callable[[], Capability]) -> Capability:
    """The result of one probe, also where a full disk or a read-only folder keeps it from trying at all."""
    try:
        return one()
    except OSError as error:
        name = getattr(one, "__name__", "probe").replace("_", " ")
        remedy = "set TMPDIR to a folder that has room and may be written"
        return Capability(name, False, f"could not be tried: {error}", "what its name says", remedy)


# -- tools -----------------------------------------------------------------------------------------


def python() -> Capability:
    """The version of the interpreter."""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return Capability(
        "python", sys.version_info >= (3, 11), version, "autotune itself", "install Python 3.11 or newer"
    )


def gcc() -> Capability:
    """Compile a function and call it: headers, linker and a folder that allows it are part of the answer."""
    needed, remedy = "objectives in C, such as gemm-c", "apt install gcc libc6-dev"
    try:
        command = c_compiler()
    except NoCompilerError as error:
        return Capability("gcc", False, str(error), needed, remedy)
    with tempfile.TemporaryDirectory(prefix="autotune-probe-") as folder:
        source, library = Path(folder, "answer.c"), Path(folder, "answer.so")
        source.write_text("#include <stdlib.h>\nint answer(void) { return abs(-42); }\n")
        done = _run([*command, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)])
        if isinstance(done, str) or done.returncode:
            why = done if isinstance(done, str) else done.stderr.strip()[-200:]
            return Capability("gcc", False, f"{shlex.join(command)} cannot compile: {why}", needed, remedy)
        try:
            answer = ctypes.CDLL(str(library)).answer()
        except OSError as error:
            why = f"what it compiles cannot be loaded: {error}"
            return Capability("gcc", False, why, needed, "set TMPDIR to a folder that is not mounted noexec")
    return Capability("gcc", answer == 42, _version(command), needed, remedy)


def tool(name: str, needed_for: str, remedy: str) -> Capability:
    """A program on PATH that answers when asked for its version."""
    path = shutil.which(name)
    if path is None:
        return Capability(name, False, "not on PATH", needed_for, remedy)
    done = _run([path, "--version"])
    if isinstance(done, str) or done.returncode:
        why = done if isinstance(done, str) else f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"
        return Capability(name, False, f"{path}: {why}", needed_for, remedy)
    return Capability(name, True, version_line(done.stdout), needed_for)


# -- the kernel ------------------------------------------------------------------------------------


def memory_cgroup() -> Capability:
    """Make a child group with a memory limit, and remove it again."""
    needed = "a memory cap that also counts children and files in memory (else: RLIMIT_AS)"
    remedy = "run as root, or let systemd delegate a group: systemd-run --user --scope -p Delegate=yes ..."
    group = find_group(System(), "memory")
    if group is None:
        return Capability("memory cgroup", False, "no control groups are mounted", needed, remedy)
    reasons = []
    for folder in group.upwards():
        why = _try_group(group, folder)
        if not why:
            return Capability("memory cgroup", True, f"version {group.version}, below {folder}", needed)
        reasons.append(f"{folder}: {why}")
    return Capability("memory cgroup", False, "; ".join(reasons), needed, remedy)


def _try_group(group: Group, folder: str) -> str:
    """Why no limited group can be made in ``folder``; empty where one can."""
    child = Path(folder, f"autotune-probe-{os.getpid()}")
    try:
        child.mkdir()
    except OSError as error:
        return error.strerror or str(error)
    try:
        limit = child / ("memory.limit_in_bytes" if group.version == 1 else "memory.max")
        if not limit.exists():
            return "the memory controller is not passed on to its children"
        limit.write_text(str(1 << 30))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        child.rmdir()
    return ""


_ADDRESS_SPACE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
try:
    bytearray(512 << 20)
except MemoryError:
    print("refused")
"""


def address_space_limit() -> Capability:
    """In a child: set RLIMIT_AS and allocate more."""
    needed, remedy = "memory caps of trials without a control group", "none: run in another container"
    done = _run([sys.executable, "-I", "-S", "-c", _ADDRESS_SPACE])
    works = not isinstance(done, str) and done.stdout.strip() == "refused"
    detail = "a child's larger allocation is refused" if works else _why(done, "the limit is not enforced")
    return Capability("RLIMIT_AS", works, detail, needed, "" if works else remedy)


_PINNING = """
import os
for cpu in sorted(os.sched_getaffinity(0)):
    os.sched_setaffinity(0, {cpu})
    assert os.sched_getaffinity(0) == {cpu}, cpu
    print(cpu, end=" ")
"""


def core_pinning() -> Capability:
    """In a child: pin to each allowed core in turn."""
    needed, remedy = "steady CPU measurements", "allow sched_setaffinity (seccomp profile of the container)"
    done = _run([sys.executable, "-I", "-S", "-c", _PINNING])
    if isinstance(done, str) or done.returncode:
        return Capability("core pinning", False, _why(done, "refused"), needed, remedy)
    return Capability("core pinning", True, f"{len(done.stdout.split())} cores", needed)


_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTRIBUTE_BYTES = 128
_USER_ONLY = 1 << 5 | 1 << 6
"""exclude_kernel and exclude_hv: what an ordinary user may count."""


def performance_counters() -> Capability:
    """Open a hardware counter of our own process, and close it."""
    needed = "cycles and cache misses beside readings"
    remedy = "sysctl kernel.perf_event_paranoid=2 or lower; virtual machines need a virtual PMU"
    number = _PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return Capability("perf counters", False, f"not tried on {platform.machine()}", needed, remedy)
    # struct perf_event_attr: type (0: hardware), size, config (0: cycles), ..., flags at byte 40.
    attribute = struct.pack("IIQQQQQ", 0, _ATTRIBUTE_BYTES, 0, 0, 0, 0, _USER_ONLY).ljust(
        _ATTRIBUTE_BYTES, b"\0"
    )
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.syscall(number, attribute, 0, -1, -1, 0)
    if descriptor < 0:
        why = ctypes.get_errno()
        detail = "this processor shows no counters" if why == errno.ENOENT else os.strerror(why)
        return Capability("perf counters", False, detail, needed, remedy)
    os.close(descriptor)
    return Capability("perf counters", True, "processor cycles", needed)


# -- databases and packages ------------------------------------------------------------------------


def sqlite() -> Capability:
    """Open a database in write-ahead mode where temporary files go."""
    needed = "the default store"
    with tempfile.TemporaryDirectory(prefix="autotune-probe-") as folder:
        try:
            connection = sqlite3.connect(Path(folder, "probe.db"))
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            connection.close()
        except sqlite3.Error as error:
            return Capability("sqlite", False, str(error), needed, "put the store on a local file system")
    detail = f"{sqlite3.sqlite_version}, journal mode {mode}"
    return Capability("sqlite", mode == "wal", detail, needed, "put the store on a local file system")


def postgresql() -> Capability:
    """The package that talks to a server; a server of its own is not needed on this machine."""
    found = package(
        "psycopg", "psycopg", "a store that a team shares (postgresql://...)", 'pip install "psycopg[binary]"'
    )
    detail = f"psycopg {found.detail}" if found.available else found.detail
    return Capability("postgresql", found.available, detail, found.needed_for, found.remedy)


def postgresql_server() -> Capability:
    """A server that can be started here, with pgbench."""
    needed = "the objective postgres-store"
    try:
        found = postgres.server_programs()
    except postgres.NoServerError as error:
        return Capability("postgresql server", False, str(error), needed, postgres.REMEDY)
    return Capability("postgresql server", True, f"{found.version} in {found.folder}", needed)


def package(module: str, distribution: str, needed_for: str, remedy: str) -> Capability:
    """An installed package, found without importing it."""
    try:
        present = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a broken parent package
        present = False
    if not present:
        return Capability(module, False, "not installed", needed_for, remedy)
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        version = "installed, version unknown"
    return Capability(module, True, version, needed_for)


PROBES: tuple[Callable[[], Capability], ...] = (
    python,
    gcc,
    lambda: tool("make", "make setup, make test", "apt install make"),
    lambda: tool("git", "recording commit and diff of the tuned code", "apt install git"),
    memory_cgroup,
    address_space_limit,
    core_pinning,
    performance_counters,
    sqlite,
    postgresql,
    postgresql_server,
    lambda: package("torch", "torch", "training and inference objectives; optuna-gp", "pip install torch"),
    lambda: package("ray", "ray", "autotune's strategies within Ray Tune", "pip install ray"),
    lambda: package("optuna", "optuna", "the strategies optuna-*", "pip install optuna"),
    lambda: package("skopt", "scikit-optimize", "the strategies skopt-*", "pip install scikit-optimize"),
    lambda: package("pyarrow", "pyarrow", "export to Parquet", "pip install pyarrow"),
)
"""In the order in which they are shown."""


def _run(command: Sequence[str]) -> CompletedProcess[str] | str:
    """The finished program, or the reason why it did not finish."""
    try:
        done = asking.answer(asking.start(command), _SECONDS)
    except OSError as error:
        return str(error)
    return f"no answer within {_SECONDS:g} s" if done is None else done


def _version(command: Sequence[str]) -> str:
    done = _run([*command, "--version"])
    return shlex.join(command) if isinstance(done, str) or done.returncode else version_line(done.stdout)


def _why(done: CompletedProcess[str] | str, otherwise: str) -> str:
    if isinstance(done, str):
        return done
    lines = done.stderr.strip().splitlines()
    return lines[-1] if done.returncode and lines else otherwise
