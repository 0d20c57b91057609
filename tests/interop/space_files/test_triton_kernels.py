"""Which kernels of a source are found, and under which names."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.triton_configs import convert
from tests.interop.space_files.cases import read_back, write


def test_which_of_two_kernels_of_a_name_is_meant_only_running_the_source_tells(tmp_path: Path) -> None:
    branch = """
    @triton.autotune(configs=CONFIGS, key=[])
    @triton.jit
    def kernel(x, A):
        pass
"""
    source = f"CONFIGS = [Config({{'A': 1}})]\nif triton.runtime:\n{branch}else:\n{branch}"
    with pytest.raises(InputError, match="kernel is decorated on the lines 7, 13") as raised:
        convert(write(tmp_path, source))
    assert "--run" in str(raised.value)


LISTED = """
from tuners import cached_tune, libtuner
import triton

{assigned}
@{decorator}
@triton.jit
def kernel(x, n, A):
    pass
"""


def test_a_decorator_may_be_made_before_and_named(tmp_path: Path) -> None:
    """The kernel was not found."""
    tune = "tune = triton.autotune([Config({'A': a}) for a in (1, 2)], ['n'])"
    for assigned in (tune, f"SIZES = []\nif unknown():\n    pass\n{tune}"):
        space = read_back(write(tmp_path, LISTED.format(assigned=assigned, decorator="tune")))
        assert [c["A"] for c in space.feasible] == [1, 2]
        assert dict(space.workload) == {"n": 1024}
    either = f"if unknown():\n    {tune}\nelse:\n    {tune}"
    with pytest.raises(InputError, match="kernel is decorated on the lines 9, 11"):
        convert(write(tmp_path, LISTED.format(assigned=either, decorator="tune")))


def test_where_tuning_is_spoken_of_and_no_kernel_seen_the_way_is_told(tmp_path: Path) -> None:
    for source in (
        "def tuned():\n    return triton.autotune([Config({'A': 1})], [])\nkernel = tuned()(kernel)\n",
        "kernel = partial(triton.autotune, key=[])([Config({'A': 1})])(kernel)\n",
    ):
        with pytest.raises(InputError, match=r"nothing here is decorated.*\n.*is found by convert --run"):
            convert(write(tmp_path, source))


def test_decorators_that_take_the_same_are_read_as_triton_s_own_and_noted(tmp_path: Path) -> None:
    """Libraries have them: of these it was said that nothing is decorated."""
    given = "configs=[Config({'A': a}) for a in (1, 2)], key=['n'], strategy=['log']"
    for decorator in ("libtuner", "tuners.cached_tune"):
        file = write(tmp_path, LISTED.format(assigned="", decorator=f"{decorator}({given})"))
        assert [c["A"] for c in read_back(file).feasible] == [1, 2]
        assert f"@{decorator} on line 9 was taken to be triton.autotune." in convert(file).notes
    for other in ("libtuner(key=['n'])", "libtuner([Config({'A': 1})], ['n'])"):
        with pytest.raises(InputError, match="nothing here is decorated"):
            convert(write(tmp_path, LISTED.format(assigned="", decorator=other)))
    with pytest.raises(InputError, match=r"no list of triton\.Config"):
        convert(write(tmp_path, LISTED.format(assigned="", decorator="f(configs=['a'], key=[])")))


def test_kernels_that_are_made_of_one_have_the_names_that_they_are_assigned_to(tmp_path: Path) -> None:
    """Both had that of the function, so that neither could be named."""
    source = """
few, more = (1, 2), (1, 2, 4)
@triton.jit
def kernel(x, A):
    pass
fast = triton.autotune([Config({"A": a}) for a in few], [])(kernel)
full = triton.heuristics({"E": is_even})(triton.autotune([Config({"A": a}) for a in more], [])(kernel))
kernels = [triton.autotune([Config({"A": 8})], [])(kernel)]
"""
    file = write(tmp_path, source)
    for name, sizes in {"fast": [1, 2], "full": [1, 2, 4], "kernel": [8]}.items():
        assert [c["A"] for c in read_back(file, kernel=name).feasible] == sizes
        assert convert(file, kernel=name).objective.endswith(f":{name}")


def test_what_pytorch_and_triton_say_of_the_device_is_assumed_and_noted(tmp_path: Path) -> None:
    source = """
from elsewhere import IS_NVIDIA_HOPPER, check_shared_mem
A = [1] if torch.version.hip is not None or not torch.version.cuda else [1, 2]
B = [4] if triton.runtime.driver.active.get_current_target().backend == "cuda" else [1]
C = [8] if torch.cuda.get_device_properties(0).major < 9 or not check_shared_mem("hopper") else [2]
D = [1, 2] if IS_NVIDIA_HOPPER and torch.cuda.is_available() else [1]
@triton.autotune([Config(dict(A=a, B=b, C=c, D=d)) for a in A for b in B for c in C for d in D], [])
@triton.jit
def kernel(x, A, B, C, D):
    pass
"""
    file = write(tmp_path, source)
    found = sorted((c["A"], c["B"], c["C"], c["D"]) for c in read_back(file).feasible)
    assert found == [(a, 4, 2, d) for a in (1, 2) for d in (1, 2)]
    notes = convert(file).notes
    assert "torch.version.hip was taken to be None." in notes
    assert "get_current_target() was taken to be Target(backend='cuda', arch=90, warp_size=32)." in notes
    assert "IS_NVIDIA_HOPPER was taken to be true." in notes
    assert "torch.cuda.is_available() was taken to be true." in notes
    with pytest.raises(InputError, match="multi_processor_count' is not understood"):
        convert(write(tmp_path, source.replace("major < 9", "multi_processor_count < 9")))
