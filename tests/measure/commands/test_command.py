"""Objectives that are programs: real processes, each way of passing knobs, each way of ending."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from autotune.errors import InputError
from autotune.measure import program
from autotune.measure.commands.command import CommandRunner
from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.commands.shared_folder import _beside_the_locks
from autotune.measure.cores.turns import FileLock
from autotune.measure.objective import Context, Infeasible, Lost, WrongAnswer
from autotune.measure.program import run_program
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective
from autotune.status import Status
from tests.measure.commands.running import ERROR, NOTE, RNG, TIME, measure, printing, python, runner

# -- what goes in ---------------------------------------------------------------------------------

REPORT = """
import json, os, sys
print(json.dumps({"time": 1.5, "argv": sys.argv[1:]}))
print(json.dumps({"time": float(sys.argv[1]) * float(os.environ["SCALE"])}))
"""


def test_arguments_and_environment(tmp_path: Path) -> None:
    objective = runner(tmp_path, *python(REPORT), "{tile}", "{workload.m}", environment={"SCALE": "{scale}"})
    assert measure(objective, tile=8, scale=0.5) == {"time": 4.0}


def test_a_variable_of_a_knob_that_does_not_exist_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALE", "3")
    objective = runner(tmp_path, *python(REPORT), "{tile}", environment={"SCALE": "{scale}"})
    assert measure(objective, tile=8) == {"time": 24.0}
    assert measure(objective, tile=8, scale=0.5) == {"time": 4.0}


@pytest.mark.parametrize("ending", [".json", ".yaml", ".toml", ".env"])
def test_a_config_file_for_each_run(tmp_path: Path, ending: str) -> None:
    code = (
        "import sys, os; assert sys.argv[1] == os.environ['AUTOTUNE_CONFIG']; print(open(sys.argv[1]).read())"
    )
    objective = runner(
        tmp_path,
        *python(code),
        "{config}",
        config_file=f"bench{ending}",
        metrics_from="pattern",
        patterns={"time": r"tile\W+(\d+)"},
    )
    assert measure(objective, tile=8) == {"time": 8.0}
    assert measure(objective, tile=16) == {"time": 16.0}


def test_a_config_file_from_a_template(tmp_path: Path) -> None:
    objective = runner(
        tmp_path, "cat", "{config}", config_file="x.conf", config_text='{{"time": {tile}, "m": {workload.m}}}'
    )
    assert measure(objective, tile=32) == {"time": 32.0}


def test_a_line_of_a_template_whose_knob_does_not_exist_is_left_out(tmp_path: Path) -> None:
    text = '{{"time":\n1\n{digit}\n}}'
    objective = runner(tmp_path, "cat", "{config}", config_file="x.conf", config_text=text)
    assert measure(objective) == {"time": 1.0}


def test_each_run_has_another_seed(tmp_path: Path) -> None:
    objective = runner(tmp_path, *python("import os; print('{\"time\": %s}' % os.environ['AUTOTUNE_SEED'])"))
    assert measure(objective)["time"] != measure(objective)["time"]


def test_no_shell_looks_at_the_arguments(tmp_path: Path) -> None:
    code = "import sys; print('{\"time\": %d}' % len(sys.argv[1]))"
    objective = runner(tmp_path, *python(code), "{text}")
    text = "$(touch x); `ls` && *"
    assert measure(objective, text=text) == {"time": len(text)}
    assert not (tmp_path / "x").exists()


# -- how it ends ----------------------------------------------------------------------------------


def test_exit_code(tmp_path: Path) -> None:
    with pytest.raises(CommandCrashed, match="exit code 3: no such device") as caught:
        measure(
            runner(tmp_path, *python("import sys; print('no such device', file=sys.stderr); sys.exit(3)"))
        )
    error = caught.value
    assert (error.status, error.exit_code, error.signal) == (Status.CRASHED, 3, None)
    assert error.stderr == "no such device\n"


def test_what_make_says_in_the_end_is_not_the_reason(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo 'kernel.c:3: no such type' >&2; exit 1\n")
    with pytest.raises(CommandCrashed, match=r"exit code 2: kernel\.c:3: no such type$"):
        measure(runner(tmp_path, "make", "-s"))
    with pytest.raises(CommandCrashed, match=r"exit code 2: make(\[\d\])?: .* No rule"):
        measure(runner(tmp_path, "make", "-s", "none"))


def test_signal(tmp_path: Path) -> None:
    with pytest.raises(CommandCrashed, match="killed by SIGSEGV") as caught:
        measure(runner(tmp_path, *python("import os; os.kill(os.getpid(), 11)")))
    assert (caught.value.exit_code, caught.value.signal) == (None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise MemoryError", Status.OUT_OF_MEMORY),
        (
            "import sys; print('java.lang.OutOfMemoryError: x', file=sys.stderr); sys.exit(3)",
            Status.OUT_OF_MEMORY,
        ),
        (
            "import sys; print('MemoryError: went on\\nno device', file=sys.stderr); sys.exit(3)",
            Status.CRASHED,
        ),
        ("import sys; print('MemoryError: went on', file=sys.stderr)", Status.CRASHED),  # no metrics
    ],
)
def test_who_says_that_memory_did_not_suffice_is_out_of_memory(
    tmp_path: Path, code: str, status: Status
) -> None:
    with pytest.raises(CommandCrashed) as caught:
        measure(runner(tmp_path, *python(code)))
    assert caught.value.status is status


def test_78_is_infeasible(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match=r"refuses it .*: tile too large"):
        measure(runner(tmp_path, *python("import sys; print('tile too large'); sys.exit(78)")))


@pytest.mark.parametrize("phase", ["run", "prepare", "check"])
def test_75_says_that_something_else_failed(tmp_path: Path, phase: str) -> None:
    """It had been a crash of the configuration, which no search tries again."""
    failing = python("import sys; print('no licence is free'); sys.exit(75)")
    programs = {"run": printing('{"time": 1}'), phase: failing}
    objective = runner(tmp_path, *programs.pop("run"), **programs)
    with pytest.raises(Lost, match=r"asks to be run again .*: no licence is free"):
        measure(objective)


@pytest.mark.parametrize(("code", "ends"), [(78, Infeasible), (75, Lost), (3, CommandCrashed)])
def test_a_program_of_the_configurations_own_is_named_as_in_the_space_file(
    tmp_path: Path, code: int, ends: type[Exception]
) -> None:
    """One that refused was named by its path, in which each configuration has another folder."""
    build = f"printf '#!/bin/sh\\nexit {code}' > {{folder}}/bench; chmod +x {{folder}}/bench"
    with pytest.raises(ends, match=r"^\{folder\}/bench"):
        measure(runner(tmp_path, "{folder}/bench", prepare=("sh", "-c", build)))


def test_check(tmp_path: Path) -> None:
    code = "import sys; print('off by 1'); sys.exit(int(sys.argv[1]))"
    objective = runner(tmp_path, *printing('{"time": 1}'), check=(*python(code), "{exit}"))
    assert measure(objective, exit=0) == {"time": 1.0}
    with pytest.raises(WrongAnswer, match="exit code 1: off by 1"):
        measure(objective, exit=1)
    with pytest.raises(Infeasible):
        measure(objective, exit=78)
    crashing = replace(objective.spec, check=python("import os; os.abort()"))
    with pytest.raises(CommandCrashed, match="SIGABRT"):
        measure(CommandRunner(crashing, objective.context, (TIME,)))


def test_a_program_that_vanishes(tmp_path: Path) -> None:
    program = tmp_path / "bench"
    program.write_text("#!/bin/sh\necho '{\"time\": 1}'\n")
    program.chmod(0o755)
    objective = runner(tmp_path, "./bench")
    assert measure(objective) == {"time": 1.0}
    program.unlink()
    with pytest.raises(CommandCrashed, match=r"cannot run './bench' in .*: No such file or directory$"):
        measure(objective)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo", "needs a first line such as #!/bin/sh"),
        ("#!/bin/sh\r\necho", "or that line ends as on Windows"),
        ("#!/nowhere/python\n", "its first line .* names is not there"),
    ],
)
def test_why_a_script_cannot_be_run(tmp_path: Path, text: str, why: str) -> None:
    """A shell runs one without a first line; of one with a wrong line it was said that it is not there."""
    script = tmp_path / "bench"
    script.write_bytes(text.encode())
    script.chmod(0o755)
    with pytest.raises(CommandCrashed, match=rf"cannot run './bench' in .*: .*{why}") as found:
        measure(runner(tmp_path, "./bench"))
    assert found.value.mistake


def test_a_program_that_prepare_did_not_make_is_the_same_mistake_for_every_configuration(
    tmp_path: Path,
) -> None:
    """Named by a path that differed in each trial, it let a search go on to its end without a result."""
    objective = runner(tmp_path, "{folder}/bench", prepare=("true", "{tile}", "{folder}"))
    said = set()
    for tile in (1, 2):
        with pytest.raises(CommandCrashed, match=r"^cannot run '\{folder\}/bench' in ") as found:
            measure(objective, tile=tile)
        said.add(found.value.mistake)
    assert len(said) == 1 and all(said)


# -- preparing ------------------------------------------------------------------------------------


def test_shared_results_are_prepared_again_when_overtaken(tmp_path: Path) -> None:
    """Both configurations build ./built; interleaved readings must never measure the other's."""
    build = python("import sys; open('built', 'w').write(sys.argv[1]); open('log', 'a').write(sys.argv[1])")
    objective = runner(
        tmp_path, *python("print('{\"time\": %s}' % open('built').read())"), prepare=(*build, "{tile}")
    )
    prepared = [objective.prepare(Configuration({"tile": tile})) for tile in (1, 2)]
    assert not (tmp_path / "log").exists()  # it waits for its turn
    one, two = map(objective.load, prepared)
    readings = [objective.measure(loaded, RNG)["time"] for loaded in (one, one, two, two, one)]
    assert readings == [1.0, 1.0, 2.0, 2.0, 1.0]
    assert (tmp_path / "log").read_text() == "12121"


