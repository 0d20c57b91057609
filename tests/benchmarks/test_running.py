"""What benchmarks share: lines that are kept, names and numbers of options, how they end."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import pytest

from autotune.errors import InputError
from benchmarks import recipe
from benchmarks.kept import Kept, add_line, kept_lines, read_lines
from benchmarks.publishing import machine, publish, software
from benchmarks.running import counts, known_names, run_as_command


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


def test_a_spread_of_one_batch_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was read, and ended in a traceback about quantiles."""
    monkeypatch.setattr(sys, "argv", ["recipe", "--batches", "1", "--recipes", "1", "--runs", "1"])
    with pytest.raises(SystemExit):
        recipe.main()
    assert "--batches: 1 is not at least 2" in capsys.readouterr().err


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
