"""Kernels that are made wrong on purpose, on the device: whether its check catches each of them, every time.

    python -m benchmarks.gpu_planted < request.json > answer.json

A fault is a change of a ready kernel's text: a tail that is off by one, a barrier that is missing, an output
that is left from the last trial. In a process of its own each is checked with several configurations and
several seeds, after the right kernel, whose answers then lie in memory that was given back. Beside it runs a
search in which every other kernel writes where no memory is, after which a context of CUDA is of no use: the
others have to be right all the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from autotune.errors import InputError
from autotune.space.configuration import Value
from autotune.space.spec import PythonObjective, StudySpec
from benchmarks.gpu_plan import Findings, Part, told
from benchmarks.gpu_search import (
    DRY_PROFILE,
    DRY_SECONDS,
    Bench,
    configured,
    facts,
    listed,
    search,
    space,
)

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "objectives" / "kernels"
HELPERS = ("triton_objective.py", "triton_compile.py", "triton_gemm_kernels.py", "triton_padding.py")
"""What ready kernels import from beside them."""

SEEDS = 3

SIZES: Mapping[str, Mapping[str, Value]] = {
    "triton-gemm": {"m": 1000, "n": 999, "k": 1001},
    "cuda-gemm": {"m": 1003, "n": 1001, "k": 1000},
}
TINY: Mapping[str, Mapping[str, Value]] = {
    "triton-gemm": {"m": 33, "n": 35, "k": 70, "interpret": True},
    "cuda-gemm": {"m": 70, "n": 67, "k": 36, "device": "cpu"},
}

SMALL_TILES: Mapping[str, Value] = {"block_m": 32, "block_n": 64, "block_k": 32, "warps": 4, "stages": 3}
LARGE_TILES: Mapping[str, Value] = {"block_m": 128, "block_n": 128, "block_k": 64, "warps": 8, "stages": 3}
# Rows of 1000 and of 104 halves are multiples of 16 bytes, and no multiples of a tile.
DESCRIPTORS: Mapping[str, Value] = {"loads": "descriptors", "programs": 1}
DESCRIBED: Mapping[str, Value] = {"n": 1000, "k": 104}
# Several warps a block: in one alone a missing barrier is no fault.
ONE_STAGE: Mapping[str, Value] = {"block_m": 64, "block_n": 64, "thread_m": 4, "thread_n": 4, "read": 4}
TWO_STAGES: Mapping[str, Value] = {**ONE_STAGE, "stages": 2, "block_k": 8, "unroll": 8}


@dataclass(frozen=True)
class Fault:
    """A change of a kernel's text."""

    space: str
    file: str
    right: str
    wrong: str
    rows: tuple[Mapping[str, Value], ...]
    """What the configurations have instead of the default's knobs."""
    place: int | None = 1
    """Which of several places with this text; ``None``: all of them."""
    sizes: Mapping[str, Value] = field(default_factory=dict)
    """What the problem has instead, where a configuration is not possible for every problem."""


_WRITES = "c[(size_t)at_row * n + at_column] ="

_LAST_OF_K, _STORE = "_depth - begin", "store_tile(c_part"


def _triton(right: str, wrong: str, *rows: Mapping[str, Value]) -> Fault:
    return Fault("triton-gemm", "triton_gemm_kernels.py", right, wrong, rows, place=None)


def _described(right: str, wrong: str) -> Fault:
    rows = tuple({**tiles, **DESCRIPTORS} for tiles in (SMALL_TILES, LARGE_TILES))
    return Fault("triton-gemm", "triton_gemm_kernels.py", right, wrong, rows, sizes=DESCRIBED)


def _padded(right: str, wrong: str) -> Fault:
    rows = tuple({**tiles, "pad": True} for tiles in (SMALL_TILES, {**SMALL_TILES, **DESCRIPTORS}))
    return Fault("triton-gemm", "triton_padding.py", right, wrong, rows)


def _cuda(right: str, wrong: str, *rows: Mapping[str, Value], place: int = 1) -> Fault:
    return Fault("cuda-gemm", "cuda_gemm.cu", right, wrong, rows, place)