def test_two_searches_in_one_folder_never_run_each_others_build(tmp_path: Path) -> None:
    build = python("import sys; open('built', 'w').write(sys.argv[1]); open('log', 'a').write(sys.argv[1])")
    show = python("print('{\"time\": %s}' % open('built').read())")
    spec = CommandObjective(show, tmp_path, prepare=(*build, "{tile}"))
    first, second = (CommandRunner(spec, Context({}, {}, tmp_path / name), (TIME,)) for name in ("a", "b"))
    one, two = Configuration({"tile": 1}), Configuration({"tile": 2})
    mine, others = first.load(one), second.load(two)
    readings = [first.measure(mine, RNG), second.measure(others, RNG), first.measure(mine, RNG)]
    assert [reading["time"] for reading in readings] == [1.0, 2.0, 1.0]
    assert second.measure(second.load(one), RNG)["time"] == 1.0
    assert (tmp_path / "log").read_text() == "121211", "nor is the same build of another's trusted"


def test_no_other_search_is_at_a_metrics_file_while_the_command_runs(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from autotune.measure.cores.turns import FileLock\n"
        "free = FileLock(Path(sys.argv[1])).take()\n"
        "open('out.json', 'w').write('{\"time\": %s}' % int(free))"
    )
    lock = str(_beside_the_locks(tmp_path / "out.json", "alone"))
    objective = runner(tmp_path, *python(code), lock, metrics_from="file", metrics_file="out.json")
    assert measure(objective) == {"time": 0.0}
    assert FileLock(Path(lock)).take(), "and afterwards it is free"


