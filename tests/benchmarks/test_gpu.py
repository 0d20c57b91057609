"""The command for GPUs, where there is none: what it refuses, its lists, its copy of the store."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from autotune.measure.gpu.prospects import DRIVER
from autotune.provenance.device import device_facts, query_gpus
from autotune.provenance.environment import capture
from autotune.space.reading.reader import read_spec
from autotune.store.store import Store
from benchmarks import (
    gpu,
    gpu_gemm,
    gpu_kernels,
    gpu_report,
)
from benchmarks.gpu_plan import Done, Findings, carry_out
from benchmarks.gpu_search import SPACES, Bench, search, seconds_text

no_gpu = pytest.mark.skipif(bool(query_gpus()), reason="there is a GPU here")


@no_gpu
def test_without_a_gpu_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert DRIVER in said and "nvidia-smi" in said
    assert not (tmp_path / "out").exists()


def test_a_dry_run_does_not_go_into_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert gpu.main(["--dry-run", "--out", str(tmp_path / "results" / "cpu")]) == 2


def test_parts_that_have_nothing_to_do_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    given = ["--dry-run", "--parts", "gemm", "--kernels", "cuda-nms", "--out", str(tmp_path / "out")]
    assert gpu.main(given) == 2 and "nothing of these parts" in capsys.readouterr().err


def test_every_ready_kernel_for_a_gpu_is_in_it() -> None:
    ready = {file.stem for pattern in ("triton-*", "cuda-*") for file in SPACES.glob(f"{pattern}.yaml")}
    assert set(gpu_kernels.KERNELS) == ready == set(gpu_kernels.TINY)


def spec(shape: str = "square") -> Any:
    workload = gpu_gemm.SHAPES[shape]
    return read_spec(SPACES / "triton-gemm.yaml", device=device_facts("h200"), workload=workload)


@pytest.mark.parametrize("shape", gpu_gemm.SHAPES)
def test_the_list_is_as_people_write_it_and_splits_nothing(shape: str) -> None:
    found = spec(shape)
    rows = gpu_gemm.people_list(found, 1000)
    assert len(rows) > 60 and len({row.hash for row in rows}) == len(rows)
    assert all(row["split_k"] == 1 for row in rows)
    spilling = [row for row in rows if row["block_m"] * row["block_n"] >= row["warps"] * 32 * 256]
    assert spilling and spilling == [row for row in rows if row not in found.space]
    assert all(row.get("pad", False) is False and row.get("loads", "pointers") == "pointers" for row in rows)
    few = gpu_gemm.people_list(found, 12)
    assert len(few) == 12 and {row.hash for row in few} <= {row.hash for row in rows}


def test_a_run_of_all_parts_is_planned(tmp_path: Path) -> None:
    options = gpu._options(["--out", str(tmp_path)])
    names = [part.name for part in gpu.plan(Bench(capture(None), "unused"), options)]
    assert names[:5] == ["smoke check", "gemm square", "gemm skinny", "gemm ragged", "planted faults"]
    assert len(names) == 5 + len(gpu_kernels.TUNED)


def test_the_smoke_check_of_several_kernels_at_once_names_what_fails(tmp_path: Path) -> None:
    bench = Bench(capture(None), str(tmp_path / "study.db"))
    learnt: list[Any] = []
    found = Findings()
    gpu_kernels.smoke_part(bench, ["no-such", "nor-this"], 1.0, learnt.append).run(5.0, found)
    assert list(found["kernels"]) == ["no-such", "nor-this"] and learnt == [found["kernels"]]
    assert all(one["status"] == "error" and one["message"] for one in found["kernels"].values())
    assert "nor-this" in gpu_report.report([Done("smoke check", 5.0, 1.0, found).to_document()], [])


def test_smoke_checks_of_a_part_that_was_ended_do_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ran on beside the next part, and what it measured was disturbed."""
    ended: list[str] = []

    def waits(bench: Bench, name: str, seconds: float, over: Event) -> dict[str, Any]:
        if name != "quick":
            over.wait(60.0)
        ended.append(name)
        return {"status": "ok"}

    monkeypatch.setattr(gpu_kernels, "smoke", waits)
    part = gpu_kernels.smoke_part(Bench(capture(None), str(tmp_path / "study.db")), ["quick", "a", "b"], 1.0)
    [one] = carry_out([part], 0.1, lambda _: None, grace=0.1)
    assert one.problem.startswith("ended: ") and one.result == {"kernels": {"quick": {"status": "ok"}}}
    assert sorted(ended) == ["a", "b", "quick"]