FAULTS: Mapping[str, Fault] = {
    "Triton: one of k too many": _triton(_LAST_OF_K, "_depth + 1 - begin", SMALL_TILES, LARGE_TILES),
    "Triton: the last of k left out": _triton(_LAST_OF_K, "_depth - 1 - begin", SMALL_TILES, LARGE_TILES),
    "Triton: a row too many": _triton("rows < m - tile_m", "rows <= m - tile_m", SMALL_TILES, LARGE_TILES),
    "Triton: output left from the last trial": _triton(
        _STORE, f"if k < 0:\n        {_STORE}", SMALL_TILES, LARGE_TILES
    ),
    "Triton: a part left from the last trial": _triton(
        _STORE, f"if part == 0:\n        {_STORE}", {**SMALL_TILES, "split_k": 2}
    ),
    "Triton, descriptors: the last tile left out": _described(
        "tiles_m * tiles_n, PROGRAMS", "tiles_m * tiles_n - 1, PROGRAMS"
    ),
    "Triton, descriptors: output left from the last trial": _described(
        "c_tiles.store", "if k < 0:\n                c_tiles.store"
    ),
    "Triton, padded: nothing is written behind the ends of rows": _padded(
        "column < copy_columns", "column < columns"
    ),
    "Triton, padded: the last of each row is not copied": _padded(
        "(column < columns)[None, :]", "(column < columns - 1)[None, :]"
    ),
    "CUDA C: no barrier before the first product": _cuda("__syncthreads();", "", ONE_STAGE, TWO_STAGES),
    "CUDA C: no barrier before a tile is overwritten": _cuda("__syncthreads();", "", ONE_STAGE, place=2),
    "CUDA C: no barrier behind a tile that was loaded": _cuda(
        "__syncthreads();", "", ONE_STAGE, TWO_STAGES, place=3
    ),
    "CUDA C: a row too many": _cuda("at_row < m", "at_row <= m", ONE_STAGE, TWO_STAGES),
    "CUDA C: output left from the last trial": _cuda(f"{_WRITES} sum[i][j];", ";", ONE_STAGE, TWO_STAGES),
}

STICKY = Fault(
    "cuda-gemm", "cuda_gemm.cu", _WRITES,
    "c[(size_t)at_row * n + at_column + (BLOCK_M == 32 ? (size_t)1 << 38 : 0)] =",
    ({"block_m": 32}, {"block_m": 16}, {"block_m": 32, "block_k": 32}, {"block_m": 16, "block_k": 32}),
)  # fmt: skip
"""Tiles of 32 rows write a terabyte behind the matrix."""


def planted_part(bench: Bench, names: Sequence[str], weight: float) -> Part:
    """All faults of these spaces, and the search that goes on after errors that spoil the context."""

    def run(seconds: float, found: Findings) -> None:
        asked = [name for name, fault in FAULTS.items() if fault.space in names]
        with Inquiry(bench.dry, asked) as inquiry:
            try:
                if "cuda-gemm" in names:
                    found.keep(sticky=_tried(bench, seconds))
                # It had all that time; what it takes beyond that is for its own end.
                inquiry.wait(DRY_SECONDS if bench.dry else seconds)
            finally:
                answers = inquiry.answers()
                found |= {"faults": answers, "untried": len(asked) - len(answers)}

    return Part("planted faults", weight, run, least=bench.least(35.0))


def _tried(bench: Bench, seconds: float) -> dict[str, Any]:
    """What came of :func:`sticky`, or why nothing did: the faults are looked at all the same."""
    try:
        return sticky(bench, seconds)
    except Exception as error:  # noqa: BLE001 - as above
        return {"problem": told(error)}


def sticky(bench: Bench, seconds: float) -> dict[str, Any]:
    """A search over :data:`STICKY`'s configurations: what came of the wrong ones and of the right ones."""
    spec = space(bench, "cuda-gemm", (TINY if bench.dry else SIZES)["cuda-gemm"])
    with planted(spec, STICKY) as wrong:
        rows = [configured(wrong, knobs) for knobs in STICKY.rows]
        result = search(
            replace(bench, trials=None), listed(wrong, rows), tuning=seconds, trials=len(rows)
        ).result
    trials = [t for t in result.trials if t.status.failed or t.metrics]
    return {
        "wrong": [str(t.status) for t in trials if t.configuration["block_m"] == 32],
        "right": [str(t.status) for t in trials if t.configuration["block_m"] != 32],
        "messages": sorted({t.message[:200] for t in trials if t.message}),
    }


@contextmanager
def planted(spec: StudySpec, fault: Fault) -> Iterator[StudySpec]:
    """The same study of a copy of the kernel that has the fault."""
    assert isinstance(spec.objective, PythonObjective)
    file, _, kind = Path(spec.objective.target).name.partition(":")
    with tempfile.TemporaryDirectory(prefix="autotune-planted-") as folder:
        for name in {*HELPERS, file, fault.file}:
            shutil.copy(KERNELS / name, folder)
        path = Path(folder, fault.file)
        path.write_text(_changed(path.read_text(), fault))
        yield replace(spec, objective=PythonObjective(f"{file}:{kind}", Path(folder)))


def _changed(text: str, fault: Fault) -> str:
    parts = text.split(fault.right)
    if len(parts) <= (fault.place or 1):
        raise LookupError(f"{fault.file} has {fault.right!r} {len(parts) - 1} times, not {fault.place or 1}")
    if fault.place is None:
        return fault.wrong.join(parts)
    before, behind = parts[: fault.place], parts[fault.place :]
    return fault.right.join(before) + fault.wrong + fault.right.join(behind)


