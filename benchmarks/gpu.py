"""All that needs a GPU, in one command and some minutes: kernels built, checked, tuned, timed and compared.

    python -m benchmarks.gpu --minutes 9 --out results/h200

It first runs every kernel once, so that surprises show within a minute; then it compares the Triton product
with triton.autotune over the same list, cuBLAS and torch.compile, for a square, a skinny and a ragged
shape; then it plants faults, each of which has to be caught; then it tunes the other kernels, as many as
there is time for. The minutes are shared out among these parts, and whatever is left of one goes to those
behind it. A part that fails is written down, and the others go on; one that does not end is ended. After each
part, and within the longer ones, all of this is written to ``--out``:

    report.md      the tables          results.json   all numbers, of every round
    study.db       the store: every trial and reading, for  autotune show --store
    machine.json   machine, driver, packages, versions, commit
    *.svg          a timeline of a search, speeds, shares of the roofline

With more time, run the parts alone: ``--parts gemm``, ``--parts tune --kernels triton-attention``. Without a
GPU the command says what is missing and ends with 2. ``--dry-run`` goes the same way on the CPU, with tiny
sizes, Triton's interpreter and an emulator: whether it works, and no time in it means anything.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from autotune.measure.gpu.prospects import CLOCKS, prospects
from autotune.measure.kernels.compile_cache import write_whole
from autotune.provenance.environment import Environment, capture
from autotune.provenance.probe import Capability
from benchmarks.gpu_gemm import SHAPES, Known, gemm_part
from benchmarks.gpu_kernels import KERNELS, TUNED, smoke_part, tune_part
from benchmarks.gpu_plan import GRACE, UNFINISHED, Done, Part, carry_out
from benchmarks.gpu_planted import TINY as PLANTED
from benchmarks.gpu_planted import planted_part
from benchmarks.gpu_plots import gemm_plot, roofline_plot, timeline_of
from benchmarks.gpu_products import is_missing
from benchmarks.gpu_report import report, time_table
from benchmarks.gpu_search import Bench, facts, gpu_name
from benchmarks.timeline import timeline_svg

ROOT = Path(__file__).parents[1]
PARTS = ("smoke", "gemm", "planted", "tune")
DRY = (
    "**A dry run on the CPU**, at tiny sizes, with Triton's interpreter and CUDA C emulated: it shows that"
    " the command works, and nothing else. No time here says anything of a GPU."
)

UNWATCHED = (
    "**Clocks and power could not all be read** ({}): what NVML does not report discards no reading, and at a"
    " limit of power times are as they were read."
)


def main(arguments: Sequence[str] | None = None) -> int:
    began = time.monotonic()  # trying what there is takes a part of the minutes, too
    options = _options(arguments)
    if options.dry_run:
        os.environ["TRITON_INTERPRET"] = "1"
    if options.dry_run and "results" in options.out.resolve().parts:
        print("a dry run measures nothing that belongs into results/", file=sys.stderr)
        return 2
    work = prospects()
    if not options.dry_run and is_missing(work):
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    environment = capture(ROOT)
    machine = json.dumps(_machine(environment, work), indent=1, default=str)
    (options.out / "machine.json").write_text(machine + "\n")
    with tempfile.TemporaryDirectory(prefix="autotune-gpu-", ignore_cleanup_errors=True) as folder:
        # Beside an open database lie files of its own: what is handed out is a copy.
        store = Path(folder, "study.db")
        bench = Bench(environment, str(store), options.dry_run, options.seed, options.trials)
        unwatched = next((one.detail for one in work if one.name == CLOCKS and not one.available), "")
        writer = _Writer(options, environment, store, began, unwatched)
        grace = math.inf if bench.dry else GRACE
        parts = plan(bench, options)
        if not parts:
            print("nothing of these parts is about these kernels", file=sys.stderr)
            return 2
        carry_out(parts, 60.0 * options.minutes - writer.elapsed, writer, grace=grace)
    print((options.out / "report.md").read_text())
    return 1 if writer.failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0, help="in all")
    parser.add_argument("--out", type=Path, required=True, help="a folder; what is in it is written over")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--kernels", nargs="+", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument(
        "--trials", type=int, help="the most that a search tries (default: what its time allows)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--dry-run", action="store_true", help="the same way on the CPU; no time means anything"
    )
    options = parser.parse_args(arguments)
    options.given = sys.argv[1:] if arguments is None else list(arguments)
    return options


def plan(bench: Bench, options: argparse.Namespace) -> list[Part]:
    """The parts in their order. The first shape is searched twice, so that it gets more.

    Weights are about the seconds that each takes of nine minutes. Of those the comparison of the product
    leaves time for some of the other kernels; a run of ``--parts tune`` alone has time for all of them.
    """
    known = Known()
    parts = []
    if "smoke" in options.parts:
        parts.append(smoke_part(bench, options.kernels, weight=45.0, learnt=known.learn))
    if "gemm" in options.parts and "triton-gemm" in options.kernels:
        weights = {"square": 260.0}
        parts += [gemm_part(bench, name, weights.get(name, 110.0), known) for name in options.shapes]
    if "planted" in options.parts and set(options.kernels) & set(PLANTED):
        parts.append(planted_part(bench, options.kernels, 40.0))
    if "tune" in options.parts:
        parts += [tune_part(bench, name, 13.0) for name in TUNED if name in options.kernels]
    return parts


class _Writer:
    """Writes down what is known, each file whole: a run that is cut off has lost what came after it.

    A file that cannot be written is said, and costs neither the others nor the parts to come.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        environment: Environment,
        store: Path,
        began: float,
        unwatched: str = "",
    ) -> None:
        """``unwatched``: why clocks and power cannot be read here; empty where they can."""
        self._options = options
        self._environment = environment
        self._store = store
        self._began = began
        self._unwatched = unwatched
        self.failed: set[str] = set()
        """Files that could not be written."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def __call__(self, done: Sequence[Done]) -> None:
        last = done[-1]
        if last.problem != UNFINISHED:
            print(f"{self.elapsed:6.1f} s  {last.name}: {last.problem or f'{last.took:.1f} s'}", flush=True)
        parts = [json.loads(json.dumps(one.to_document(), default=str)) for one in done]
        numbers = json.dumps({"head": self._head(), "parts": parts}) + "\n"
        self._write("results.json", lambda: numbers)
        if self._store.exists():
            self._attempt("study.db", lambda: copy_database(self._store, self._options.out / "study.db"))
        results = {part["part"]: part["result"] for part in parts if part["result"]}
        gemms = {n.removeprefix("gemm "): r for n, r in results.items() if n.startswith("gemm ")}
        tuned = {n.removeprefix("tune "): r for n, r in results.items() if n.startswith("tune ")}
        more = []
        if any("race" in one for one in gemms.values()) and self._write("gemm.svg", lambda: gemm_plot(gemms)):
            more.append("![speeds](gemm.svg)")
        drawn = next((one for one in gemms.values() if "timeline" in one), None)
        if drawn and self._write("timeline.svg", lambda: timeline_svg(timeline_of(drawn))):
            more.append("![timeline of the first shape's search](timeline.svg)")
        if any(one.get("roofline") for one in tuned.values()) and self._write(
            "roofline.svg", lambda: roofline_plot(tuned)
        ):
            more.append("![shares of the roofline](roofline.svg)")
        if not self._write("report.md", lambda: "\n\n".join([report(parts, self._head()), *more, ""])):
            # The numbers are in results.json whatever the page thinks of them.
            lines = ["# Kernels on a GPU", "", *self._head(), "", "The tables could not be made.", ""]
            self._write("report.md", lambda: "\n".join([*lines, *time_table(parts), ""]))
            self.failed.add("report.md")

    def _write(self, name: str, text: Callable[[], str]) -> bool:
        def write() -> None:
            file = self._options.out / name
            write_whole(file, text().encode())
            file.chmod(0o644)  # for all to read, as the others are

        return self._attempt(name, write)

    def _attempt(self, name: str, write: Callable[[], None]) -> bool:
        try:
            write()
        except Exception:  # noqa: BLE001 - whatever it is, what else is known is written
            self.failed.add(name)
            print(f"{name} could not be written:", file=sys.stderr)
            traceback.print_exc()
            return False
        self.failed.discard(name)
        return True

    def _head(self) -> list[str]:
        options, environment = self._options, self._environment
        gpus = environment.gpus
        names = ", ".join(gpu.name for gpu in gpus.devices)
        # CUDA works without the management library, which alone tells of drivers, clocks and power.
        what = f"{names}, driver {gpus.driver}" if names else gpu_name()
        given = " ".join(options.given)
        lines = [
            f"`python -m benchmarks.gpu {given}`",
            "",
            f"{what}. Python {platform.python_version()}, {_versions(environment)}."
            f" Commit {_commit(environment)}. Seed {options.seed}, {options.minutes:g} minutes in all.",
        ]
        if options.dry_run:
            return [DRY, "", *lines]
        return [*lines, "", UNWATCHED.format(self._unwatched)] if self._unwatched else lines


def copy_database(source: Path, target: Path) -> None:
    """A copy in one file of a database that may be in use."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
        other.execute("PRAGMA journal_mode=DELETE")


def _machine(environment: Environment, work: Sequence[Capability]) -> dict[str, Any]:
    tried = [{"name": one.name, "available": one.available, "detail": one.detail} for one in work]
    return {"environment": environment.to_document(), "device": dict(facts()), "gpu work": tried}


def _versions(environment: Environment) -> str:
    packages = dict(environment.packages)
    wanted = ("autotune", "torch", "triton", "numpy", "cupy-cuda13x", "nvidia-cuda-nvrtc")
    return ", ".join(f"{name} {packages[name]}" for name in wanted if name in packages)


def _commit(environment: Environment) -> str:
    code = environment.code
    if code is None or code.commit is None:
        return "not known: there is no repository"
    return code.commit[:12] + (" with changes" if code.dirty else "")


if __name__ == "__main__":
    sys.exit(main())
