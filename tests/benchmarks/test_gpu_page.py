"""What the command for GPUs writes: its page, its plots, and what it says of planted faults."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from autotune.provenance.device import device_facts, query_gpus
from autotune.provenance.environment import capture
from autotune.space.reading.reader import read_spec
from autotune.space.spec import PythonObjective
from benchmarks import (
    gpu,
    gpu_duel,
    gpu_gemm,
    gpu_planted,
    gpu_plots,
    gpu_report,
    gpu_search,
)
from benchmarks.gpu_plan import Done
from benchmarks.gpu_search import SPACES

no_gpu = pytest.mark.skipif(bool(query_gpus()), reason="there is a GPU here")


def entrant(value: float, also: tuple[str, ...] = ()) -> dict[str, Any]:
    rounds = {str(i): value * (1 + 0.001 * (i % 3)) for i in range(12)}
    time = {"value": value, "low": 0.99 * value, "high": 1.01 * value}
    return {
        "configuration": {"block_m": 64},
        "also": list(also),
        "status": "ok",
        "message": "",
        "time": time,
        "rounds": rounds,
    }


def search_of(**more: Any) -> dict[str, Any]:
    return {
        "busy": 0.85,
        "trials": 20,
        "statuses": {"ok": 18, "infeasible": 2},
        "wall": 12.0,
        "best_at": 8.0,
        "roofline": {"floor": 80e-6, "bound": "arithmetic", "share": 0.8},
        "baselines": [],
        "speedup": None,
        "time": {"value": 1e-4, "low": 1e-4, "high": 1e-4},
        "remark": "",
        "failures": [],
        "throttled": 0,
        **more,
    }


def comparison() -> dict[str, Any]:
    entrants = {
        "the default": entrant(150e-6),
        "trial 7": entrant(100e-6),
        gpu_gemm.TRITON: entrant(110e-6, (gpu_gemm.SAME_LIST,)),
        gpu_duel.SECOND: entrant(100.5e-6),
        "torch": entrant(105e-6),
        "torch-compile": {
            "configuration": {},
            "also": [],
            "status": "crashed",
            "message": "it ended",
            "time": None,
            "rounds": {},
        },
    }
    return {
        "workload": {"m": 4096, "n": 4096, "k": 4096, "dtype": "float16"},
        "rows": 24,
        "triton": {"seconds": 30.0, "started": 5.0, "failed": 1},
        "list": search_of(tuning=9.5, allowed=10.0),
        "whole": search_of(),
        "again": search_of(),
        "race": {"entrants": entrants, "winner": "trial 7", "remark": ""},
        "timeline": [[0, "prepare", 0, 0.0, 1.0], [0, "measure", 0, 1.0, 2.0]],
    }


def parts(**changes: Any) -> list[dict[str, Any]]:
    found = {**comparison(), **changes}
    return [
        {"part": "gemm square", "given": 90.0, "took": 80.0, "problem": "", "result": found},
        {
            "part": "tune cuda-nms",
            "given": 20.0,
            "took": 0.1,
            "problem": "RuntimeError: a | b",
            "result": None,
        },
        {
            "part": "tune cuda-gemm",
            "given": 20.0,
            "took": 19.0,
            "problem": "",
            "result": {"workload": {"m": 4096}, **search_of(busy=0.5)},
        },
    ]


def claim(page: str, text: str, where: str = "") -> str:
    return next(line for line in page.splitlines() if text in line and where in line)


def test_the_page_says_what_was_shown() -> None:
    page = gpu_report.report(parts(), ["the head"])
    assert "the same configuration | yes" in claim(page, "not slower than triton.autotune")
    assert "9.5 s of 30.0 s | yes" in claim(page, "in a third")
    assert claim(page, "over cuBLAS", "| square |").split("|")[3].strip().startswith("1.050")
    assert claim(page, "within 1 %").endswith("| yes |")
    assert claim(page, "is measuring", "whole space").endswith("| yes |")
    assert claim(page, "is measuring", "cuda-gemm").endswith("50% | **no** |")
    assert "trial 7 **(winner)** | 100 µs" in page and "80%" in page
    assert "crashed: it ended" in page
    assert "RuntimeError: a / b" in page, "what failed is said, and breaks no table"


def test_the_page_says_what_its_columns_are() -> None:
    page, _, explained = gpu_report.report(parts(), []).partition("## How to read it")
    smoke = "".join(gpu_report.smoke_table({}))
    for column in ("of the roofline", "measuring", "error", "tuning s", "best found at s", "caches", "holds"):
        assert f"*{column}*" in explained and f"| {column} |" in page + smoke


def test_two_searches_agree_or_not_by_their_duel_where_there_was_one() -> None:
    duel = {
        "trial 7": entrant(100e-6),
        gpu_duel.SECOND: entrant(104e-6),
    }
    said = claim(gpu_report.report(parts(duel=duel), []), "within 1 %")
    assert said.endswith("| **no** |") and f"{len(duel['trial 7']['rounds'])} rounds" in said


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ((1.004, 0.998, 1.009), True),
        ((1.03, 1.02, 1.04), False),
        ((1.015, 1.0, 1.03), False),
        ((1.0, 0.56, 1.78), None),
        (None, None),
    ],
)
def test_whether_two_searches_agree(found: tuple[float, float, float] | None, holds: bool | None) -> None:
    assert gpu_report.agree(found) is holds


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ((1.2, 0.99, 1.5), None),
        ((1.2, 1.01, 1.5), True),
        ((0.995, 0.98, 1.01), True),
        ((0.98, 0.97, 0.99), False),
        ((0.7, 0.4, 1.1), None),
        (None, None),
    ],
)
def test_whether_it_is_not_slower(found: tuple[float, float, float] | None, holds: bool | None) -> None:
    assert gpu_report.not_slower(found) is holds


def test_a_peer_that_gave_up_decides_nothing() -> None:
    found = comparison()
    del found["race"]["entrants"][gpu_gemm.TRITON]
    page = gpu_report.report(parts(**{**found, "triton": {"problem": "not done"}}), [])
    assert claim(page, "not slower than triton.autotune").endswith("| - | - |")
    assert "not done | - |" in claim(page, "in a third")


@pytest.mark.parametrize("steps", range(7))
def test_a_comparison_that_was_ended_early_is_on_the_page_as_far_as_it_came(steps: int) -> None:
    found, known = comparison(), ("triton", "list", "again", "whole", "timeline", "race")[:steps]
    found = {"workload": found["workload"], "rows": found["rows"], **{key: found[key] for key in known}}
    ended = [{"part": "gemm square", "given": 9.0, "took": 9.0, "problem": "ended", "result": found}]
    page = gpu_report.report([*ended, *parts()[1:]], [])
    assert ("9.5 s of 30.0 s" in page) == (steps >= 2) and ("| autotune, same list | 24 |" in page) == (
        steps >= 2
    )
    assert ("100 µs" in page.split("## Each kernel")[0]) == (steps == 6)
    assert "| gemm square | 9 | 9 | ended |" in page
    gpu_plots.gemm_plot({"square": found})


def test_a_search_that_failed_is_said_in_its_row() -> None:
    found = comparison() | {"list": {"problem": "StoreError: a | b\nfull"}, "again": {"problem": "gone"}}
    page = gpu_report.report(parts(**found), [])
    assert "| autotune, same list | 24 | StoreError: a / b full |" in page
    assert claim(page, "in a third").endswith("| - |")


def writer(tmp_path: Path, unwatched: str = "") -> gpu._Writer:
    options = gpu._options(["--out", str(tmp_path)])
    return gpu._Writer(options, capture(None), tmp_path / "none.db", 0.0, unwatched)


def done(**changes: Any) -> list[Done]:
    return [
        Done(one["part"], one["given"], one["took"], one["result"], one["problem"])
        for one in parts(**changes)
    ]


def test_what_is_known_is_written_whole(tmp_path: Path) -> None:
    write = writer(tmp_path)
    write(done())
    names = {"gemm.svg", "report.md", "results.json", "roofline.svg", "timeline.svg"}
    assert {file.name for file in tmp_path.iterdir()} == names and not write.failed
    assert "![speeds](gemm.svg)" in (tmp_path / "report.md").read_text()


@no_gpu
def test_a_gpu_without_its_management_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_search, "facts", lambda: {"name": "a CPU", "gpu_name": "NVIDIA H200"})
    writer(tmp_path, "the package nvidia-ml-py is not installed")(done())
    page = (tmp_path / "report.md").read_text()
    assert "\nNVIDIA H200. Python" in page and "no GPU" not in page
    assert "could not all be read** (the package nvidia-ml-py is not installed)" in page


def test_a_page_that_cannot_be_made_costs_no_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write = writer(tmp_path)
    write(done(whole={"trials": 3}))
    assert write.failed == {"report.md"} and "KeyError" in capsys.readouterr().err
    assert '"trials": 3' in (tmp_path / "results.json").read_text()
    assert "| tune cuda-gemm | 20 | 19 |" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("name", [*gpu_planted.FAULTS, "sticky"])
def test_each_fault_can_be_planted(name: str) -> None:
    fault = {**gpu_planted.FAULTS, "sticky": gpu_planted.STICKY}[name]
    sizes = {**gpu_planted.SIZES[fault.space], **fault.sizes}
    study = read_spec(SPACES / f"{fault.space}.yaml", device=device_facts("h100"), workload=sizes)
    right = (gpu_planted.KERNELS / fault.file).read_text()
    with gpu_planted.planted(study, fault) as wrong:
        assert isinstance(wrong.objective, PythonObjective)
        file = wrong.objective.base / fault.file
        assert file.read_text() != right and fault.wrong in file.read_text()
    assert all(gpu_search.configured(study, knobs) in study.space for knobs in fault.rows)


def planted(caught: int = 6, **more: Any) -> list[dict[str, Any]]:
    faults = {"a row too many": {"planted": 6, "caught": caught, "said": ["a | b"], "problems": [], **more}}
    result = {"faults": faults, "sticky": {"wrong": ["crashed"], "right": ["ok"], "messages": []}}
    return [{"part": "planted faults", "given": 30.0, "took": 20.0, "problem": "", "result": result}]


def test_the_page_says_which_faults_were_caught() -> None:
    page = gpu_report.report(planted(), [])
    assert claim(page, "a planted fault is caught").endswith("| 6 of 6 | yes |")
    assert claim(page, "ends the worker").endswith("| crashed; the others: ok | yes |")
    assert "| a row too many | 6 of 6 | a / b |" in page
    assert claim(gpu_report.report(planted(5), []), "is caught").endswith("| 5 of 6 | **no** |")
    assert claim(gpu_report.report(planted(problems=["E"]), []), "is caught").endswith("**no** |")


def test_faults_that_a_device_cannot_have_are_not_counted_among_the_caught() -> None:
    """On one without descriptors twelve of fourteen were planted, and the page spoke of fourteen."""
    [part] = planted()
    part["result"]["faults"]["by descriptors"] = {"planted": 0, "caught": 0, "said": [], "problems": []}
    where = claim(gpu_report.report([part], []), "is caught")
    assert where.endswith("| 1 faults; 1 not possible here | 6 of 6 | yes |")


def test_faults_that_were_not_tried_are_said() -> None:
    parts = planted()
    parts[0]["result"] |= {"untried": 3, "sticky": {"problem": "RuntimeError: no | worker"}}
    page = gpu_report.report(parts, [])
    assert claim(page, "is caught").endswith("| 1 faults; 3 more were not tried | 6 of 6 | - |")
    assert claim(page, "ends the worker").endswith("| RuntimeError: no / worker | - |")


PARTLY = """
import json, os, sys
for name in json.load(sys.stdin)["names"]:
    if name == "deadly":
        print('{"c": ', end="", flush=True)
        sys.exit("died")
    print(json.dumps({name: {"caught": 1}}), flush=True)
    if name == "spoils":
        break