@contextmanager
def own_helpers() -> Iterator[None]:
    """An objective that is loaded meanwhile imports what lies beside it, not what another has imported."""
    names = [Path(name).stem for name in HELPERS]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)


# -- in a process of its own -------------------------------------------------------------------


COMMAND = (sys.executable, "-m", "benchmarks.gpu_planted")


class Inquiry:
    """A process that checks faults meanwhile, and writes down each when it is done.

    Where it ends before all are done, another one goes on: behind the fault that has spoilt the context, or
    that it died of. It does not outlive the block.
    """

    def __init__(self, dry: bool, names: Sequence[str], command: Sequence[str] = COMMAND) -> None:
        self._dry = dry
        self._names = names
        self._command = command
        self._died_of: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="autotune-planted-")
        self._said: list[Path] = []
        self._errors = Path(self._folder.name, "errors")
        self._process = self._begin(self._names)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def wait(self, seconds: float) -> None:
        """Wait until all are done. Raises :class:`PlantedError` where some stay untried."""
        until = time.monotonic() + seconds
        missing = self._names
        while missing:
            try:
                code = self._process.wait(until - time.monotonic())
            except subprocess.TimeoutExpired as error:
                raise PlantedError(f"not done after {seconds:.0f} s") from error
            before, missing = missing, [name for name in missing if name not in self.answers()]
            if missing and (code or missing == before):
                errors = self._errors.read_text(errors="replace").strip()
                problem = f"its process ended with {code}: {errors[-300:]}"
                self._died_of[missing[0]] = {"planted": 0, "caught": 0, "said": [], "problems": [problem]}
                missing = missing[1:]
            if missing:
                self._process = self._begin(missing)

    def answers(self) -> dict[str, Any]:
        """What is known by now, by fault."""
        found = dict(self._died_of)
        for said in self._said:
            for line in said.read_text().splitlines(keepends=True):
                if line.startswith("{") and line.endswith("\n"):  # the last one may have been cut off
                    found |= json.loads(line)
        return found

    def _begin(self, names: Sequence[str]) -> subprocess.Popen[bytes]:
        request = json.dumps({"dry": self._dry, "names": list(names)})
        self._said.append(Path(self._folder.name, f"said-{len(self._said)}"))
        with tempfile.TemporaryFile("w+") as asked, self._said[-1].open("w") as said:
            asked.write(request)
            asked.seek(0)
            with self._errors.open("w") as errors:
                return subprocess.Popen(self._command, stdin=asked, stdout=said, stderr=errors, cwd=ROOT)


class PlantedError(Exception):
    """Not all faults were tried; the text says why."""


def main() -> None:
    request = json.load(sys.stdin)
    for name in request["names"]:
        print(json.dumps({name: check(FAULTS[name], bool(request["dry"]))}), flush=True)
        if _is_spoilt():
            return


def _is_spoilt() -> bool:
    """Whether an error has spoilt the context of this process, so that nothing works any more."""
    import torch

    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def check(fault: Fault, dry: bool) -> dict[str, Any]:
    """How often the fault was planted and caught, what was said of it, and what else went wrong.

    Configurations that the space does not have on this device are left out.
    """
    import numpy as np

    from autotune.measure.loading.load import load_objective
    from autotune.measure.objective import Context, WrongAnswer
    from autotune.space.reading.reader import read_spec

    device = facts(DRY_PROFILE) if dry else facts()
    workload = {**(TINY if dry else SIZES)[fault.space], **fault.sizes}
    sizes = {size: workload[size] for size in "mnk"}  # which knobs there are depends on them
    spec = read_spec(ROOT / "searchspaces" / f"{fault.space}.yaml", device=device, workload=sizes)
    count = 0
    said: list[str] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="autotune-planted-") as cache, planted(spec, fault) as wrong:
        context = Context({**spec.workload, **workload}, device, Path(cache))
        for knobs in fault.rows:
            try:
                row = configured(spec, knobs)
            except InputError:
                continue
            for study, is_wrong in ((spec, False), (wrong, True)):
                try:
                    with own_helpers():
                        kernel: Any = load_objective(study.objective, context)
                    loaded = kernel.load(kernel.prepare(row))
                    for seed in range(1 if dry else SEEDS):
                        count += is_wrong
                        try:
                            kernel.check(loaded, np.random.default_rng(seed))
                        except WrongAnswer as caught:
                            (said if is_wrong else problems).append(str(caught))
                except Exception as error:  # noqa: BLE001 - what else goes wrong is an answer too
                    problems.append(f"{type(error).__name__}: {error}"[:300])
    return {"planted": count, "caught": len(said), "said": sorted(set(said))[:3], "problems": problems[:3]}


if __name__ == "__main__":
    main()
