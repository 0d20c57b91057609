"""What benchmarks share: lines that are kept, names and numbers of options, how they end."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from benchmarks import recipe
from benchmarks.kept import Kept, add_line, kept_lines, read_lines, read_searches
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import counts, known_names, mean_ranks, problem_random, run_as_command
from benchmarks.searched_rows import search


def test_a_line_that_a_kill_cut_short_is_left_out_and_not_written_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it had been a traceback, and the next line would have been added to it."""
    file = tmp_path / "runs.jsonl"
    add_line(file, {"seed": 0})
    with file.open("a") as out:
        out.write('{"seed": 1, "conf')
    add_line(file, {"seed": 2})
    assert read_lines(file) == [{"seed": 0}, {"seed": 2}]
    assert "runs.jsonl, line 2: no JSON object, left out" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named_unless_it_is_to_be_made(tmp_path: Path) -> None:
    missing = tmp_path / "folder" / "runs.jsonl"
    with pytest.raises(InputError, match=r"cannot read .*runs\.jsonl"):
        read_lines(missing)
    assert kept_lines(missing) == []
    add_line(missing, {"seed": 0})
    assert kept_lines(missing) == [{"seed": 0}]


def test_lines_of_another_benchmark_are_no_searches(tmp_path: Path) -> None:
    """It was a traceback about a key."""
    file = tmp_path / "runs.jsonl"
    file.touch()
    with pytest.raises(InputError, match="there is no search in these files"):
        read_searches([file], ("space", "seed"))
    add_line(file, {"task": "t", "seed": 0})
    with pytest.raises(InputError, match=r"a line with task, seed is no search of .*: it lacks space"):
        read_searches([file], ("space", "seed"))


def test_a_spread_of_one_batch_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was read, and ended in a traceback about quantiles."""
    monkeypatch.setattr(sys, "argv", ["recipe", "--batches", "1", "--recipes", "1", "--runs", "1"])
    with pytest.raises(SystemExit):
        recipe.main()
    assert "--batches: 1 is not at least 2" in capsys.readouterr().err


def options_of(monkeypatch: pytest.MonkeyPatch, given: str) -> argparse.Namespace:
    """Those of a benchmark with some of each kind, called with ``given``."""
    monkeypatch.setattr(sys, "argv", ["many", *given.split()])
    parser = Options("somewhere/many.py", "What it is about.")
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUNS.jsonl")
    parser.add_argument("--spaces", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--sizes", type=counts, default=(20, 30))
    parser.add_argument("--links", nargs="+", default=["a", "b c"])
    parser.add_argument("--only", default="")
    parser.add_argument("--whole", action="store_true")
    parser.aside("--jobs", type=int, default=1)
    return parser.read()


def test_a_page_names_the_command_with_all_that_decides_what_comes_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each page had written down some by itself: which recordings or seeds, it did not always tell."""
    default = "--seeds 10 --time 60 --sizes 20,30 --links a 'b c'"
    assert options_of(monkeypatch, "").command == f"python -m benchmarks.many {default}"
    options = options_of(
        monkeypatch, f"x y --spaces {tmp_path} --seeds 0 --whole --jobs 8 --out {tmp_path}/p"
    )
    assert options.command == (
        "python -m benchmarks.many RUNS.jsonl RUNS.jsonl --spaces DIR --seeds 0 --time 60 --sizes 20,30"
        " --links a 'b c' --whole"
    )
    assert options.jobs == 8 and options.out == tmp_path / "p"


def test_a_page_has_its_command_below_its_title() -> None:
    text = page("Title", "python -m x", "Some words.", [*head("a | b"), "| 1 | 2 |"])
    assert text == "# Title\n\n`python -m x`\n\nSome words.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def test_ranks_are_over_problems_and_seeds_after_so_many_tries() -> None:
    runs = {
        ("p", "a"): [[3.0, 1.0]],
        ("p", "b"): [[2.0, 2.0]],
        ("q", "a"): [[1.0, 1.0]],
        ("q", "b"): [[1.0, 2.0]],
    }
    assert mean_ranks(["a", "b"], runs, (1, 2)) == ["1.75, 1.00", "1.25, 2.00"]


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    for made in ((1, 2), (3, 4)):
        kept = Kept(tmp_path / "kept.jsonl")
        assert kept.get_or_make(lambda made=made: made, case="a", seed=0) == [1, 2]


def test_names_are_known_and_some(tmp_path: Path) -> None:
    assert known_names("b, a,b,", "way", ("a", "b")) == ["b", "a"]
    with pytest.raises(InputError, match=r"there is no way 'launh'\n.*anew, launch\n.*'launch'"):
        known_names("launh", "way", ("anew", "launch"))
    with pytest.raises(InputError, match="no way is named"):
        known_names(" ,", "way", ("anew",))


def test_counts_are_at_least_one() -> None:
    assert counts("60,120") == [60, 120]
    with pytest.raises(argparse.ArgumentTypeError, match="0 is not at least 1"):
        counts("60,0")


def test_an_error_in_what_was_given_has_no_traceback() -> None:
    def main() -> int:
        raise InputError("there is no such recording")

    with pytest.raises(SystemExit, match="there is no such recording"):
        run_as_command(main)


def test_a_page_makes_its_folder(tmp_path: Path) -> None:
    """After an hour's run the missing folder had cost the page."""
    publish("# A page", tmp_path / "new" / "page.md")
    assert (tmp_path / "new" / "page.md").read_text() == "# A page"


def test_what_a_page_was_made_on() -> None:
    assert re.fullmatch(r"autotune \S+, numpy \S+, Python 3\.\d+\.\S+", software("numpy", "no-such-package"))
    assert re.fullmatch(r".+, \d+ cores", machine())


def test_a_search_without_a_success_is_no_row(tmp_path: Path) -> None:
    """For some tables it was a traceback about the metric."""
    space = tmp_path / "space.yaml"
    space.write_text(
        'autotune: 1\nname: fails\ncommand: {run: ["false", "{x}"], metrics: wall}\n'
        "knobs:\n  x: {values: [1, 2]}\nmetrics:\n  time: {goal: minimize}\n"
    )
    with pytest.raises(InputError, match=r"this one: nothing succeeded within 5 s: .*"):
        search("this one", space, 5, str(tmp_path / "studies.db"))


@pytest.mark.parametrize("seed", [0, 3])
def test_no_ask_of_a_strategy_draws_what_its_problem_was_drawn_from(seed: int) -> None:
    """The optimum of twenty continuous knobs was drawn as a random try is, and the fifth try was there."""
    asks = {np.random.default_rng((seed, ask)).random() for ask in range(300)}
    problems = [problem_random(seed, what).random() for what in ("one", "another", "one")]
    assert not asks.intersection(problems)
    assert problems[0] == problems[2] != problems[1]
