"""All ranks stop at one step, whenever the order comes and however far apart they are."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.hook.recipes.case import Case
from autotune.hook.recipes.file import write_recipe
from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.this_device import this_device
from autotune.hook.runs.ranks import Rank, Stop, find_rank, meeting
from autotune.measure.commands import run_listener
from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import BOARD_BYTES, ORDER, VARIABLE
from autotune.measure.objective import Context
from autotune.measure.outcome import Report
from autotune.measure.phases.runner import Runner
from autotune.measure.reports import Curve, Reporter
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MeasureSettings, MetricSpec
from autotune.status import Status
from benchmarks import hook_ranks


@contextmanager
def board() -> Iterator[tuple[memoryview, str]]:
    """The shared memory of a trial, and the file that is locked."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "board"
        file.touch()
        yield memoryview(mmap(-1, BOARD_BYTES)).cast("q"), str(file)


@settings(max_examples=40, deadline=None)
@given(
    strides=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    turns=st.lists(st.integers(0, 3), min_size=40, max_size=200),
    order=st.integers(0, 30),
    asks=st.booleans(),
)
def test_no_rank_goes_further_than_another(
    strides: list[int], turns: list[int], order: int, asks: bool
) -> None:
    """Ranks take their turns in any order, so that one may be far ahead, and report every stride-th step."""
    with board() as (words, file):
        count = len(strides)
        ranks = [Stop(words, file, Rank(i, count)) for i in range(count)]
        at = [0] * count
        ended: dict[int, int] = {}
        for now, turn in enumerate([*turns, *(i % 4 for i in range(4000))]):
            if now == order:
                words[ORDER] = 1
            if len(ended) == count:
                break
            rank = turn % count
            if rank in ended:
                continue
            at[rank] += strides[rank]
            told = ranks[rank].after(at[rank])
            if asks:
                told = ranks[rank].asked()
            if told:
                ended[rank] = at[rank]
        assert len(ended) == count
        assert len(set(ended.values())) == 1


@settings(max_examples=40, deadline=None)
@given(turns=st.lists(st.integers(0, 2), min_size=20, max_size=100), order=st.integers(0, 19))
def test_ranks_that_report_nothing_stop_at_the_same_question(turns: list[int], order: int) -> None:
    with board() as (words, file):
        ranks = [Stop(words, file, Rank(i, 3)) for i in range(3)]
        asked = [0, 0, 0]
        ended: dict[int, int] = {}
        for now, rank in enumerate([*turns] + [0, 1, 2] * 100):
            if now == order:
                words[ORDER] = 1
            if rank not in ended:
                asked[rank] += 1
                if rank == 0:
                    ranks[0].after(asked[0])  # it alone reports
                if ranks[rank].asked():
                    ended[rank] = asked[rank]
        assert len(set(ended.values())) == 1
        assert len(ended) == 3


def test_asking_more_often_than_others_does_no_harm() -> None:
    with board() as (words, file):
        one, other = Stop(words, file, Rank(0, 2)), Stop(words, file, Rank(1, 2))
        words[ORDER] = 1
        found = []
        for step in range(1, 6):
            one.after(step)
            other.after(step)
            found.append((any([one.asked(), one.asked(), one.asked()]), other.asked()))
        assert found == [(False, False), (False, False), (True, True), (True, True), (True, True)]


def test_a_rank_that_never_asks_holds_nobody_up() -> None:
    with board() as (words, file):
        one, _silent = Stop(words, file, Rank(0, 2)), Stop(words, file, Rank(1, 2))
        words[ORDER] = 1
        assert not any(one.after(step) for step in range(1, 100))


def test_the_next_run_of_a_stopped_trial_stops_at_once() -> None:
    with board() as (words, file):
        ranks = [Stop(words, file, Rank(i, 2)) for i in range(2)]
        words[ORDER] = 1
        assert [rank.after(step) for step in (1, 2, 3) for rank in ranks] == [False] * 4 + [True, True]
        again = [Stop(words, file, Rank(i, 2)) for i in range(2)]
        assert [rank.after(1) for rank in again] == [True, True]


def test_one_that_is_a_run_ahead_agrees_with_nobody_before_they_follow() -> None:
    with board() as (words, file):
        slow, fast = (Stop(words, file, Rank(i, 2)) for i in range(2))
        slow.after(7), fast.after(8)
        fast = Stop(words, file, Rank(1, 2))
        words[ORDER] = 1
        assert not slow.after(8)
        assert not fast.after(1)
        slow = Stop(words, file, Rank(0, 2))
        assert not slow.after(1)
        assert not fast.after(2)
        assert (slow.after(2), slow.after(3), fast.after(3)) == (False, True, True)


def test_alone_the_order_is_enough() -> None:
    with board() as (words, file):
        stop = Stop(words, file, Rank())
        assert not stop.after(1)
        words[ORDER] = 1
        assert stop.after(2)
        stop.forget()
        assert not stop.after(3)


def test_without_a_board_nobody_stops() -> None:
    assert not Stop(None, "", Rank(1, 2)).after(1)