@pytest.mark.parametrize("folder", ["$AUTOTUNE_FOLDER", "{folder}"])
def test_private_results_are_prepared_once_and_ahead(tmp_path: Path, folder: str) -> None:
    build = f'echo {{tile}} > "{folder}/built"; echo {{tile}} >> log'
    show = f'echo "{{{{\\"time\\": $(cat "{folder}/built")}}}}"'
    objective = runner(tmp_path, "sh", "-c", show, prepare=("sh", "-c", build))
    prepared = [objective.prepare(Configuration({"tile": tile})) for tile in (1, 2)]
    assert (tmp_path / "log").read_text() == "1\n2\n"
    one, two = map(objective.load, prepared)
    assert [objective.measure(loaded, RNG)["time"] for loaded in (one, two, one)] == [1.0, 2.0, 1.0]
    assert (tmp_path / "log").read_text() == "1\n2\n"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_what_a_compiler_names_is_said_without_its_source_and_notes(tmp_path: Path) -> None:
    (tmp_path / "bench.c").write_text("int main(void) { undeclared = 3; return 1; }\n")
    objective = runner(tmp_path, "true", prepare=("gcc", "-o", "bench", "bench.c"))
    with pytest.raises(Infeasible, match=r"failed with exit code 1: bench\.c:1:18: error: .undeclared."):
        measure(objective, tile=9)


