"""What has run where a kernel is met in a source: branches, functions and blocks around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.triton_configs import convert
from tests.interop.space_files.cases import read_back, write

BRANCHES = """
from elsewhere import has_triton, IS_AMD

WARPS = [2] if IS_AMD else [4, 8]
if has_triton():
    import triton
    SIZES = [64, 128]
    if IS_AMD:
        SIZES = [32]
    @triton.autotune(configs=[triton.Config({"A": a}, num_warps=w) for a in SIZES for w in WARPS], key=[])
    @triton.jit
    def kernel(x, A):
        pass
    SIZES = []
else:
    SIZES = ()
"""


def test_what_a_branch_assigns_is_known_to_the_kernel_in_it(tmp_path: Path) -> None:
    """And a flag that tells devices apart is assumed also where it is imported."""
    converted = convert(write(tmp_path, BRANCHES))
    assert len(converted.checked().feasible) == 4
    assert converted.notes == ("IS_AMD was taken to be false.",)


AROUND = """
CONFIGS = [Config({"A": 1})]
AROUND
    @triton.autotune(configs=CONFIGS, key=[])
    @triton.jit
    def kernel(x, A):
        pass
"""


def test_what_stands_around_a_kernel_is_not_confused_with_the_module(tmp_path: Path) -> None:
    """A function's or class's own names are not known; what a block runs before the kernel is."""
    own = "    CONFIGS = [Config({'A': 2})]"
    for around in ("def make(CONFIGS):", f"def make():\n{own}", f"class K:\n{own}", "for CONFIGS in LISTS:"):
        with pytest.raises(
            InputError, match="'CONFIGS' is not understood: it is a name of the function or block"
        ):
            convert(write(tmp_path, AROUND.replace("AROUND", around)))
    for around in ("def make(A):", "class K:", "if unknown():", "def make():\n    def other(CONFIGS): pass"):
        space = read_back(write(tmp_path, AROUND.replace("AROUND", around)))
        assert [c["A"] for c in space.feasible] == [1]
    source = AROUND.replace("AROUND", f"try:\n    import triton\n{own}") + "except ImportError:\n    pass\n"
    assert [c["A"] for c in read_back(write(tmp_path, source)).feasible] == [2]


IN_A_BRANCH = """
from elsewhere import has_triton, want_more
if has_triton():
    SIZES = [32, 64]

    def add():
        SIZES.append(128)

    if want_more():
        add()

    @triton.autotune(configs=[Config({"A": a}) for a in SIZES], key=[])
    @triton.jit
    def kernel(x, A):
        pass
"""


def test_a_list_that_a_function_of_the_branch_may_have_changed_is_not_taken(tmp_path: Path) -> None:
    """It was taken as it stands there, without a word."""
    with pytest.raises(InputError, match=r"kernels.py:12:8: 'want_more\(\)' is not understood"):
        convert(write(tmp_path, IN_A_BRANCH))


IN_A_FUNCTION = """
from elsewhere import has_triton
WARPS = [4]

def make(dtype, scale=1):
    if not has_triton():
        return None
    sizes = [16, 32]
    if True:
        sizes += [64]
        @triton.autotune([Config({"A": a}, num_warps=w) for a in sizes for w in WARPS + MORE], key=[])
        @triton.jit
        def kernel(x, A):
            pass
    sizes = []
    return kernel

MORE = [8]
"""


def test_what_a_function_assigns_before_the_kernel_in_it_is_known(tmp_path: Path) -> None:
    space = read_back(write(tmp_path, IN_A_FUNCTION))
    expected = {(a, w) for a in (16, 32, 64) for w in (4, 8)}
    assert {(c["A"], c["num_warps"]) for c in space.feasible} == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sizes += [64]", "sizes += [scale]"),  # an argument
        ("if True:", "for sizes in [sizes]:"),  # a later round may bring another
        ("if True:", "def inner():"),  # called before or after the last line
        ("MORE = [8]", "MORE = [8]\nsizes = [1]"),  # there are two of that name
    ],
)
def test_of_a_function_around_a_kernel_no_other_names_are_known(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(InputError, match="it is a name of the function or block"):
        convert(write(tmp_path, IN_A_FUNCTION.replace(old, new)))


IN_ELSE = """
from elsewhere import version_at_least
if is_cuda():
    WARPS = [4]
elif version_at_least("3.0"):
    WARPS = [8]
else:
    WARPS = [16]
if is_cuda():
    pass
elif version_at_least("3.0"):
    @triton.autotune([Config({"A": 1}, num_warps=w) for w in WARPS], key=[])
    @triton.jit
    def kernel(x, A):
        pass
"""


def test_a_kernel_in_an_else_has_what_other_elses_of_its_condition_assign(tmp_path: Path) -> None:
    """It had what is assigned where the condition holds, as if both were so."""
    file = write(tmp_path, IN_ELSE)
    assert [c["num_warps"] for c in read_back(file).feasible] == [8]
    assert not convert(file).notes, "nothing was taken to be so: the kernel stands there"


GUARDED = """
try:
    import triton
    import triton.language as tl
    FOUND = True
except ImportError:
    FOUND = False
from elsewhere import version_at_least, has_triton
if FOUND:
    WARPS = [2, 4]
if has_triton() and triton is not None:
    STAGES = [1]
if version_at_least("3.0") and FOUND:
    def configs():
        return [Config({"A": a}, num_warps=w, num_stages=s) for a in (1, 2) for w in WARPS for s in STAGES]
print("ready")
if version_at_least("3.0") and FOUND:
    @triton.autotune(configs(), key=[])
    @triton.jit
    def kernel(x, A):
        pass
"""


def test_what_a_source_has_where_there_is_triton_is_known(tmp_path: Path) -> None:
    """And what another branch with the condition of the kernel's own assigns."""
    file = write(tmp_path, GUARDED)
    found = sorted((c["A"], c["num_warps"], c["num_stages"]) for c in read_back(file).feasible)
    assert found == [(1, 2, 1), (1, 4, 1), (2, 2, 1), (2, 4, 1)]
    assert convert(file).notes == ("has_triton() was taken to be true.",)
    for old, new in (
        ("import triton\n", "import triton, flash\n"),  # may be missing
        ("    FOUND = True", "    from triton.tools import mxfp\n    FOUND = True"),
        ('version_at_least("3.0") and FOUND:\n    def', "version_at_least():\n    def"),  # another condition
    ):
        with pytest.raises(InputError, match="not understood"):
            convert(
                write(tmp_path, GUARDED.replace(old, new).replace("import triton.language as tl", "pass"))
            )
