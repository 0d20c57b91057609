"""Sources whose configurations only importing them tells."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files import triton_configs
from autotune.interop.space_files.triton_run import convert
from autotune.space.reading.reader import read_spec
from autotune.space.space import Space
from tests.objectives.triton_child import needs_triton

KERNELS = """
import os
import triton
import triton.language as tl
from .sizes import few, prune

print("a source may print what it likes")

def fewer():
    return few()[:1]

@triton.autotune(few(), key=["n", "n.shape[0]", "m"], prune_configs_by=prune, reset_to_zero=["x"])
@triton.heuristics({"EVEN": lambda values: True})
@triton.jit
def outside(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass

@triton.heuristics({"EVEN": lambda values: True})
@triton.autotune([triton.Config({"BLOCK": 2, "TYPE": tl.float16})], key=[])
@triton.jit
def within(x, n, BLOCK: tl.constexpr, TYPE: tl.constexpr, EVEN: tl.constexpr):
    pass

again = outside
"""

SIZES = """
import triton

def few():
    found = [(b, w, r) for b in (64, 128) for w in (2, 4) for r in (None, 96)]
    return [triton.Config({"BLOCK": b}, num_warps=w, maxnreg=r, pre_hook=print) for b, w, r in found]

prune = {"early_config_prune": lambda configs, named, **more: configs}

@triton.autotune([triton.Config({"BLOCK": 1})], key=[])
@triton.jit
def elsewhere(x):
    pass
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    package = tmp_path / "ops"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text(SIZES)
    (package / "kernels.py").write_text(KERNELS)
    return package / "kernels.py"


def read_back(file: Path, **arguments: str) -> Space:
    """The space as its own file says it."""
    output = file.parent / "space.yaml"
    output.write_text(convert(file, **arguments, output=output).text())
    return read_spec(output).space


@pytest.mark.torch
@needs_triton
def test_a_source_of_a_package_gives_what_it_makes(source: Path) -> None:
    unseen = SIZES.replace("def few", "def same(f): return f\n@same\ndef few")  # only running it tells
    (source.parent / "sizes.py").write_text(unseen)
    with pytest.raises(InputError, match=r"few\(\).*is not understood") as refused:
        triton_configs.convert(source, "outside")
    assert "convert --run imports the source" in str(refused.value)
    space = read_back(source, kernel="outside")
    assert dict(space.workload) == {"n": 1024}
    assert [knob.name for knob in space.knobs] == ["BLOCK", "num_warps", "num_stages", "maxnreg"]
    assert len(space.feasible) == 8
    assert dict(space.default()) == {"BLOCK": 64, "num_warps": 2, "num_stages": 3, "maxnreg": 0}
    assert convert(source, "outside").notes == (
        "key 'n.shape[0]' is no name of an argument: it is left out.",
        "key 'm' is no argument of the kernel: it is left out.",
        "prune_configs_by is not translated: write what it prunes as constraints.",
        "reset_to_zero is not translated: it is left out.",
        "the pre_hook of configurations is left out.",
    )


@pytest.mark.torch
@needs_triton
def test_kernels_are_named_as_the_source_names_them(source: Path) -> None:
    with pytest.raises(InputError, match=r"there are 2 kernels\n.*one of outside, within"):
        convert(source)
    with pytest.raises(InputError, match=r"kernels.py:18: TYPE is triton.language.float16"):
        convert(source, "within")
    assert len(read_back(source, kernel="outside", configs="fewer").feasible) == 1
    with pytest.raises(InputError, match="it has no 'more'"):
        convert(source, "outside", "more")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "x = 1\n\nimport no_such_module",
            r"kernels.py:3: importing it failed: ModuleNotFoundError.*no_such_module",
        ),
        ("def f(", "importing it failed: SyntaxError"),
        ("import sys\nsys.exit('enough')", "kernels.py:2: importing it failed: SystemExit: enough"),
        ("import os\nos.abort()", "importing it ended its process by SIGABRT"),
        (
            "import os, sys\nsys.stderr.write('last words')\nsys.stderr.flush()\nos._exit(3)",
            "code 3: last words",
        ),
        ("x = 1", "nothing here is decorated with triton.autotune"),
        ("def f():\n    @autotune([])\n    def k(): pass", r"nothing here.*\n.*are found without --run"),
    ],
)
def test_what_fails_on_import_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        convert(file)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("found = 3", "kernels.py: --configs found: TypeError: 'int' object is not iterable"),
        ("found = [3]", "--configs found: AttributeError: 'int' object has no attribute 'kwargs'"),
        ("def found(n): return n", r"--configs found: TypeError: found\(\) missing"),
        (
            "def found():\n    raise OSError('no GPU')",
            "kernels.py:2: --configs found: OSError: no GPU\n.*expected",
        ),
    ],
)
def test_a_name_that_gives_no_configurations_is_no_failure_of_the_import(
    tmp_path: Path, named: str, says: str
) -> None:
    """It was said that importing the source failed, and that it has to be importable."""
    file = tmp_path / "kernels.py"
    file.write_text(named)
    with pytest.raises(InputError, match=says) as raised:
        convert(file, configs="found")
    assert "import" not in str(raised.value).replace(str(tmp_path), "")
    assert "a list of triton.Config, or a function without arguments" in str(raised.value)


@pytest.mark.torch
@needs_triton
def test_what_a_source_leaves_running_is_not_waited_for(source: Path) -> None:
    left = source.parent / "left"
    started = (
        f"import subprocess\nopen({str(left)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))\n"
    )
    source.write_text(started + source.read_text())
    convert(source, kernel="outside")
    os.kill(int(left.read_text()), signal.SIGKILL)  # it is still there
