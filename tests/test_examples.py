"""The examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.long
def test_the_flags_of_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(
        "int sum(int *x, int n) { int s = 0; while (n--) s += x[n]; return s; }\n"
    )
    command = [
        sys.executable,
        str(EXAMPLES / "compiler_flags.py"),
        "sum.c",
        "--trials",
        "3",
        "--store",
        "a.db",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, flags = done.stdout.splitlines()
    assert said.endswith("after 3 trials:") and int(said.split()[0]) <= int(said.split()[-4].rstrip(","))
    assert flags.startswith("gcc -O2")
