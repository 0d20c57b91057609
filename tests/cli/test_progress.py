"""What a search says on a terminal while it runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SPACE = """
autotune: 1
name: quick
objective: objective.py:measure
knobs: {tile: {values: [1, 2, 4, 8], default: 8}}
measure: {min_readings: 3, max_readings: 3, finalists: 1}
"""


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """All that ``autotune`` writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    command = [sys.executable, "-m", "autotune", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # what a terminal gives whose other end is closed
        while data := os.read(ours, 1 << 16):
            said += data
    os.close(ours)
    assert process.wait() == 0, said.decode()
    return said.decode()


def test_while_finalists_are_measured_again_the_line_says_how_long(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("def measure(tile): return 1.0 + tile\n")
    (tmp_path / "space.yaml").write_text(SPACE)
    said = on_a_terminal(tmp_path, "search", "space.yaml", "--store", "quick.db")
    _, _, defending = said.partition("measuring again")
    assert " s of up to" in defending
    assert "in flight" not in defending and " left" not in defending


def test_what_a_program_says_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(
        "def measure(tile):\n    if tile == 1: raise ValueError('\\x1b[2Jgone')\n    return 1.0 + tile\n"
    )
    (tmp_path / "space.yaml").write_text(SPACE)
    said = on_a_terminal(tmp_path, "search", "space.yaml", "--store", "quick.db")
    assert "\x1b[2J" not in said
    assert said.count("ValueError: \\x1b[2Jgone") >= 2, "while it ran, and in the end"
