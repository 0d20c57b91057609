"""What a program prints or writes as its metrics: JSON, patterns, files, the clock, and what is too much."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.outcome import Report
from autotune.measure.phases.runner import Runner
from autotune.measure.program import Bounded
from autotune.measure.readings import Sample
from autotune.measure.reports import Curve, Reporter
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status
from tests.measure.commands.running import ERROR, NOTE, RNG, TIME, measure, printing, python, runner


def test_the_last_json_object_counts(tmp_path: Path) -> None:
    text = (
        '{"time": 9}\nnoise {"time": 8}\n{"time": 2, "error": 0.5, "note": 3, "more": "x"}\n[1]\n{broken\nbye'
    )
    objective = runner(tmp_path, *printing(text), metrics=(TIME, ERROR, NOTE))
    assert measure(objective) == {"time": 2.0, "error": 0.5, "note": 3.0}


def test_json_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text(
        '50 %\r{"note": "one\u2028two\x85three", "time": 2}\n', encoding="utf-8"
    )
    assert measure(runner(tmp_path, "cat", "said.json")) == {"time": 2}


def test_a_colour_that_ends_where_the_object_begins(tmp_path: Path) -> None:
    """A compiler that warns in colours resets them at the beginning of the next line."""
    (tmp_path / "said").write_bytes(b'\x1b[1;35mwarning\n\x1b[0m\x1b[K{"time": 2}\x1b[0m\n')
    assert measure(runner(tmp_path, "cat", "said")) == {"time": 2}


def test_a_metric_inside_another(tmp_path: Path) -> None:
    p99 = MetricSpec("latency.p99", "minimize")
    assert measure(runner(tmp_path, *printing('{"latency": {"p99": 7}}'), metrics=(p99,))) == {
        "latency.p99": 7.0
    }
    assert measure(runner(tmp_path, *printing('{"latency.p99": 7}'), metrics=(p99,))) == {"latency.p99": 7.0}


def test_a_report_has_its_metrics_in_the_same_places_as_the_last_line(tmp_path: Path) -> None:
    loss, worst = MetricSpec("val.loss", "minimize"), MetricSpec("val.worst", at_most=9)
    text = (
        '{"step": 1, "val": {"loss": 5, "worst": 8}, "x": 3}\n{"step": 2, "val.loss": 4, "val": {"loss": 9}}'
    )
    objective = runner(tmp_path, *printing(text), metrics=(loss, worst))
    heard: list[Report] = []
    objective.report = Reporter(Curve(3, "val.loss", ()), lambda report, waits: heard.append(report) or "")
    with pytest.raises(CommandCrashed, match=r"no metric 'val\.worst'"):  # the last line has none
        measure(objective)
    assert [report.metrics for report in heard] == [
        {"x": 3.0, "val.loss": 5.0, "val.worst": 8.0},
        {"val.loss": 4.0},
    ]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"val": {"time": 5}}, "must bring the metric 'time'; there is val: call the metric 'val.time' in"),
        ({"x": 5, "y": 1}, "must bring the metric 'time'; there is x, y$"),
        ({}, "must bring the metric 'time'; there is nothing else$"),
        ({"time": "slow"}, "the metric 'time' is 'slow', which is no number$"),
        ({"time": "5 ms"}, "'time' is '5 ms', which is no number: write it as a number, without quotes"),
        ({"time": True}, "the metric 'time' is True, which is no number$"),
    ],
)
def test_a_report_says_why_it_cannot_be_used(tmp_path: Path, report: dict[str, object], said: str) -> None:
    objective = runner(tmp_path, *printing(json.dumps({"step": 1, **report})))
    objective.report = Reporter(Curve(3, "time", ()))
    with pytest.raises(CommandCrashed, match=said):
        measure(objective)


def test_a_report_under_another_name_is_a_mistake_of_the_program(tmp_path: Path) -> None:
    """It is the same in every trial, so that the search ends instead of trying them all."""
    code = "import sys; print('{\"step\": 1, \"loss\": ' + sys.argv[1] + '}')"
    objective = runner(tmp_path, *python(code), "{x}")
    mistakes = []
    for x in (1, 20):
        objective.report = Reporter(Curve(3, "time", ()))
        with pytest.raises(CommandCrashed) as crashed:
            measure(objective, x=x)
        mistakes.append(crashed.value.mistake)
    assert mistakes[0] == mistakes[1] != ""


@pytest.mark.parametrize(
    ("metric", "report"),
    [
        ("time", '{"step": 1, "time": "nan"}'),
        ("time", '{"step": 1, "time": null}'),
        ("val.time", '{"step": 1, "val": {"time": null}}'),
    ],
)
def test_a_report_may_spell_nan_as_json_can(tmp_path: Path, metric: str, report: str) -> None:
    """JSON has no such number; a training that diverged had crashed under early stopping."""
    goal = replace(TIME, name=metric)
    objective = runner(tmp_path, *printing(report), "{x}", metrics=(goal,))
    outcome = Runner(objective, (goal,), MeasureSettings()).measure(
        lambda: Configuration({"x": 1}), 1, reporter=Reporter(Curve(3, metric, ()))
    )
    assert (outcome.status, outcome.message) == (Status.DIVERGED, f"{metric} is nan at step 1")


def test_patterns_take_the_last_match_in_stdout_then_stderr(tmp_path: Path) -> None:
    code = "import sys; print('took 3 s'); print('took 2.5e-1 s'); sys.stderr.write('took 9 s, error 0.01')"
    objective = runner(
        tmp_path,
        *python(code),
        metrics=(TIME, ERROR),
        metrics_from="pattern",
        patterns={"time": r"took (\S+) s", "error": r"error (\S+)"},
    )
    assert measure(objective) == {"time": 0.25, "error": 0.01}


def test_a_pattern_that_matches_nothing_is_said_with_what_was_printed(tmp_path: Path) -> None:
    patterns = {"time": r"took (\S+) s"}
    objective = runner(tmp_path, "echo", "elapsed", "{tile} us", metrics_from="pattern", patterns=patterns)
    with pytest.raises(CommandCrashed, match=r"pattern of the metric 'time' .* printed: elapsed 8 us$"):
        measure(objective, tile=8)
    silent = runner(tmp_path, "true", metrics_from="pattern", patterns=patterns)
    with pytest.raises(CommandCrashed, match=r"matches nothing that it printed: it printed nothing$"):
        measure(silent)


def test_the_wall_clock(tmp_path: Path) -> None:
    objective = runner(tmp_path, "sleep", "0.2", metrics_from="wall")
    assert 0.2 <= measure(objective)["time"] < 60


def test_a_metrics_file_of_this_run(tmp_path: Path) -> None:
    code = "import sys; sys.argv[1] == '1' and open('out.json', 'w').write('{\"time\": 4}')"
    objective = runner(tmp_path, *python(code), "{write}", metrics_from="file", metrics_file="out.json")
    assert measure(objective, write=1) == {"time": 4.0}
    with pytest.raises(CommandCrashed, match="of an earlier run"):
        measure(objective, write=0)
    assert (tmp_path / "out.json").read_text() == '{"time": 4}'
    (tmp_path / "out.json").unlink()
    with pytest.raises(CommandCrashed, match="did not write"):
        measure(objective, write=0)


def test_a_metrics_file_in_the_folder_of_the_configuration(tmp_path: Path) -> None:
    code = "import sys; sys.argv[1] == '1' and open(sys.argv[2], 'w').write('{\"time\": 4}')"
    file = "{folder}/of-{write}.json"
    objective = runner(tmp_path, *python(code), "{write}", file, metrics_from="file", metrics_file=file)
    assert measure(objective, write=1) == {"time": 4.0}
    with pytest.raises(CommandCrashed, match=r"did not write \{folder\}/of-\{write\}.json"):
        measure(objective, write=0)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{size},0.5", r"out\.txt is not JSON: .*, and read them with a pattern"),
        ("[{size}, 0.5]", r"out\.txt holds no JSON object$"),
    ],
)
def test_a_metrics_file_of_another_form_is_a_mistake_of_the_program(
    tmp_path: Path, written: str, said: str
) -> None:
    code = "import sys; open('out.txt', 'w').write(sys.argv[1])"
    objective = runner(tmp_path, *python(code), written, metrics_from="file", metrics_file="out.txt")
    mistakes = []
    for size in (1, 20):
        with pytest.raises(CommandCrashed, match=said) as crashed:
            measure(objective, size=size)
        mistakes.append(crashed.value.mistake)
    assert mistakes[0] == mistakes[1] != ""


def test_null_inside_another_object_is_no_missing_metric(tmp_path: Path) -> None:
    objective = runner(
        tmp_path, *printing('{"of": {"time": null}}'), metrics=(replace(TIME, name="of.time"),)
    )
    with pytest.raises(CommandCrashed, match=r"the metric 'of\.time' is null in the JSON object"):
        measure(objective)


def test_nan_is_passed_on(tmp_path: Path) -> None:
    for written in ("NaN", '"nan"'):  # the second from programs that keep to JSON, which has no such number
        assert np.isnan(measure(runner(tmp_path, *printing(f'{{"time": {written}}}')))["time"])


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("nothing of use", r'no line with a JSON object like {"time": 0.5} \(set .*\): nothing of use'),
        (
            str({"time": 1, "error": 0}),
            "; one in braces is not JSON: expecting property name enclosed in double quotes: {'time': 1",
        ),
        ('{"time": .5, "error": 0}', "; one in braces is not JSON: a number begins with a point, as bc"),
        (
            '{"tim": 1, "error": 0}',
            "no metric 'time' in the JSON object it printed last; there is tim, error",
        ),
        (
            '{"error": 0, "metrics": {"time": 1}}',
            "there is error, metrics: call the metric 'metrics.time' in the space file",
        ),
        (
            '{"error": 0, "runs": [{"of": {"time": 1}}]}',
            "there is error, runs: call the metric 'runs.0.of.time' in the space file",
        ),
        ('{"time": true, "error": 0}', "'time' is True, which is no number"),
        ('{"time": "soon", "error": 0}', "'time' is 'soon', which is no number"),
        ('{"time": [1], "error": 0}', "no number"),
        ('{"time": null, "error": 0}', "the metric 'time' is null in the JSON object it printed last"),
        ('{"time": "0.3", "error": 0}', "'time' is '0.3', which is no number: write it as a number, without"),
        (
            '{"time": "0.3 ms", "error": 0}',
            "is no number: write it as a number, without quotes, unit or commas",
        ),
        ('{"time": 1}', "no metric 'error'"),
    ],
)
def test_missing_metrics_are_named(tmp_path: Path, output: str, message: str) -> None:
    with pytest.raises(CommandCrashed, match=message):
        measure(runner(tmp_path, *printing(output), metrics=(TIME, ERROR, NOTE)))


def test_a_flag_may_be_held_against_a_bound(tmp_path: Path) -> None:
    """As in Python: what is judged by a goal is a number."""
    said = printing('{"time": 1, "error": false}')
    assert measure(runner(tmp_path, *said, metrics=(TIME, ERROR))) == {"time": 1.0, "error": 0.0}


@pytest.mark.parametrize(
    "output",
    [
        '{\n  "time": 2\n}\n',  # as json.dumps(..., indent=2) and tools like fio write it
        'starting {\n{\n  "jobs": [{"time": 1}],\n  "time": 2\n}\ndone in 3 s\n',
        '{"time": 2}\n{\n  "time": 1\n}\n',  # a line is preferred: the other may be its settings
        '{\n "time": 1\n}\n{\n "time": 2\n}',
        '{\n  "time": 2,\n  "runs": [\n    {"time": 1}\n  ]\n}\n',  # a line of it is no object of its own
        '{"time": 2}\n{\n"runs": [\n{"time": 1}\n]\n}\n',
        '  "time": 1\n  {\n    "time": 1\n  }\n}\n{\n  "time": 2}\n',  # the head was not kept
    ],
)
def test_an_object_on_several_lines(tmp_path: Path, output: str) -> None:
    assert measure(runner(tmp_path, *printing(output))) == {"time": 2.0}


def test_a_metric_inside_a_list(tmp_path: Path) -> None:
    inside = MetricSpec("jobs.1.read.bw", "maximize")
    output = '{"jobs": [{}, {"read": {"bw": 7}}]}'
    assert measure(runner(tmp_path, *printing(output), metrics=(inside,))) == {"jobs.1.read.bw": 7.0}
    with pytest.raises(CommandCrashed, match=r"no metric 'jobs\.2\.read\.bw'"):
        wrong = replace(inside, name="jobs.2.read.bw")
        measure(runner(tmp_path, *printing(output), metrics=(wrong,)))


def test_a_program_that_runs_for_long_stays_warm_whatever_process_runs_it(tmp_path: Path) -> None:
    objective = runner(tmp_path, "sleep", "0.2", metrics_from="wall")
    assert not objective.is_warm
    measure(objective)
    assert objective.is_warm and runner(tmp_path, "true", metrics_from="wall").is_warm


def test_a_run_that_is_no_longer_worth_its_time_is_ended(tmp_path: Path) -> None:
    slow = python("import os, time; open('started', 'w').write(str(os.getpid())); time.sleep(600)")
    objective = runner(tmp_path, *slow, metrics_from="wall")
    loaded = objective.load(objective.prepare(Configuration({})))
    objective.worth_seconds = 1.0
    sample = objective.measure(loaded, RNG)
    assert sample == Sample({"time": 1.0}, cut_off=True)
    started = tmp_path / "started"
    pid = started.read_text() if started.exists() else ""
    assert not pid or not psutil.pid_exists(int(pid))


def test_a_program_that_tells_its_time_itself_is_not_ended_by_ours(tmp_path: Path) -> None:
    code = "import time; time.sleep(0.3); print('{\"time\": 0.1}')"
    objective = runner(tmp_path, *python(code))
    objective.worth_seconds = 0.2
    assert measure(objective) == {"time": 0.1}


def test_a_wall_of_braces_is_read_in_time(tmp_path: Path) -> None:
    code = "print('{\\n' * 200_000); print('[' * 100_000); print('{\"a\":' * 100_000); print('{\"time\": 2}')"
    assert measure(runner(tmp_path, *python(code))) == {"time": 2.0}


def test_megabytes_of_output_are_bounded(tmp_path: Path) -> None:
    code = """
import sys
for _ in range(300): sys.stdout.write("x" * 100_000 + chr(10)); sys.stderr.write("y" * 100_000)
print('{"time": 1}')
"""
    before = psutil.Process().memory_info().rss
    assert measure(runner(tmp_path, *python(code))) == {"time": 1.0}
    assert psutil.Process().memory_info().rss - before < 20e6


def test_bounded_keeps_both_ends() -> None:
    kept = Bounded(head=4, tail=4)
    for piece in (b"ab", b"cdef", b"ghij", b"k" * 50, b"wxyz"):
        kept.add(piece)
    assert kept.text.startswith("abcd\n") and kept.text.endswith("\nwxyz")
    assert "56 bytes left out" in kept.text
    small = Bounded(head=4, tail=4)
    small.add(b"abcdefgh")
    assert small.text == "abcdefgh"
