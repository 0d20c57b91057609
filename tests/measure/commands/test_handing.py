"""Each way in which knobs reach a command, and what is said where they do not: real processes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.hook.runs.link import Link
from autotune.measure.commands import run_listener
from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.handing import unwritten
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import READ
from autotune.measure.facts import MISTAKE, OWN_DEFAULTS, SURE, UNREACHED
from autotune.measure.objective import Context
from autotune.measure.outcome import Outcome
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import Sample
from autotune.measure.reports import SILENT, Curve, Reporter
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MeasureSettings, MetricSpec
from autotune.status import Status

METRICS = (MetricSpec("time", "minimize"),)
RNG = np.random.default_rng(0)
BOTH = Configuration({"tile": 8, "depth": 2})
PRINT = """print('{"time": 2}')\n"""
STARTS = "import subprocess\n"
"""Whoever starts programs may start one that asks for the knobs."""
ASK = "import autotune\nwith autotune.run('bench') as run:\n    run.knob('tile', 1), run.knob('depth', 1)\n"


def program(folder: Path, script: str = PRINT, *arguments: str, **fields: Any) -> CommandRunner:
    (folder / "bench.py").write_text(script)
    command = CommandObjective((sys.executable, "bench.py", *arguments), folder, **fields)
    return CommandRunner(command, Context({"n": 1}, {}, folder / "cache"), METRICS)


def measure(objective: CommandRunner, configuration: Configuration = BOTH) -> object:
    loaded = objective.load(objective.prepare(configuration))
    objective.check(loaded, RNG)
    return objective.measure(loaded, RNG)


def whole(objective: CommandRunner, configuration: Configuration = BOTH) -> Outcome:
    return Runner(objective, METRICS, MeasureSettings(min_readings=2, max_readings=3)).measure(
        lambda: configuration, 1
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"environment": {"TILE": "{tile}", "DEPTH": "{depth}"}},
        {"environment": {"FLAGS": "-DTILE={tile} -DDEPTH={depth}"}, "prepare": ("true",)},
        {"config_file": "bench.json"},
        {"config_file": "bench.ini", "config_text": "{tile} {depth}"},
        {"prepare": ("true", "{tile}", "{depth}")},
        {"prepare": ("true", "{tile}"), "check": ("true", "{depth}")},
    ],
)
def test_a_knob_may_be_written_anywhere(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert measure(program(tmp_path, **fields)) == {"time": 2.0}


def test_a_program_that_gets_no_knob_measures_nothing(tmp_path: Path) -> None:
    objective = program(tmp_path, STARTS + PRINT, "{workload.n}")
    with pytest.raises(CommandCrashed, match=r"^no knob reaches the command: .* autotune\.run$"):
        measure(objective)
    outcome = whole(objective)
    assert outcome.status is Status.CRASHED and outcome.facts[SURE] is True
    assert outcome.facts[MISTAKE] == outcome.message
    assert whole(objective, Configuration({"tile": 8})).message == outcome.message


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"environment": {"SIZE": "{workload.n}"}},
        {"config_file": "bench.ini", "config_text": "size = {workload.n}"},
        {"prepare": (sys.executable, "bench.py"), "check": (sys.executable, "bench.py")},
    ],
)
def test_a_script_that_cannot_get_any_is_refused_before_it_runs(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 2\n")
    with pytest.raises(InputError, match=r"^no knob reaches the command: .* bench\.py asks for none"):
        program(tmp_path, "import helper\n" + PRINT, **fields)


def test_one_that_may_get_them_is_tried(tmp_path: Path) -> None:
    program(tmp_path, PRINT, "{tile}")
    program(tmp_path, PRINT, config_file="bench.json")
    program(tmp_path, PRINT, prepare=("sh", "ask.sh"))
    (tmp_path / "helper.py").write_text("import autotune\n")
    program(tmp_path, "import helper\n" + PRINT)


@pytest.mark.parametrize("text", ["from os import system\n", "exec(open('other.txt').read())\n"])
def test_a_script_that_may_hand_them_on_is_not_refused(tmp_path: Path, text: str) -> None:
    program(tmp_path, text + PRINT)
    with pytest.raises(InputError, match="no knob reaches the command"):
        program(tmp_path, PRINT)


def test_where_none_gets_to_it_no_run_is_stopped_for_standing_behind(tmp_path: Path) -> None:
    """Each had been `pruned` but for the first, and nothing was said at the end of the search."""
    objective = program(tmp_path, STARTS + 'print(\'{"step": 1, "time": 2}\')\n')
    curve = Curve(9, "time", (1,))
    outcome = Runner(objective, METRICS, MeasureSettings()).measure(
        lambda: BOTH, 1, reporter=Reporter(curve, lambda report, waits: "the 2nd of 2")
    )
    assert outcome.status is Status.CRASHED and outcome.facts[SURE] is True


def test_a_knob_that_is_written_somewhere_but_does_not_exist_here_is_handed_as_well(tmp_path: Path) -> None:
    """As the tile of a tiling that is off: such a configuration is as good as any."""
    outcome = whole(program(tmp_path, PRINT, "{tile}"), Configuration({"tiled": False}))
    assert outcome.status is Status.OK and outcome.facts[UNREACHED] == ["tiled"]


def test_one_of_several_that_never_gets_there_is_named_in_the_facts(tmp_path: Path) -> None:
    sample = measure(program(tmp_path, PRINT, "{tile}"))
    assert isinstance(sample, Sample) and sample.facts == {UNREACHED: ["depth"]}
    assert whole(program(tmp_path, PRINT, "{tile}")).facts[UNREACHED] == ["depth"]


def test_a_program_may_ask_for_them(tmp_path: Path) -> None:
    sample = measure(program(tmp_path, ASK + PRINT))
    assert sample == Sample({"time": 2.0}, facts={OWN_DEFAULTS: {"tile": 1, "depth": 1}})


@pytest.mark.parametrize("when", ["prepare", "check"])
def test_so_may_one_that_runs_before_it(tmp_path: Path, when: str) -> None:
    (tmp_path / "ask.py").write_text(ASK)
    objective = program(tmp_path, PRINT, **{when: (sys.executable, "ask.py")})
    assert measure(objective) == {"time": 2.0}


def test_what_asked_in_another_worker_is_known(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(ASK)
    fields: dict[str, Any] = {
        "prepare": (sys.executable, "ask.py"),
        "environment": {"OUT": "$AUTOTUNE_FOLDER"},
    }
    preparer, measurer = program(tmp_path, **fields), program(tmp_path, **fields)
    assert preparer.prepares
    assert measurer.measure(measurer.load(preparer.prepare(BOTH)), RNG) == {"time": 2.0}


@pytest.mark.parametrize(
    "before",
    [
        "os.environ['RANK'], os.environ['WORLD_SIZE'] = '1', '2'\n",  # a rank that is not the first is silent
        "os.remove(os.path.dirname(os.environ['AUTOTUNE_RUN']) + '/socket')\n",  # as on another machine
    ],
)
def test_a_run_that_cannot_say_so_has_its_knobs_even_so(tmp_path: Path, before: str) -> None:
    assert measure(program(tmp_path, "import os\n" + before + ASK + PRINT)) == {"time": 2.0}


def test_a_run_that_is_silent_leaves_word(tmp_path: Path) -> None:
    with RunListener(tmp_path, BOTH, SILENT) as listener:
        Link(listener.document, reports=False).close()
        assert (Path(listener.document).parent / READ).exists()
    assert listener.was_read


@pytest.fixture
def timeless(tmp_path: Path) -> Iterator[Path]:
    """A file system that keeps no times of access."""
    folder = tmp_path / "timeless"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "noatime,size=1m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mounting a tmpfs needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_reader_is_noticed_where_no_times_of_access_are_kept(timeless: Path) -> None:
    with RunListener(timeless, BOTH, SILENT) as listener:
        assert Path(listener.document).stat().st_size > 0
    assert not listener.was_read
    with RunListener(timeless, BOTH, SILENT) as listener:
        Path(listener.document).read_text()
    assert listener.was_read


def test_who_clears_the_folder_away_may_have_read(tmp_path: Path) -> None:
    with RunListener(tmp_path, BOTH, SILENT) as listener:
        shutil.rmtree(Path(listener.document).parent)
    assert listener.was_read


def test_where_it_cannot_be_noticed_a_reader_is_taken_for_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: str) -> int:
        raise OSError(errno.EMFILE, "inotify_init1")

    monkeypatch.setattr(run_listener, "watch_openings", refuses)
    with RunListener(tmp_path, BOTH, SILENT) as listener:
        pass
    assert listener.was_read


def test_a_program_may_read_the_document_itself(tmp_path: Path) -> None:
    read = "import os\nopen(os.environ['AUTOTUNE_RUN']).read()\n"
    assert measure(program(tmp_path, read + PRINT)) == {"time": 2.0}


def test_one_that_asks_for_none_of_them_is_a_sure_mistake_and_one_that_asks_for_some_may_be(
    tmp_path: Path,
) -> None:
    other = ASK.replace("'tile'", "'tiles'").replace("'depth'", "'deep'")
    outcome = whole(program(tmp_path, other + PRINT))
    assert "never asked for the knob" in str(outcome.facts[MISTAKE]) and outcome.facts[SURE] is True
    outcome = whole(program(tmp_path, ASK.replace("'depth'", "'deep'") + PRINT))
    assert outcome.facts[MISTAKE] == outcome.message and SURE not in outcome.facts
    outcome = whole(program(tmp_path, other + PRINT, "{tile}"))
    assert outcome.facts[MISTAKE] == outcome.message and SURE not in outcome.facts


TRAIN = """
import autotune
with autotune.run("train") as run:
    run.knob("tile", default=1)
    for step in range(1, 30):
        run.report(step, time=1.0 / step)
        if run.should_stop:
            break
"""


@pytest.mark.parametrize(("stops_at", "status"), [(None, Status.CRASHED), (3, Status.PRUNED)])
def test_a_training_that_is_ended_before_it_asks_for_a_knob_has_failed_once_it_was_complete(
    tmp_path: Path, stops_at: int | None, status: Status
) -> None:
    """One that went on after its last step was `ok`, and a knob without any effect was in the winner."""
    outcome = Runner(program(tmp_path, TRAIN), METRICS, MeasureSettings()).measure(
        lambda: BOTH,
        1,
        reporter=Reporter(Curve(9, "time", (3,)), lambda report, waits: "slow" * (report.step == stops_at)),
    )
    assert outcome.status is status
    assert "never asked for the knob 'depth'" in str(outcome.facts[MISTAKE])


def test_placeholders_of_the_workload_and_the_config_file_are_no_knobs(tmp_path: Path) -> None:
    command = CommandObjective(
        ("x", "{workload.n}", "{config}"), tmp_path, config_file="x.ini", config_text="{tile}"
    )
    assert unwritten(command, ["n", "tile", "depth"]) == ["n", "depth"]
