"""The space of a converted kernel holds exactly the configurations of its list."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.triton_configs import convert
from tests.interop.space_files.cases import HEAD, read_back, write

LISTED = """
def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"

def cuda_configs():
    return [
        triton.Config({"BLOCK_M": 128, "BLOCK_K": 64}, num_stages=3, num_warps=8),
        triton.Config({"BLOCK_M": 64, "BLOCK_K": 32}, num_stages=4),
        Config(kwargs={"BLOCK_M": 64, "BLOCK_K": 64}, num_warps=2),
    ]

def configs():
    if is_cuda():
        return cuda_configs()
    return hip_configs()

@triton.autotune(configs=configs(), key=["M", "N"], reset_to_zero=["c"])
@triton.jit
def matmul(a, b, c, M, N, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    pass
"""

PRODUCT = """
SIZES = [2 ** i for i in range(5, 8)]

def keep(config):
    return config.kwargs["BLOCK"] >= 64 or config.num_warps < 8

@triton.autotune(
    list(filter(keep, [
        triton.Config({"BLOCK": block, "FUSED": fused, "HOW": how}, num_warps=w, num_stages=s, maxnreg=r)
        for block in SIZES for fused in (True, False) for how in ["a", "b"]
        for w in [2, 4, 8] for s in range(1, 4) for r in (None, 128)
        if not (fused and how == "b")
    ])),
    ["n"],
)
@triton.jit
def softmax(x, n, BLOCK: tl.constexpr):
    pass
"""


def test_a_list_comes_back_configuration_by_configuration(tmp_path: Path) -> None:
    space = read_back(write(tmp_path, LISTED))
    assert sorted((c["BLOCK_M"], c["BLOCK_K"], c["num_warps"], c["num_stages"]) for c in space.feasible) == [
        (64, 32, 4, 4),
        (64, 64, 2, 3),
        (128, 64, 8, 3),
    ]
    assert dict(space.default()) == {"BLOCK_M": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
    assert dict(space.workload) == {"M": 1024, "N": 1024}


def test_comprehensions_filters_and_registers(tmp_path: Path) -> None:
    space = read_back(write(tmp_path, PRODUCT))
    expected = {
        (block, fused, how, w, s, r)
        for block in (32, 64, 128)
        for fused in (True, False)
        for how in "ab"
        for w in (2, 4, 8)
        for s in (1, 2, 3)
        for r in (0, 128)
        if not (fused and how == "b") and (block >= 64 or w < 8)
    }
    names = ("BLOCK", "FUSED", "HOW", "num_warps", "num_stages", "maxnreg")
    assert {tuple(c[name] for name in names) for c in space.feasible} == expected
    assert len(space.feasible) == len(expected)


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    notes = " ".join(convert(write(tmp_path, LISTED)).notes)
    assert "is_cuda() was taken to be true" in notes
    assert "reset_to_zero on line 20" in notes
    placed = LISTED.replace(
        'configs=configs(), key=["M", "N"], reset_to_zero=["c"]',
        'configs(), ["M"], None, ["c"], post_hook=None',
    )
    notes = " ".join(convert(write(tmp_path, placed)).notes)
    assert "reset_to_zero on line 20" in notes
    assert "prune" not in notes and "post_hook" not in notes


def test_configurations_that_a_loop_changes_are_not_taken_as_they_were(tmp_path: Path) -> None:
    made = "for config in configs:\n    config.{}\n"
    source = """
configs = [Config({"A": a}) for a in (1, 2)]
CHANGE
@triton.autotune(configs=configs, key=[])
@triton.jit
def kernel(x):
    pass
"""
    changed = source.replace("CHANGE", made.format('kwargs["A"] *= 16'))
    assert [c["A"] for c in read_back(write(tmp_path, changed)).feasible] == [16, 32]
    with pytest.raises(InputError, match=r"kernels.py:7:5: 'config.num_warps' is not understood"):
        convert(write(tmp_path, source.replace("CHANGE", made.format("num_warps = 8"))))


def test_a_filter_that_asks_the_device_lets_more_in(tmp_path: Path) -> None:
    source = PRODUCT.replace("return config", "return torch.cuda.device_count() or config")
    converted = convert(write(tmp_path, source))
    assert "the filter on line 11 is left out" in " ".join(converted.notes)
    assert len(converted.checked().feasible) == 3 * 3 * 3 * 3 * 2


def test_a_kernel_or_a_list_of_configurations_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path, LISTED + PRODUCT)
    assert len(read_back(file, kernel="matmul").feasible) == 3
    unknown = LISTED.replace("is_cuda():\n        return", "where():\n        return")
    file = write(tmp_path, unknown)
    assert len(read_back(file, configs="cuda_configs").feasible) == 3


def test_a_list_of_configurations_that_is_not_there_is_said_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        convert(write(tmp_path, LISTED), configs="cuda_config")
    [problem] = raised.value.problems
    assert problem.message == "there is no list or function 'cuda_config'"
    assert problem.hint == "did you mean 'cuda_configs'?"
    for line in ("from lists import *", "from lists import cuda_config"):
        with pytest.raises(InputError, match="'cuda_config' is not understood"):
            convert(write(tmp_path, f"{line}\n{LISTED}"), configs="cuda_config")


def test_configurations_that_repeat_count_once(tmp_path: Path) -> None:
    twice = LISTED.replace("return cuda_configs()", "return cuda_configs() + cuda_configs()")
    converted = convert(write(tmp_path, twice))
    assert len(converted.checked().feasible) == 3
    assert "the list repeats itself: of its 6, 3 are different." in converted.notes


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("is_cuda():\n        return", "torch.cuda.device_count():\n        return", "kernels.py:16:8: "),
        ('"BLOCK_K": 32}', '"BLOCK_X": 32}', "kernels.py:11:9: this configuration and the first one"),
        ('"BLOCK_K": 32}', '"BLOCK_K": None}', "kernels.py:11:9: BLOCK_K is None"),
        ('"BLOCK_K": 32}', '"BLOCK_K": 1e400}', "kernels.py:11:9: BLOCK_K is inf"),
        ('"BLOCK_K": 32}', '"BLOCK_K": float("nan")}', "kernels.py:11:9: BLOCK_K is nan"),
        ("num_stages=4", "num_stage=4", "kernels.py:11:9: "),
        ('key=["M", "N"]', "key=KEYS", "kernels.py:20:41: 'KEYS' is not understood"),
        (
            'key=["M", "N"]',
            '**{"key": ["M", "N"]}',
            "kernels.py:20:39: \"{'key': ['M', 'N']}\" is not understood",
        ),
        ('configs=configs(), key=["M", "N"]', "*WHAT", "kernels.py:20:18: '*WHAT' is not understood"),
        (
            "triton.autotune(configs=",
            "triton.heuristics(values=",
            "nothing here is decorated with triton.autotune",
        ),
        ("@triton.jit", "@triton.jit(", "this is not Python"),
        ("return cuda_configs()", "return []", "it is empty"),
        ("return cuda_configs()", "return [1]", "no list of triton.Config"),
    ],
)
def test_what_is_not_understood_is_said_with_its_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in LISTED
    with pytest.raises(InputError) as raised:
        convert(write(tmp_path, LISTED.replace(old, new)))
    assert says in str(raised.value)


def test_a_key_that_the_kernel_lacks_is_no_fact_of_the_workload(tmp_path: Path) -> None:
    converted = convert(write(tmp_path, LISTED.replace('["M", "N"]', '["M", "BLOKC_M"]')))
    assert dict(converted.workload) == {"M": 1024}
    note = "key 'BLOKC_M' is no argument of the kernel: it is left out; did you mean 'BLOCK_M'?"
    assert note in converted.notes


def test_what_a_source_may_change_unseen_is_said(tmp_path: Path) -> None:
    """A list that ``exec`` or ``globals()`` changes was taken as it stood there, without a word."""
    first = "import sys\nglobals()['X'] = 2\nexec('X = 3')\nsys.modules[__name__].X = 4\nprint(vars(sys))\n"
    notes = convert(write(tmp_path, first + LISTED)).notes
    assert [note for note in notes if "may change" in note] == [
        "what globals on line 5 may change is not followed.",
        "what exec on line 6 may change is not followed.",
        "what sys.modules on line 7 may change is not followed.",
    ]
    assert not any("may change" in note for note in convert(write(tmp_path, LISTED)).notes)


@pytest.mark.parametrize("key", ['{"N", "M"}', '"MN"', '("M", "N")'])
def test_a_key_is_whatever_triton_goes_through(tmp_path: Path, key: str) -> None:
    converted = convert(write(tmp_path, LISTED.replace('["M", "N"]', key)))
    assert dict(converted.workload) == {"M": 1024, "N": 1024}


def test_nothing_is_to_be_run_for_a_list_that_is_written_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="configs is empty") as raised:
        convert(write(tmp_path, LISTED.replace("configs=configs()", "configs=[]")))
    assert "kernels.py:20:26: " in str(raised.value) and "--run" not in str(raised.value)


def test_one_of_several_kernels_must_be_named(tmp_path: Path) -> None:
    file = write(tmp_path, LISTED + PRODUCT)
    with pytest.raises(InputError, match="there are 2 kernels"):
        convert(file)
    with pytest.raises(InputError, match="did you mean 'softmax'"):
        convert(file, kernel="softmx")


def test_names_in_another_order_keep_their_values(tmp_path: Path) -> None:
    """The values were taken by their place: they changed names, or ended in a KeyError."""
    source = """
configs = [Config({"A": 1, "B": 2}), Config({"B": 1, "A": 2}), Config({"B": 8, "A": 4})]
@triton.autotune(configs=configs, key=[])
@triton.jit
def kernel(x, A, B):
    pass
"""
    space = read_back(write(tmp_path, source))
    assert sorted((c["A"], c["B"]) for c in space.feasible) == [(1, 2), (2, 1), (4, 8)]


def test_an_option_of_none_is_one_that_is_not_said(tmp_path: Path) -> None:
    options = "num_warps=None, num_stages=None, num_ctas=None"
    space = read_back(write(tmp_path, LISTED.replace("num_stages=3, num_warps=8", options)))
    assert dict(space.default()) == {"BLOCK_M": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 3}


def test_a_list_that_is_changed_behind_the_decorator_is_said(tmp_path: Path) -> None:
    later = "matmul.configs = matmul.configs[:1]\ndef bench():\n    matmul.configs.append(1)\n"
    later += "other.configs.clear()\n"
    notes = convert(write(tmp_path, LISTED + later)).notes
    assert "line 24 changes matmul.configs, which is not followed." in notes
    assert "line 26 changes matmul.configs, which is not followed." in notes
    assert not any("line 27" in note for note in notes), "that is of another kernel"


@pytest.mark.parametrize(
    ("line", "decorator", "config"),
    [
        ("from triton import Config as C, autotune as at", "at", "C"),
        ("import triton as tt", "tt.autotune", "tt.Config"),
        ("at, C = 0, 0\nat = triton.autotune\nC = Config", "at", "C"),
    ],
)
def test_other_names_for_the_decorator_and_configurations_are_followed(
    tmp_path: Path, line: str, decorator: str, config: str
) -> None:
    source = LISTED.replace("triton.autotune", decorator).replace("triton.Config", config)
    assert len(read_back(write(tmp_path, f"{line}\n{source}")).feasible) == 3


def test_a_list_that_is_made_anew_is_taken_as_it_is_where_the_kernel_stands(tmp_path: Path) -> None:
    one = """
warps = [{}]
@triton.autotune(configs=[Config({{"A": 1}}, num_warps=w) for w in warps], key=["n", "n.shape[0]"])
@triton.jit
def {}(x, n):
    pass
"""
    file = write(tmp_path, one.format("2, 4", "forward") + one.format("8, 16", "backward"))
    forward = read_back(file, kernel="forward")
    assert [c["num_warps"] for c in forward.feasible] == [2, 4]
    assert dict(forward.workload) == {"n": 1024}  # Triton takes no notice of the other
    assert [c["num_warps"] for c in read_back(file, kernel="backward").feasible] == [8, 16]


def test_environment_and_capability_are_assumed_and_noted(tmp_path: Path) -> None:
    source = """
import os
WARPS = [4] if "PYTEST_VERSION" in os.environ or os.environ.get("FEW", "0") == "1" else [4, 8]
STAGES = [2, 3] if torch.cuda.get_device_capability()[0] >= 9 else [1]

@triton.autotune(configs=[Config({"A": 1}, num_warps=w, num_stages=s) for w in WARPS for s in STAGES], key=[])
@triton.jit
def kernel(x):
    pass
"""
    converted = convert(write(tmp_path, source + "\nprint(WARPS)\nassert WARPS\n"))
    assert len(converted.checked().feasible) == 4
    assert converted.notes == (
        "environment variables were taken to be unset.",
        "get_device_capability() was taken to be (9, 0).",
    )


def test_a_variable_of_the_environment_has_the_default_that_is_given(tmp_path: Path) -> None:
    source = """
import os
WARPS = [int(word) for word in os.getenv("WARPS", "2,4").split(",")]
BLOCK = 64 if os.getenv("BLOCK") is None else 32
STAGES = int(os.getenv("STAGES", default="5"))

@triton.autotune(configs=[Config({"A": BLOCK}, num_warps=w, num_stages=STAGES) for w in WARPS], key=[])
@triton.jit
def kernel(x):
    pass
"""
    found = convert(write(tmp_path, source)).checked().feasible
    assert [tuple(one.values()) for one in found] == [(64, 2, 5), (64, 4, 5)]


def test_the_names_of_a_comprehension_are_its_own(tmp_path: Path) -> None:
    """What another kernel's list assumes was noted with this one, where both go through their ``w``."""
    source = """
import os
configs = [Config({"A": 1}, num_warps=w) for w in [4, 8]]
if "PYTEST_VERSION" in os.environ:
    configs = configs[:1]

def others():
    configs = []
    configs.append(Config({"A": 2}))
    return configs

@triton.autotune(configs=configs + others(), key=[])
@triton.jit
def other(x):
    pass

@triton.autotune(configs=[Config({}, num_warps=w) for w in [1, 2]], key=[])
@triton.jit
def kernel(x):
    pass
"""
    file = write(tmp_path, source)
    assert convert(file, kernel="kernel").notes == ()
    assert convert(file, kernel="other").notes == ("environment variables were taken to be unset.",)


def test_nothing_of_the_source_is_run(tmp_path: Path) -> None:
    file = write(tmp_path, LISTED + f"\nopen({str(tmp_path / 'trace')!r}, 'w').write('ran')\n")
    convert(file)
    assert not (tmp_path / "trace").exists()


def test_sources_that_are_made_to_be_too_much_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nested too deep"):
        convert(write(tmp_path, f"x = {'-' * 100_000}1"))
    nested = "x = (0,)\n" + "x = (x, x)\n" * 40  # 2^40 items, to whoever writes it out
    source = f"{nested}@triton.autotune(configs=[triton.Config({{'A': x}})], key=[])\ndef k(): pass\n"
    with pytest.raises(InputError, match=r"A is \(\(.*\n.*a finite number") as raised:
        convert(write(tmp_path, source))
    assert len(str(raised.value)) < 1000


def test_a_path_that_utf_8_does_not_have_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    with pytest.raises(InputError, match="its path is none that a space file can hold"):
        convert(write(folder, LISTED), output=tmp_path / "space.yaml").text()


def test_an_option_in_the_dictionary_is_no_knob(tmp_path: Path) -> None:
    """Triton's own values of the options go before those of the dictionary."""
    source = LISTED.replace('"BLOCK_K": 32}', '"BLOCK_K": 32, "num_warps": 2}')
    with pytest.raises(InputError, match=r"kernels.py:11:9: num_warps stands in the dictionary"):
        convert(write(tmp_path, source))


SHARED = """
BLOCKS = [32, 64]

def configs():
    return [Config({"BLOCK": block}) for block in BLOCKS]

@triton.autotune(configs=configs(), key=["n"])
@triton.jit
def forward(x, n, BLOCK):
    pass

@triton.autotune(configs=configs(), key=["n"])
@triton.jit
def backward(x, n, BLOCK):
    pass
"""


CALLED = """
BLOCKS = [32, 64]

def configs(blocks):
    found = []
    for block in blocks:
        found.append(Config({"BLOCK": block}))
    return found

@triton.jit
def kernel(x, n, BLOCK):
    pass

forward = triton.autotune(configs=configs(BLOCKS), key=["n"])(kernel)
between = triton.heuristics({"A": lambda values: 1})(triton.autotune(configs(BLOCKS), ["n"])(kernel))
backward = triton.autotune(configs=configs(blocks=BLOCKS), key=["n"])(kernel)
"""


@pytest.mark.parametrize("source", [SHARED, CALLED])
def test_kernels_may_share_a_function_that_goes_through_a_list(tmp_path: Path, source: str) -> None:
    """The second was refused, as if what makes the first changed BLOCKS."""
    file = write(tmp_path, source)
    for kernel in ("forward", "backward"):
        assert [c["BLOCK"] for c in read_back(file, kernel=kernel).feasible] == [32, 64]


def test_a_function_may_have_a_short_name_for_a_configuration(tmp_path: Path) -> None:
    short = LISTED.replace("    return [", "    C = triton.Config\n    return [").replace(
        "        triton.Config(", "        C("
    )
    assert "C({" in short
    assert len(read_back(write(tmp_path, short)).feasible) == 3


def test_a_hook_of_a_configuration_need_not_be_understood(tmp_path: Path) -> None:
    """It has no place in a space, and is often imported."""
    hooked = LISTED.replace("num_warps=8)", "num_warps=8, pre_hook=zeros(['c']), ir_override=None)")
    converted = convert(write(tmp_path, "from elsewhere import zeros\n" + hooked))
    assert len(converted.checked().feasible) == 3
    assert "the pre_hook of configurations is left out." in converted.notes


def test_functions_of_its_own_go_before_those_that_are_known(tmp_path: Path) -> None:
    """But not those that tell devices apart, which are what is assumed here."""
    source = """
def filter(keep, many):
    return [one for one in many if not keep(one)]

def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"

@triton.autotune(filter(lambda c: c.num_warps > 4, [Config({"A": 1}, num_warps=w) for w in (4, 8)]), [])
@triton.jit
def kernel(x, A):
    pass
"""
    assert [c["num_warps"] for c in read_back(write(tmp_path, source)).feasible] == [4]


def test_a_list_whose_rules_would_be_too_long_is_all_in_and_said_so(tmp_path: Path) -> None:
    """Of two blocks each has hundreds of sizes that the other has not: no rule may list them."""
    listed = "[Config({'A': a, 'X': x}) for a in (1, 2) for x in range(a, 2000, 2)]"
    text = f"{HEAD}\n@triton.autotune({listed}, ['n'])\n@triton.jit\ndef k(n, A, X):\n    pass\n"
    found = convert(write(tmp_path, text))
    assert found.constraints == []
    assert "no short rules leave just the 1,999 configurations of the list: all are in." in found.notes
    assert found.text()


def test_a_script_for_kernel_tuner_is_told_the_way(tmp_path: Path) -> None:
    """It was told to convert the T1 file, though a call in it is converted as well."""
    script = tmp_path / "script.py"
    called = "tune_kernel('add', 'add.cu', 1000, [], {'x': [1, 2]})\n"
    for text in (
        f"from kernel_tuner import tune_kernel\n{called}",
        f"import kernel_tuner as kt\nkt.{called}",
    ):
        script.write_text(text)
        with pytest.raises(InputError, match="of a script for Kernel Tuner it converts what stands in its"):
            convert(script)
    script.write_text("def autotune_kernel(kernel):\n    return tuned(kernel)\n")  # that is something else
    with pytest.raises(InputError) as raised:
        convert(script)
    assert "Kernel Tuner" not in str(raised.value)


def test_values_that_rules_cannot_tell_apart_are_refused_with_the_place_of_the_list(tmp_path: Path) -> None:
    """No place was said at all."""
    source = """
@triton.autotune([Config({"A": a}, num_warps=w) for a, w in [(0, 1), (False, 2), (1, 1), (1, 2)]], [])
@triton.jit
def kernel(x):
    pass
"""
    with pytest.raises(InputError, match=r"kernels.py:5: A has the values 0 and false"):
        convert(write(tmp_path, source))