def test_what_the_smoke_check_took_says_how_long_the_list_may_be() -> None:
    known = gpu_gemm.Known()
    known.learn({"triton-gemm": {"phases": {"prepare": 0.6}}})
    assert known.row_seconds == pytest.approx(0.8)
    known.learn({"triton-gemm": {"status": "error"}})
    assert known.row_seconds == pytest.approx(0.8)
    known.learn({"triton-gemm": {"phases": {"prepare": 9.0}}})
    assert known.row_seconds == gpu_gemm.ROW_SECONDS, "most of that was the first kernel's alone"
    square, ragged = gpu_gemm.SHAPES["square"], gpu_gemm.SHAPES["ragged"]
    known.learn_list(square, 30.0, 20)
    assert known.row(square) == 1.5 and known.row(ragged) == 1.5 * gpu_gemm.RAGGED
    known.learn_list(ragged, 27.0, 10)
    assert known.row(ragged) == pytest.approx(2.7)


DOUBLE = """
from autotune import Objective

class Double(Objective):
    def measure(self, loaded, rng):
        return loaded["x"] * rng.uniform(1.0, 1.001)
"""


def test_a_race_reads_everybody_in_one_process_each(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text(DOUBLE)
    file = tmp_path / "double.yaml"
    file.write_text(
        "autotune: 1\nname: double\nobjective: double.py:Double\nmetrics: {time: {goal: minimize, unit: s}}\n"
        "knobs: {x: {values: [1, 2], default: 2}}\nmeasure: {finalists: 1}\n"
    )
    found, spec = Findings(), read_spec(file)
    bench = Bench(capture(None), str(tmp_path / "study.db"), dry=True)
    gpu_gemm.race(bench, spec, search(bench, spec), {}, 1.0, found)
    assert gpu_gemm.entrants_of(found)[found["race"]["winner"]]["configuration"] == {"x": 1}
    with Store.open(bench.store) as store:
        [study] = store.studies()
        contexts = [r.context for t in store.trials(study.id) for r in store.readings(t.id)]
    assert any("round" in context for context in contexts)
    assert not any("process" in context for context in contexts), "its minutes are for the rounds"


def test_another_thread_ends_a_search(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(
        DOUBLE.replace("        return", "        import time; time.sleep(60)\n        return")
    )
    file = tmp_path / "hangs.yaml"
    file.write_text("autotune: 1\nname: hangs\nobjective: hangs.py:Double\nknobs: {x: {values: [1, 2]}}\n")
    over = Event()
    over.set()
    bench = Bench(capture(None), str(tmp_path / "study.db"), dry=True)
    result = search(bench, read_spec(file), over=over).result
    assert result.reason == "its time was up" and result.best is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.5 s"), (2e-3, "2 ms"), (3.14159e-6, "3.142 µs"), (None, "-")]
)
def test_seconds_are_readable(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


def test_the_store_is_copied_while_it_is_open(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as one:
        one.execute("PRAGMA journal_mode=WAL")
        one.execute("CREATE TABLE t (x)")
        one.execute("INSERT INTO t VALUES (7)")
        one.commit()
        gpu.copy_database(tmp_path / "one.db", tmp_path / "two.db")
        gpu.copy_database(tmp_path / "one.db", tmp_path / "two.db")
    assert sorted(file.name for file in tmp_path.glob("two*")) == ["two.db"]
    with closing(sqlite3.connect(tmp_path / "two.db")) as two:
        assert two.execute("SELECT x FROM t").fetchall() == [(7,)]


@pytest.mark.torch
@no_gpu
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="kernels for a GPU are checked with PyTorch"
)
def test_a_kernel_is_smoke_checked_on_the_cpu(tmp_path: Path) -> None:
    bench = Bench(capture(None), str(tmp_path / "study.db"), dry=True)
    found = gpu_kernels.smoke(replace(bench, trials=1), "cuda-nms", 120.0, Event())
    assert found["status"] == "ok", found
    assert found["error"] == 0.0 and found["time"] > 0