def test_where_strides_never_meet_nothing_is_agreed() -> None:
    assert meeting([1, 2], [2, 2]) is None
    assert meeting([13, 10], [1, 10]) == 20


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Rank()),
        ({"RANK": "1", "WORLD_SIZE": "2"}, Rank(1, 2)),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, Rank(3, 4)),
        ({"RANK": "5", "WORLD_SIZE": "2"}, Rank()),
        ({"RANK": "x", "WORLD_SIZE": "2"}, Rank()),
        ({"RANK": "1"}, Rank()),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, Rank(1, 2)),
    ],
)
def test_the_rank_is_what_the_launcher_says(
    variables: dict[str, str], expected: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = (
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_RANK",
        "PMI_SIZE",
    )
    for name in ours:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_rank() == expected


RANK = """
import os, sys, time
import autotune
with autotune.run("train") as run:
    width = run.knob("width", default=4)
    for step in range(1, 100_000):
        time.sleep(float(sys.argv[1]))
        run.report(step, loss=1.0)
        if sys.argv[2] == "asks" and run.should_stop:
            break
print(width, step)
"""


@pytest.mark.parametrize("way", ["asks", "is interrupted"])
def test_processes_of_different_speed_stop_at_one_step(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the order holds them together: no collective, no clock."""
    monkeypatch.setattr(run_listener, "GRACE_SECONDS", 600.0)  # the last of them may be slow to start

    def hear(report: Report, waits: bool) -> str:
        return "behind" if waits else ""

    reporter = Reporter(Curve(10**6, "loss", (20,)), hear)
    with RunListener(tmp_path, {"width": 9}, reporter) as listener:
        ranks = []
        for number, delay in enumerate(("0.003", "0.001", "0.005")):
            variables = {VARIABLE: listener.document, "RANK": str(number), "WORLD_SIZE": "3"}
            command = [sys.executable, "-c", RANK, delay, way]
            ranks.append(
                subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
            )
        while any(rank.poll() is None for rank in ranks):
            listener.attend()
            with contextlib.suppress(subprocess.TimeoutExpired):
                ranks[0].wait(0.02)
        listener.attend()
        found = {rank.communicate()[0] for rank in ranks}
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert len(found) == 1
    assert found.pop().split()[0] == "9"
    assert (listener.heard.runs, listener.heard.ended) == (1, 1)


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_under_torchrun_both_ranks_leave_after_the_same_step(tmp_path: Path) -> None:
    """The script of the benchmark, whose barrier at the end would hang if one had gone on."""
    ledger = tmp_path / "ledger.jsonl"
    (tmp_path / "train.py").write_text(hook_ranks.SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = CommandObjective((sys.executable, *launcher, "train.py", str(ledger)), tmp_path)
    metrics = (MetricSpec("loss", "minimize"),)
    curve = Curve(10**6, "loss", (5,))
    objective = CommandRunner(command, Context({}, {}, tmp_path / "cache"), metrics)
    reporter = Reporter(curve, lambda report, waits: "behind" if waits else "")
    configuration = Configuration({"rate": 0.5, "width": 64})
    outcome = Runner(objective, metrics, MeasureSettings(), curve=curve).measure(
        lambda: configuration, 1, reporter=reporter
    )
    assert outcome.status is Status.PRUNED, outcome.stderr
    ranks = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert sorted(rank["rank"] for rank in ranks) == [0, 1]
    assert [rank["knobs"] for rank in ranks] == [[0.5, 64]] * 2
    assert ranks[0]["last"] == ranks[1]["last"] > 5


RECIPES = """
import os, sys, autotune, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/meeting", rank=rank, world_size=2)
if rank == 1:
    dist.barrier()  # rank 0 has asked
sizes = [("layers", 2), ("width", 8)]
workload = dict(sizes if rank == 0 else reversed(sizes))
with autotune.run("fit", recipes=True, workload=workload) as run:
    print(run.knob("chunk", default=[1]), run.source, flush=True)
if rank == 0:
    dist.barrier()
dist.barrier()
os._exit(0)
"""


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("knows", [0, 1])
def test_ranks_that_find_different_recipes_take_that_of_the_first_to_ask(knows: int, tmp_path: Path) -> None:
    """A collective whose depth differs between ranks waits for ever."""
    own = Recipe("fit", this_device().processor, Case({"layers": 2, "width": 8}), {"chunk": [16]})
    write_recipe(tmp_path / "recipes.json", own)
    ranks = []
    for rank in (0, 1):
        file = "recipes.json" if rank == knows else "none.json"
        variables = {"RANK": str(rank), "AUTOTUNE_RECIPES": str(tmp_path / file)}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", RECIPES, str(tmp_path)],
                env={**os.environ, **variables},
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    (first, _), (second, said) = (rank.communicate(timeout=300) for rank in ranks)
    assert first == second == ("[16] recipe\n" if knows == 0 else "[1] default\n")
    assert "the run 'fit' has what another rank found first" in said
