"""What torchrun prints when a rank fails, as PyTorch 2.13 writes it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.diagnostics import telling_line
from autotune.measure.objective import Context
from autotune.measure.phases.mistakes import mistake_of_program
from autotune.measure.program import Finished
from autotune.measure.torchrun import without_torchrun
from autotune.space.spec import CommandObjective
from autotune.status import Status
from tests.measure.commands.running import TIME, measure

STARS = "W1129 09:18:33.225000 5313 torch/distributed/run.py:874] ****************\n"
PREFIXED = """[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 5, in <module>
[rank1]:     train()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
[rank0]: Traceback (most recent call last):
[rank0]:   File "distributed_c10d.py", line 3252, in all_reduce
[rank0]:     work.wait()
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:9953
"""
BEFORE_JOINING = """Traceback (most recent call last):
  File "train.py", line 2, in <module>
    width = wdth
NameError: name 'wdth' is not defined
"""


def failed(printed: str, end: str) -> str:
    """All of stderr where rank 1 ended first."""
    return (
        STARS
        + printed
        + f"""W1129 09:18:36.756000 5313 torch/distributed/elastic/multiprocessing/api.py:1028] Sending
E1129 09:18:36.820000 5313 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)
Traceback (most recent call last):
  File "bin/torchrun", line 8, in <module>
    sys.exit(main())
             ^^^^^^
  File "torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:{" "}
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-29_09:18:36
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 5332)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 5332
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_09:18:36
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {end}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
    )


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (failed(PREFIXED, "1 (pid: 5333) "), "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"),
        (failed(BEFORE_JOINING, "1 (pid: 5333) "), "NameError: name 'wdth' is not defined"),
        (failed("", "-11 (pid: 5333)  (SIGSEGV)"), "rank 1: killed by SIGSEGV"),
        (failed("", "3 (pid: 5333) "), "rank 1: exit code 3"),
        (STARS + "no such width\n", "no such width"),
        (STARS, ""),
    ],
)
def test_the_rank_that_failed_first_says_why(stderr: str, line: str) -> None:
    """Each was told as a row of equals signs, or of stars."""
    assert telling_line(stderr).startswith(line) and bool(telling_line(stderr)) == bool(line)


def test_other_output_is_as_it_was() -> None:
    said = "Traceback (most recent call last):\nKeyError: 'x'\nRoot Cause\n"
    assert without_torchrun(said) == said


def test_a_mistake_of_a_rank_is_one_of_the_program() -> None:
    ended = Finished(1, None, "", failed(BEFORE_JOINING, "1 (pid: 5333) "), 1.0)
    assert mistake_of_program(ended, ["torchrun"]).endswith("not defined (train.py, line 2)")


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(
    ("error", "status"), [("MemoryError()", Status.OUT_OF_MEMORY), ("ValueError('too wide')", Status.CRASHED)]
)
def test_a_lack_of_memory_of_any_rank_is_one(tmp_path: Path, error: str, status: Status) -> None:
    """That of a rank above 0 was a crash, which the search learns nothing of memory from."""
    (tmp_path / "train.py").write_text(f"import os\nif os.environ['RANK'] == '1':\n    raise {error}\n")
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = CommandObjective((*launcher, "train.py", "{lr}"), tmp_path)
    with pytest.raises(CommandCrashed) as caught:
        measure(CommandRunner(command, Context({}, {}, tmp_path / "cache"), (TIME,)), lr=0.5)
    assert caught.value.status is status and error.split("(")[0] in str(caught.value)