"""


def inquiry(program: str, *names: str) -> gpu_planted.Inquiry:
    return gpu_planted.Inquiry(True, names, [sys.executable, "-c", program])


def test_another_process_goes_on_behind_a_fault_that_spoilt_or_killed_one() -> None:
    with inquiry(PARTLY, "a", "spoils", "b", "deadly", "c") as asked:
        asked.wait(60.0)
        found = asked.answers()
    assert found.pop("deadly")["problems"] == ["its process ended with 1: died"]
    assert list(found) == ["a", "spoils", "b", "c"] and all(one == {"caught": 1} for one in found.values())


def test_what_is_known_of_the_faults_outlives_their_process() -> None:
    with inquiry(PARTLY + "import time; time.sleep(600)", "a", "spoils", "c") as asked:
        while len(asked.answers()) < 2:
            pass
        with pytest.raises(gpu_planted.PlantedError, match="not done after"):
            asked.wait(0.0)
        assert list(asked.answers()) == ["a", "spoils"]


def test_the_page_says_what_was_throttled_and_what_failed() -> None:
    found = comparison() | {"again": search_of(throttled=2, failures=["3 x crashed: a | b"])}
    page = gpu_report.report(parts(**found), [])
    assert f"* {gpu_duel.SECOND}: 2 trials had throttled readings" in page
    assert f"* {gpu_duel.SECOND}: 3 x crashed: a / b" in page


def test_the_page_says_what_calls_found_in_the_cache() -> None:
    timing = {"caches": "cold", "flushed_bytes": 100 << 20, "launched": "calls", "no_graph": "it\nwaits | so"}
    ok = {"status": "ok", "message": "", "time": 1e-3, "error": 0.0, "took": 3.0, "timing": timing}
    result = {"kernels": {"cuda-nms": ok, "gone": {"status": "error", "message": "no", "took": 1.0}}}
    part = {"part": "smoke check", "given": 9.0, "took": 9.0, "problem": "", "result": result}
    page = gpu_report.report([part], [])
    assert "| cold: 100 MiB written before each batch | calls (it waits / so) |" in page
    assert "| gone | error: no | - | - | 1.0 | - | - |" in page


def test_slower_than_the_peer_is_said() -> None:
    found = comparison()
    found["race"]["entrants"] |= {gpu_gemm.TRITON: entrant(90e-6), gpu_gemm.SAME_LIST: entrant(99e-6)}
    page = gpu_report.report(parts(**found), [])
    assert claim(page, "not slower than triton.autotune").endswith("**no** |")


def test_plots_are_well_formed() -> None:
    from xml.etree import ElementTree

    found = comparison()
    for svg in (gpu_plots.gemm_plot({"square": found}), gpu_plots.roofline_plot({"cuda-gemm": search_of()})):
        assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert gpu_plots.timeline_of(found).wall == 2.0
