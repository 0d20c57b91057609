"""Each verb as a user runs it: exit codes, one JSON document and nothing else on stdout."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest

from autotune.cli import init
from autotune.cli.show import say_studies
from autotune.cli.verbs import _SYNONYMS, VERBS
from autotune.errors import OutputError
from tests.cli.calling import call
from tests.cli.conftest import autotune


def document(folder: Path, *arguments: str, code: int = 0) -> Any:
    done = autotune(folder, *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help(verb: str, tmp_path: Path) -> None:
    done = autotune(tmp_path, verb, "--help")
    assert done.returncode == 0 and "Usage: autotune" in done.stdout and "--json" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["check", "--help"], ["check", "space.yaml", "--json"], ["show", "--store", "study.db"]],
)
def test_a_reader_that_has_seen_enough_is_no_failure(arguments: list[str], folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does, only sooner
    done = autotune(folder, *arguments, to=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["show", "--store", "study.db"]])
def test_an_output_that_is_closed_is_a_failure(arguments: list[str], folder: Path) -> None:
    """What should have been shown was gone, and the exit code said that all was well."""
    called = shlex.join([sys.executable, "-m", "autotune", *arguments])
    done = subprocess.run(["sh", "-c", f"{called} >&-"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "autotune: the output: Bad file descriptor\n")


def test_search_answers_with_the_defended_winner(result: dict[str, Any]) -> None:
    assert result["study"] == "small" and result["defended"] is True
    assert result["configuration"]["layout"] == "row"
    assert result["speedup"]["low"] <= result["speedup"]["estimate"] <= result["speedup"]["high"]
    assert result["trials"] == 12 == sum(result["statuses"].values())
    assert result["statuses"]["infeasible"] >= 1 and result["replayed"] is False


def test_what_the_default_came_to_stands_beside_the_winner(folder: Path, result: dict[str, Any]) -> None:
    assert result["default"]["value"] == 1.0 and result["metrics"]["time"]["value"] == 1.0 / 16
    shown = autotune(folder, "show", "--study", "small", "--store", "study.db").stdout
    assert "time 62.5 ms; the default 1 s" in shown
    again = ("search", "space.yaml", "--store", "study.db", "--seed", "3", "--strategy", "random")
    assert "time           62.5 ms; the default 1 s" in autotune(folder, *again).stdout


def test_a_default_that_wins_or_fails_has_no_value_of_its_own(tmp_path: Path) -> None:
    objective = "def measure(tile):\n    assert tile != 1\n    return float(tile)\n"
    (tmp_path / "objective.py").write_text(objective)
    space = "autotune: 1\nname: {0}\nobjective: objective.py:measure\nmeasure: {{finalists: 0}}\n"
    for name, default in (("wins", 2), ("fails", 1)):
        knobs = f"knobs: {{tile: {{values: [1, 2, 4], default: {default}}}}}\n"
        (tmp_path / "space.yaml").write_text(space.format(name) + knobs)
        done = autotune(tmp_path, "search", "space.yaml", "--store", "study.db")
        assert "the default 2 s" not in done.stdout and done.returncode == 0
        shown = autotune(tmp_path, "show", "--study", name, "--store", "study.db").stdout
        assert ("time 2 s, which is the default" in shown) == (name == "wins")


def test_a_default_that_stays_is_no_speed_up(tmp_path: Path) -> None:
    """It had been said to be 1x faster than itself."""
    (tmp_path / "objective.py").write_text("def measure(tile):\n    return float(tile)\n")
    space = "autotune: 1\nname: stays\nobjective: objective.py:measure\n"
    (tmp_path / "space.yaml").write_text(f"{space}knobs: {{tile: {{values: [1, 2, 4], default: 1}}}}\n")
    assert autotune(tmp_path, "search", "space.yaml", "--store", "study.db").returncode == 0
    shown = autotune(tmp_path, "show", "--study", "stays", "--store", "study.db").stdout
    assert "which is the default" in shown and "speed-up" not in shown


def test_searching_again_measures_nothing_again(folder: Path, result: dict[str, Any]) -> None:
    again = document(
        folder, "search", "space.yaml", "--store", "study.db", "--seed", "3", "--strategy", "random"
    )
    assert again["trials"] == result["trials"] and again["configuration"] == result["configuration"]
    assert again["speedup"] == result["speedup"], "the verdict was measured again although nothing was tried"


def test_check_counts_and_says_what_is_removed(folder: Path) -> None:
    checked = document(folder, "check", "space.yaml")
    assert checked["cartesian"] == 20 and checked["feasible"] == 18
    assert [row["removes"] for row in checked["constraints"]] == [2]
    assert checked["default"]["feasible"] is True


def test_show_lists_studies_and_one_study(folder: Path) -> None:
    listed = document(folder, "show", "--store", "study.db")
    assert [s["study"] for s in listed["studies"]] == ["small"] and listed["studies"][0]["trials"] == 12
    one = document(folder, "show", "--study", "small", "--store", "study.db")
    assert one["top"][0]["metrics"]["time"]["value"] <= one["top"][-1]["metrics"]["time"]["value"]
    assert {row["status"] for row in one["failed"]} <= {"infeasible", "crashed"}
    for options in (["--failures"], ["--top", "1"]):  # without a name they had been ignored
        latest = autotune(folder, "show", *options, "--store", "study.db").stdout
        assert latest == autotune(folder, "show", "--study", "small", *options, "--store", "study.db").stdout


def test_a_message_that_is_cut_says_so(tmp_path: Path) -> None:
    """Its end had been missing as if the message ended there."""
    (tmp_path / "objective.py").write_text("def measure(tile):\n    raise ValueError('x' * 250)\n")
    space = "autotune: 1\nname: long\nobjective: objective.py:measure\nknobs: {tile: {values: [1]}}\n"
    (tmp_path / "space.yaml").write_text(space)
    said = autotune(tmp_path, "search", "space.yaml", "--store", "study.db").stderr
    shown = autotune(tmp_path, "show", "--failures", "--store", "study.db").stdout
    assert "xxx ... xxx" in said and "xxx...\n" in shown


def test_studies_stand_in_columns() -> None:
    fields = {"created": 0.0, "replayed": False, "workload": {}}
    studies = [
        {"study": "gemm", "id": 7, "trials": 1, **fields},
        {"study": "a-long-name", "id": 1234567, "trials": 12345, **fields},
    ]
    first, *lines = say_studies({"store": "s.db", "studies": studies}).splitlines()
    assert first == "s.db" and lines[1].endswith("12,345 trials")
    assert lines[0].index("19") == lines[1].index("19") == len("  a-long-name#1234567  "), "or 1970"
    assert len(lines[0]) == len(lines[1]) - 1 and lines[0].endswith(" 1 trial")


def test_trial_shows_everything(folder: Path) -> None:
    first = document(folder, "trial", "0", "--study", "small", "--store", "study.db")
    assert first["number"] == 0 and first["reason"]["kind"] == "default"
    assert first["readings"] and first["environment"] and first["segment"]["document"]["source_hash"]
    same = document(folder, "trial", str(first["id"]), "--store", "study.db")
    assert same["hash"] == first["hash"]


def test_a_trial_says_why_it_was_tried(folder: Path) -> None:
    said = autotune(folder, "trial", "0", "--study", "small", "--store", "study.db").stdout
    assert "  because  the default: what is used today is tried first (random)" in said
    said = autotune(folder, "trial", "5", "--study", "small", "--store", "study.db").stdout
    assert "  because  drawn at random from what was not tried yet (random)" in said
    assert "           asked after " in said


def test_derive_says_that_all_follows_and_what_does_not(folder: Path, tmp_path: Path) -> None:
    found = document(folder, "derive", "--study", "small", "--store", "study.db")
    assert found["follows"] and found["compared"] == found["trials"] == 12 and found["departure"] is None
    said = autotune(folder, "derive", "--store", "study.db")
    assert said.returncode == 0 and "small#1: all 12 proposals follow from the record" in said.stdout
    before, altered = sqlite3.connect(folder / "study.db"), sqlite3.connect(tmp_path / "altered.db")
    with closing(before), closing(altered), altered:
        before.backup(altered)
        altered.execute("UPDATE trials SET reason = json_set(reason, '$.kind', 'inspired') WHERE number = 7")
    said = autotune(tmp_path, "derive", "--store", "altered.db")
    assert said.returncode == 4, said.stderr
    assert "small#1: trial 7 does not follow from the record" in said.stdout
    assert "recorded   kind inspired" in said.stdout and "follows    kind uniform" in said.stdout
    assert autotune(tmp_path, "derive", "--study", "smalll", "--store", "altered.db").returncode == 2


def test_best_in_every_form(folder: Path, result: dict[str, Any]) -> None:
    best = document(folder, "best", "--store", "study.db")
    assert best["configuration"] == result["configuration"] and best["speedup"] == result["speedup"]
    tile = result["configuration"]["tile"]
    forms = {
        "flags": f"--tile={tile}",
        "env": f"TILE={tile}",
        "yaml": f"tile: {tile}",
        "json": f'"tile": {tile}',
    }
    for form, expected in forms.items():
        done = autotune(folder, "best", "--format", form, "--store", "study.db", "--study", "small")
        assert done.returncode == 0 and expected in done.stdout


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "t4"])
def test_export_has_one_row_a_trial(folder: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"trials.{form}"
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    said = document(folder, "export", "--format", form, "--to", str(file), "--store", "study.db")
    assert said["trials"] == 12
    if form == "csv":
        rows = list(csv.DictReader(file.open()))
        expected = ["study", "trial", "status", "strategy", "started", "seconds", "knob.tile", "knob.layout"]
        expected += ["knob.order", "metric.time", "metric.time.low", "metric.time.high", "readings"]
        assert list(rows[0]) == expected and len(rows) == 12
    if form == "t4":
        results = json.loads(file.read_text())["results"]
        assert len(results) == 12
        assert {r["invalidity"] for r in results} >= {"correct"} and any(
            not r["correctness"] for r in results
        )


def test_init_writes_what_works(tmp_path: Path) -> None:
    for kind in ("python", "c", "command"):
        written = document(tmp_path, "init", kind, "--kind", kind)
        assert all((tmp_path / file).exists() for file in written["files"])
        assert document(tmp_path, "check", f"{kind}/space.yaml")["default"]["feasible"]
        assert autotune(tmp_path, "init", kind, "--kind", kind).returncode == 2, "it wrote over files"


def test_init_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the last file is no longer written in full."""
    templates = Path(init.__file__).parent / "templates/python"
    sizes = [(templates / name).stat().st_size for name in init.KINDS["python"]]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) - 1, limits[1]))
    try:
        done = call(init.command, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(done.exception, OutputError) and "File too large" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_whether_a_store_is_sound(folder: Path, result: dict[str, Any], tmp_path: Path) -> None:
    shutil.copy(folder / "study.db", tmp_path)
    assert "study.db is sound: 1 study, " in autotune(tmp_path, "doctor", "--store", "study.db").stdout
    with closing(sqlite3.connect(tmp_path / "study.db")) as database, database:
        database.execute(
            "UPDATE artifacts SET content = x'00' WHERE hash = (SELECT min(hash) FROM artifacts)"
        )
        database.execute("UPDATE trials SET reading_count = 99 WHERE id = 2")
    database.close()
    told = autotune(tmp_path, "doctor", "--store", "study.db")
    assert told.returncode == 1 and "should have 99 readings" in told.stdout
    assert "is not what it was when it was stored" in told.stdout and ".recover" in told.stdout
    assert len(document(tmp_path, "doctor", "--store", "study.db", code=1)["findings"]) == 2


def test_doctor_says_what_is_there(tmp_path: Path) -> None:
    said = document(tmp_path, "doctor", "--seconds", "0.1")
    assert said["device"]["cores"] >= 1 and any(c["name"] == "gcc" for c in said["capabilities"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["search", "nowhere.yaml"], "nowhere.yaml"),
        (["search", "gemm-d"], "did you mean 'gemm-c'"),
        (["search", "space.yaml", "--strategy", "baies", "--store", "other.db"], "baies"),
        (["search", "space.yaml", "--trials", "0"], "trials"),
        (["search", "space.yaml", "--seed", "-1"], "-1 is not in the range"),
        (["search", "space.yaml", "--time", "10 parsecs"], "parsecs"),
        (["best", "--study", "smal", "--store", "study.db"], "small"),
        (["best", "--store", "absent/nothing.db"], "nothing.db"),
        (["trial", "99999", "--store", "study.db"], "99999"),
        (["trial", "9" * 5000, "--store", "study.db"], "no trial with a number of 5,000 digits"),
        (["lineage", f"small:{'9' * 5000}", "--store", "study.db"], "a number of 5,000 digits"),
        (["export", "--to", "trials.xyz", "--store", "study.db"], "trials.xyz"),
        (["import", "absent.json"], "absent.json"),
        (["import", "objective.py"], "objective.py"),
        (["import", "study.db"], "is a store, which needs no import"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_bad_input_is_said_and_exits_with_2(folder: Path, arguments: list[str], expected: str) -> None:
    done = autotune(folder, *arguments)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr and "Traceback" not in done.stderr and done.stdout == ""


def test_a_study_of_optuna_is_no_store_to_import(tmp_path: Path) -> None:
    optuna.create_study(storage=f"sqlite:///{tmp_path / 'optuna.db'}")
    done = autotune(tmp_path, "import", "optuna.db")
    assert done.returncode == 2 and "optuna.db is a database of another program" in done.stderr
    assert "AutotuneSampler" in done.stderr and "show --store" not in done.stderr


def test_nothing_feasible_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("def measure(a):\n    raise ValueError('never')\n")
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: never\nobjective: objective.py:measure\n"
        "knobs:\n  a: {range: [1, 3], default: 1}\n"
    )
    done = autotune(tmp_path, "search", "space.yaml", "--store", "study.db")
    assert done.returncode == 3 and "never" in done.stdout + done.stderr
    shown = autotune(tmp_path, "show", "--study", "never", "--store", "study.db").stdout
    assert "failed: 3" in shown and "best by" not in shown
    done = autotune(tmp_path, "best", "--study", "never", "--store", "study.db")
    assert done.returncode == 3 and done.stdout == ""
    assert "3 of 3 ended as crashed, as trial 0: ValueError: never" in done.stderr


def test_where_constraints_leave_nothing_no_study_is_begun(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("def measure(a):\n    return 1.0\n")
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: nothing\nobjective: objective.py:measure\n"
        "knobs:\n  a: {range: [1, 3], default: 1}\nconstraints: ['a > 3']\n"
    )
    done = autotune(tmp_path, "search", "space.yaml", "--store", "study.db")
    assert done.returncode == 3 and done.stdout == ""
    assert "space.yaml: no configuration satisfies the constraints" in done.stderr
    assert "autotune check space.yaml says what each constraint removes" in done.stderr
    assert "no study in" in autotune(tmp_path, "show", "--store", "study.db").stdout


def test_a_misspelt_verb_is_named_with_the_nearest(tmp_path: Path) -> None:
    wrong = autotune(tmp_path, "serach", "space.yaml")
    assert wrong.returncode == 2 and "No such command 'serach'. Did you mean 'search'?" in wrong.stderr
    assert "mean" not in autotune(tmp_path, "xyzzy").stderr
    wrong = autotune(tmp_path, "recipes", "exprot", "--to", "r.json")
    assert wrong.returncode == 2 and "No such command 'exprot'. Did you mean 'export'?" in wrong.stderr


def test_what_other_tools_call_a_verb_leads_to_ours(tmp_path: Path) -> None:
    """For 'run' the nearest word was 'prune', which deletes, and for 'compare' there was none."""
    assert "Did you mean 'search'?" in autotune(tmp_path, "run", "space.yaml").stderr
    assert "Did you mean 'diff'?" in autotune(tmp_path, "compare", "1", "2").stderr
    assert set(_SYNONYMS.values()) <= set(VERBS) and not set(_SYNONYMS) & set(VERBS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["verify", "a.zip", "--study", "small"],
            "a.zip was given, and --study or --recipes too",
        ),
        (["verify", "small", "--recipes", "r.json"], "one of them at a time"),
        (["verify", "--digest", "00"], "--digest is only for an archive"),
        (["report", "small", "--study", "small"], "one study at a time"),
        (["show", "small", "--study", "other"], "the study is small, and --study other"),
        (["export", "--to", "-"], "only rows can be written to stdout"),
        (["export", "--to", "-", "--format", "csv", "--json"], "without --json"),
        (["export", "--to", "a.csv", "--licence", "MIT"], "--licence is only for an archive, not for csv"),
    ],
)
def test_options_that_say_nothing_together_are_refused(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    """They had been ignored."""
    done = autotune(tmp_path, *arguments)
    assert done.returncode == 2 and expected in done.stderr


def test_in_a_folder_that_was_deleted(tmp_path: Path) -> None:
    script = f"rmdir {shlex.quote(str(tmp_path))}; {shlex.quote(sys.executable)} -m autotune show"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the current folder: No such file or directory" in done.stderr


@pytest.mark.long
def test_a_search_in_memory_names_no_command_for_later(folder: Path) -> None:
    done = autotune(folder, "search", "space.yaml", "--store", "sqlite://", "--trials", "2")
    assert done.returncode == 0 and "the store was in memory and is gone" in done.stdout
    assert "best --format" not in done.stdout


def test_where_only_the_default_succeeded_nobody_is_measured_again(tmp_path: Path) -> None:
    """It had been read once more against nobody, and then be called 'not measured again'."""
    (tmp_path / "objective.py").write_text("def measure(tile):\n    assert tile == 2\n    return 1.0\n")
    space = "autotune: 1\nname: alone\nobjective: objective.py:measure\n"
    (tmp_path / "space.yaml").write_text(f"{space}knobs: {{tile: {{values: [1, 2], default: 2}}}}\n")
    done = autotune(tmp_path, "search", "space.yaml", "--store", "study.db")
    assert done.returncode == 0 and "measuring again" not in done.stderr
    assert "no better than the default was found for alone: nothing else succeeded" in done.stdout
    assert "not measured again" not in done.stdout


def test_a_first_interrupt_promises_no_finale(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``finalists: 0`` there is none."""
    from types import SimpleNamespace

    from autotune.cli.search import interruptible

    session = SimpleNamespace(stopped=False, measuring_again=False, asking=False, stop=lambda: None)
    with interruptible(session):  # type: ignore[arg-type]
        os.kill(os.getpid(), signal.SIGINT)
    said = capsys.readouterr().err
    assert "finalists" not in said and "once more to end it at once" in said


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_while_the_command_line_is_loaded_shows_no_traceback(tmp_path: Path, name: str) -> None:
    """Ctrl-C within a twentieth of a second showed one, of whatever was imported at that moment."""
    interrupted = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have it ignored\n"
        f"signal.raise_signal(signal.{name})\n"
    )
    (tmp_path / "click.py").write_text(interrupted)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "search", "gemm-c"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "autotune: interrupted\n")


def test_an_interrupt_while_the_process_ends_shows_no_traceback(tmp_path: Path) -> None:
    """The second Ctrl-C often comes when all is said, and showed one of what was cleaned up then."""
    last = (
        "import atexit, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have it ignored\n"
        "atexit.register(signal.raise_signal, signal.SIGINT)\n"
        "from autotune.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", last, "show", "--store", "none.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.startswith("autotune: there is no store") and "KeyboardInterrupt" not in done.stderr


def test_an_interrupt_while_stderr_is_written_to_is_one_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from autotune.cli.search import interruptible

    class Interrupted(io.RawIOBase):
        """A terminal on which somebody presses Ctrl-C just as a line comes."""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            os.kill(os.getpid(), signal.SIGINT)
            return len(data)

    stops: list[bool] = []
    session = SimpleNamespace(
        stopped=False, measuring_again=False, asking=False, stop=lambda: stops.append(True)
    )
    with io.TextIOWrapper(io.BufferedWriter(Interrupted()), write_through=True) as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        with interruptible(session):  # type: ignore[arg-type]
            stderr.write("trial 1: best so far 4 ms\n")
            stderr.flush()
        monkeypatch.undo()
    assert stops
