"""serving answers each request once and as the model alone does, and leaves no process behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.objective import Infeasible, WrongAnswer
from autotune.measure.workers.descendants import descendants
from autotune.space.reading.reader import read_spec
from tests.objectives.beside import changed, importable, planted
from tests.objectives.ready import SPACES
from tests.objectives.serving.small import SERVING, small_server

SPEC = read_spec(SPACES / "serving.yaml", device={"cores": 2})


def test_the_default_of_the_space_answers_one_after_the_other(tmp_path: Path) -> None:
    small_server(tmp_path)
    from serving import BASELINES, DEFAULT

    assert {**DEFAULT, **SPEC.space.default()} == DEFAULT
    assert set(DEFAULT) == {knob.name for knob in SPEC.space.knobs}
    for knobs in BASELINES.values():
        assert SPEC.space.configuration(knobs) in SPEC.space


@pytest.mark.parametrize("seed", range(5))
def test_every_configuration_is_right(tmp_path: Path, seed: int) -> None:
    serving = small_server(tmp_path)
    (configuration,) = SPEC.space.sample(np.random.default_rng(seed), 1)
    assert serving.check(serving.load(configuration), np.random.default_rng(seed))["error"] < 1e-5


def test_its_baselines_are_right(tmp_path: Path) -> None:
    serving = small_server(tmp_path)
    for baseline in serving.baselines():
        loaded = serving.load_baseline(baseline)
        assert serving.check(loaded, np.random.default_rng(0))["error"] < 1e-5
        assert loaded.knobs["max_batch"] in (8, 32)


def test_a_load_is_judged_by_when_it_was_to_be_sent(tmp_path: Path) -> None:
    """A batch that waits for others is late for its first request; who asks does not wait with asking."""
    serving = small_server(tmp_path)
    from load_generator import Load
    from served import served

    load = Load(count=20, rate=1e6, seed=1, repeated=0.0, popular=1)
    waits = {"max_batch": 64, "delay_ms": 300, "instances": 1, "blas_threads": 1, "cache": 0}
    with served(serving.shape, serving.answers, waits) as server:
        slow = server.ask(load)
        whole = server.ask(replace(load, count=64))
    assert slow.answered == 20 and slow.late == 0 and slow.p99 >= 0.3
    assert whole.answered == 64 and whole.late == 0
    with served(serving.shape, serving.answers, {**waits, "delay_ms": 1e6}) as server:
        late = server.ask(replace(load, limit=0.1, allowed=3))
    assert late.late == 20 and late.answered == 0, "it is over without the answers"


def test_a_server_that_never_keeps_the_limit_is_infeasible(tmp_path: Path) -> None:
    serving = small_server(tmp_path, limit_ms=1)
    late = serving.load({"max_batch": 128, "delay_ms": 500})
    with pytest.raises(Infeasible, match="took longer than 1 ms, even at 20 a second"):
        serving.measure(late, np.random.default_rng(0))


@dataclass(frozen=True)
class Fault:
    says: str
    old: str
    new: str
    knobs: Mapping[str, Any] = field(default_factory=dict)


BATCHES, KEPT = {"max_batch": 16}, {"max_batch": 16, "cache": 64}
WRITES = "transport.write(request[: NUMBER.size] + raw)"
FIRST = "self._known[inputs] = [*self._known.values(), answer][0]"
PUT = "self._known[inputs] = answer"
NONE = "np.full_like(np.frombuffer(raw, np.float32), np.nan).tobytes()"
ANSWERS = "zip(batch, done.result(), strict=True)"
FAULTS = {
    "answers are those of others": Fault("off by", ANSWERS, ANSWERS.replace(")", ")[::-1]", 1), BATCHES),
    "an answer in fifty gets lost": Fault("were never answered", WRITES, f"raw[0] % 50 and {WRITES}"),
    "a request is answered twice": Fault("answered already", WRITES, f"{WRITES}; {WRITES}"),
    "an answer is no number": Fault("off by nan", WRITES, WRITES.replace("+ raw", f"+ {NONE}")),
    "numbers are mixed up": Fault("was not asked", WRITES, "transport.write(NUMBER.pack(10**9) + raw)"),
    "weights are too short": Fault("off by", "(_compute, self._model", "(_compute, _halved(self._model)"),
    "an answer is kept for others": Fault("off by", PUT, FIRST, KEPT),
    "answers of the last model are kept": Fault("off by", "self._answers.clear()", "", KEPT),
    "the last model is kept": Fault("off by", "self._model = Model(self.shape, seed)", ""),
}  # fmt: skip


def impatient(copy: Path) -> Path:
    """The copy of the folder, in which nobody waits for long for an answer that got lost."""
    changed(copy / "load_generator.py", "PATIENCE = 10.0", "PATIENCE = 1.0")
    return copy


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_always_caught(tmp_path: Path, fault: str) -> None:
    one = FAULTS[fault]
    helper = (
        "class Answers:",
        "def _halved(model):\n"
        "    model.weights = [w.astype(np.float16).astype(np.float32) for w in model.weights]\n"
        "    return model\n\n\nclass Answers:",
    )
    changes = ((one.old, one.new), helper)
    serving = small_server(tmp_path, impatient(planted(SERVING, "batch_server.py", changes, tmp_path)))
    with pytest.raises(WrongAnswer, match=one.says):
        serving.check(serving.load(one.knobs), np.random.default_rng(0))


def test_a_rate_at_which_an_answer_gets_lost_does_not_hold(tmp_path: Path) -> None:
    """It counted as one of the few that may be late."""
    changes = ((WRITES, f"request[:2] != b'\\7\\0' and {WRITES}"),)
    serving = small_server(tmp_path, impatient(planted(SERVING, "batch_server.py", changes, tmp_path)))
    loaded = serving.load(BATCHES)
    loaded.start = 2000.0
    with pytest.raises(WrongAnswer, match="of 600 requests 1 were never answered"):
        serving.measure(loaded, np.random.default_rng(0))


@pytest.mark.parametrize("where", ["batcher = Batcher(shape, **knobs)", "self._waiting.append("])
def test_a_server_that_ends_says_why(tmp_path: Path, where: str) -> None:
    ends = "import os; os.write(2, b'MemoryError: no room for it'); os._exit(1)"
    changes = ((where, f"{ends}; {where}"),)
    serving = small_server(tmp_path, planted(SERVING, "batch_server.py", changes, tmp_path))
    with pytest.raises(
        RuntimeError, match=r"batch_server\.py has ended by itself: MemoryError: no room for it"
    ):
        serving.check(serving.load({}), np.random.default_rng(0))
    assert not _serving_below(os.getpid())


def _serving_below(pid: int, folder: Path = SERVING) -> list[int]:
    """The processes below one that serve or ask, with the code of a folder."""
    found = []
    for below in descendants(pid):
        try:
            said = Path(f"/proc/{below}/cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in said:
            found.append(below)
    return found


@pytest.mark.long
def test_nothing_is_left_behind_by_a_check_or_a_reading(tmp_path: Path) -> None:
    folder = planted(SERVING, "serving.py", (("\nLIMITS = 10\n", "\nLIMITS = 4\n"),), tmp_path)
    serving = small_server(tmp_path, folder, limit_ms=250)  # so that each rate is tried for a second
    loaded = serving.load({"max_batch": 16})
    serving.check(loaded, np.random.default_rng(0))
    found = serving.measure(loaded, np.random.default_rng(0))
    assert found["rate"] >= 20 and 0 < found["p99"] <= 0.25 and found["error"] < 1e-5
    assert 0.5 < loaded.start / found["rate"] < 1, "the next reading begins near it"
    assert not _serving_below(os.getpid(), folder)
    from load_generator import Load
    from served import served

    with pytest.raises(ZeroDivisionError), served(serving.shape, serving.answers, loaded.knobs) as server:
        assert server.ask(Load(1, 1e6, 0, 0.0, 1)).answered == 1
        assert len(_serving_below(os.getpid(), folder)) == 2
        raise ZeroDivisionError
    assert not _serving_below(os.getpid(), folder)


SEARCH = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
from autotune.cli.main import main
sys.exit(main(["search", "serving", "--time", "600s", "--workload", "hidden=64", "--store", sys.argv[1]]))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
@pytest.mark.parametrize("by", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_nothing_is_left_behind_by_a_search_that_is_killed(tmp_path: Path, by: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SEARCH, str(tmp_path / "s.db")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as search:
        while len(serving := _serving_below(search.pid)) < 2:
            assert search.poll() is None, search.stderr and search.stderr.read()
        waited = [os.pidfd_open(pid) for pid in serving]
        search.send_signal(by)
        search.wait(60)
        for each in waited:
            assert select.select([each], [], [], 60)[0], "a process of it goes on"
            os.close(each)


@pytest.mark.parametrize(
    ("fact", "value", "says"),
    [
        ("repeated", 1.5, "a share between 0 and 1"),
        ("popular", 5000, "popular should be below 1024"),
        ("hidden", 0, "hidden should be a whole number"),
        ("limit_ms", 0, "limit_ms should be a number above 0"),
    ],
)
def test_a_workload_that_means_nothing_is_refused(tmp_path: Path, fact: str, value: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        small_server(tmp_path, **{fact: value})


def test_requests_are_popular_or_were_not_seen_for_long() -> None:
    importable(SERVING)
    from perceptron import BANK, drawn

    which = drawn(4000, 0.4, 100, np.random.default_rng(0))
    often = which[which < 100]
    assert abs(len(often) / 4000 - 0.4) < 0.03 and np.bincount(often).argmax() == 0
    others = which[which >= 100]
    for number in (100, 500, BANK - 1):
        gaps = np.diff(np.flatnonzero(others == number))
        assert not len(gaps) or gaps.min() > 400