def test_a_compiler_that_refuses_is_infeasible(tmp_path: Path) -> None:
    objective = runner(
        tmp_path, *printing('{"time": 1}'), prepare=("sh", "-c", "echo tile of {tile}: too large >&2; exit 1")
    )
    with pytest.raises(Infeasible, match="prepare command failed with exit code 1: tile of 9: too large"):
        measure(objective, tile=9)


# -- children -------------------------------------------------------------------------------------


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_it_up(tmp_path: Path) -> None:
    script = 'sleep 60 & echo "{{\\"time\\": 1}}"; echo $! > pid'
    start = time.monotonic()
    assert measure(runner(tmp_path, "sh", "-c", script)) == {"time": 1.0}
    assert time.monotonic() - start < 30
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """The program is in the group of its parent, and dies even where the parent is killed alone."""
    code = f"""
import sys
from pathlib import Path
from autotune.measure.program import run_program
script = "echo $$ > pid.part; mv pid.part pid; exec sleep 60"
run_program(["sh", "-c", script], Path({str(tmp_path)!r}), {{"PATH": "/bin:/usr/bin"}})
"""
    parent = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    while not (tmp_path / "pid").exists():
        assert parent.poll() is None
    child = psutil.Process(int((tmp_path / "pid").read_text()))
    assert os.getpgid(child.pid) == parent.pid
    parent.kill()
    parent.wait()
    gone, _ = psutil.wait_procs([child], timeout=20)
    assert gone or child.status() == psutil.STATUS_ZOMBIE


def test_what_comes_before_the_program_is_none_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To copy this process, which has loaded much, takes longer than many a program."""
    slow = 0.2
    monkeypatch.setattr(program, "dying_with_parent", lambda: lambda: time.sleep(slow))
    began = time.perf_counter()
    ran = run_program(["true"], tmp_path, os.environ)
    assert 0 < ran.seconds <= time.perf_counter() - began - slow


PEAKS = """
import os, sys
from pathlib import Path
from autotune.measure.program import run_program
from autotune.measure.memory import PeakMemory

def peak(megabytes):
    memory = PeakMemory()
    program = [sys.executable, "-S", "-c", f"bytearray({megabytes} << 20)"]
    run_program(program, Path(), os.environ, memory=memory)
    return memory.read() / 2**20

print(peak(0), peak(400), peak(200))
"""


def test_the_memory_of_a_program_is_its_own_also_where_one_before_took_more() -> None:
    """Measured by a process that is small itself, as a worker is."""
    ran = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    none, large, middle = map(float, ran.stdout.split())
    assert none + 150 < large and none + 50 < middle < none + 300


def test_a_last_line_is_told_though_nothing_ends_it(tmp_path: Path) -> None:
    told: list[str] = []
    ended = run_program(["printf", r"one\n\ntwo"], tmp_path, os.environ, told.append)
    assert told == ["one", "", "two"] and ended.stdout == "one\n\ntwo"


def test_an_interrupt_kills_it(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def once_it_runs(_: str) -> None:
        signal.raise_signal(signal.SIGALRM)

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_program(["sh", "-c", "echo up; exec sleep 60"], tmp_path, os.environ, once_it_runs)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert not [c for c in psutil.Process().children() if c.name() == "sleep"]


# -- at construction ------------------------------------------------------------------------------


def test_what_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    for arguments, message in [
        (("no-such-program-at-all",), "no program 'no-such-program-at-all'"),
        (("./nowhere",), "no program './nowhere' in"),
        (("x" * 300,), "no program 'xxx"),
        (("./" + "x" * 300,), "no program './xxx"),
        (("./bench",), r"chmod \+x"),
        (("bench",), r"write ./bench"),
    ]:
        with pytest.raises(InputError, match=message):
            runner(tmp_path, *arguments)
    with pytest.raises(InputError, match=r"folder .* does not exist"):
        runner(tmp_path / "nowhere", "true")
    with pytest.raises(InputError, match="no program 'nope'"):
        runner(tmp_path, "true", check=("nope",))
    runner(tmp_path, "./made-by-prepare", prepare=("true",))
    runner(tmp_path, "{program}")


def test_metrics_that_the_source_cannot_give(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'error' .* the wall clock cannot give it"):
        runner(tmp_path, "true", metrics=(TIME, ERROR, NOTE), metrics_from="wall")
    with pytest.raises(InputError, match=r"'error' .* no pattern is there for it"):
        runner(tmp_path, "true", metrics=(TIME, ERROR), metrics_from="pattern", patterns={"time": "(.)"})
