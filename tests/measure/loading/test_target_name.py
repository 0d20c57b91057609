"""Names that a file defines, told without running it: what may be there is never refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.loading.target_name import require_target
from autotune.space.spec import PythonObjective


@pytest.mark.parametrize(
    "text",
    [
        "def run(a): ...",
        "class run: ...",
        "run = lambda a: a",
        "from elsewhere import it as run",
        "import run",
        "if __debug__:\n    def run(a): ...",
        "try:\n    from fast import run\nexcept ImportError:\n    run = None",
        "from elsewhere import *",
        "globals()['run'] = print",
        "exec('def run(a): ...')",
        "def __getattr__(name): ...",
    ],
)
def test_what_may_define_it_is_let_through(tmp_path: Path, text: str) -> None:
    (tmp_path / "it.py").write_text(f"raise SystemExit('it was run')\n{text}\n")
    require_target(PythonObjective("it.py:run", tmp_path))


def test_a_name_that_is_surely_missing_is_said_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("def run_it(a): ...\nclass Kernel: ...\n")
    with pytest.raises(InputError) as raised:
        require_target(PythonObjective("it.py:Kernal", tmp_path))
    assert "it.py has no 'Kernal'" in str(raised.value)
    assert "run_it, Kernel" in str(raised.value) and "did you mean 'Kernel'?" in str(raised.value)
