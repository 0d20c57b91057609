"""A script for Kernel Tuner becomes a space with the configurations that its restrictions leave."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.kernel_tuner_script import convert, tuned_in

SCRIPT = """
from collections import OrderedDict
import numpy
from kernel_tuner import tune_kernel

LIMIT = 64

def tune():
    size = (4096, 4096)
    arguments = [numpy.random.randn(*size), numpy.int32(3)]
    tune_params = OrderedDict()
    tune_params["block_size_x"] = [2**i for i in range(3, 7)]
    tune_params["block_size_y"] = [1, 2, 4]
    tune_params["layout"] = ["row", "column"]
    tune_params["pad"] = [0, 1]
    restrictions = RESTRICTIONS
    results, env = tune_kernel("add", "add.cu", size, arguments, tune_params, restrictions=restrictions)

if __name__ == "__main__":
    tune()
"""

ALL = [*product((8, 16, 32, 64), (1, 2, 4), ("row", "column"), (0, 1))]
SMALL = {one for one in ALL if one[0] * one[1] <= 64}
NAMES = ("block_size_x", "block_size_y", "layout", "pad")


def write(folder: Path, text: str) -> Path:
    file = folder / "script.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("restrictions", "left"),
    [
        ("None", {*ALL}),
        ("[]", {*ALL}),
        ('["block_size_x * block_size_y <= 64"]', SMALL),
        ('"block_size_x * block_size_y <= 64"', SMALL),
        ('("block_size_x * block_size_y <= 64", "pad == 0")', {one for one in SMALL if one[3] == 0}),
        ('[f"block_size_x * block_size_y <= {LIMIT}"]', SMALL),
        ("lambda p: p['block_size_x'] * p['block_size_y'] <= LIMIT", SMALL),
        ("[lambda block_size_x, block_size_y: block_size_x * block_size_y <= LIMIT]", SMALL),
        ("[lambda pad, layout, block_size_x, block_size_y: block_size_x * block_size_y <= LIMIT]", SMALL),
        ("[lambda block_size_x, /, *, block_size_y: block_size_x * block_size_y <= LIMIT]", SMALL),
        ("[(lambda block_size_y, block_size_x: block_size_x * block_size_y <= 64,"
         " list(reversed(['block_size_x', 'block_size_y'])))]", SMALL),
        ("[(lambda a, b: a > 8 * b, ('block_size_x', 'block_size_y'))]",
         {one for one in ALL if one[0] > 8 * one[1]}),
        ("[(lambda a: a == 1, ['pad']), (lambda pad, layout: pad < LIMIT / 2, ['block_size_x', 'pad'])]",
         {one for one in ALL if one[3] == 1 and one[0] < 32}),
        ("[(lambda a, b: all(a % n == 0 and b for n in (8, 16)), ['block_size_x', 'block_size_y'])]",
         {one for one in ALL if one[0] % 16 == 0}),
        ("[('block_size_x == 8', ['block_size_x'])]", {one for one in ALL if one[0] == 8}),
        ("[lambda p: p['pad'] == 0 or p['block_size_x'] % 32 == 0]",
         {one for one in ALL if one[3] == 0 or one[0] % 32 == 0}),
        ("[lambda p: all(p[n] < 4 for n in ('block_size_y', 'pad') if LIMIT)]",
         {one for one in ALL if one[1] < 4}),
        ('["layout == \'row\'", lambda p: (p["block_size_x"] & 24) > 0 and not p["pad"]]',
         {one for one in ALL if one[2] == "row" and one[0] & 24 and not one[3]}),
    ],
)  # fmt: skip
def test_as_many_configurations_as_the_restrictions_leave(
    tmp_path: Path, restrictions: str, left: set[object]
) -> None:
    converted = convert(write(tmp_path, SCRIPT.replace("RESTRICTIONS", restrictions)))
    space = converted.checked()
    assert {tuple(c[name] for name in NAMES) for c in space.feasible} == left
    assert len(space.feasible) == len(left)
    assert space.workload["problem_size"] == (4096, 4096)
    assert converted.name == "add"


@pytest.mark.parametrize(
    ("restrictions", "noted"),
    [
        ("[]", True),
        ("['block_size_x * block_size_y <= 1024']", False),
        ("['32 <= block_size_y * block_size_x <= 1024']", False),
        ("['pad == 0 and 1024 >= block_size_x * block_size_y']", False),
        ("lambda p: p['block_size_x'] * p['block_size_y'] <= LIMIT", False),
        ("['block_size_x * block_size_y < 1000.0']", False),
        ("['1024 > block_size_x * block_size_y > 4']", False),
        ("['block_size_x * block_size_y == 64']", True),
        ("['block_size_x * block_size_y * 2 <= 1024']", True),
        ("['block_size_x + block_size_y <= 64']", True),
        ("['block_size_x * block_size_y <= 2048']", True),
        ("['block_size_x * block_size_y >= 32']", True),
        ("['block_size_x <= 1024']", True),
        ("['pad == 0 or block_size_x * block_size_y <= 1024']", True),
    ],
)
def test_the_limit_of_thread_blocks_is_named_where_the_script_has_none(
    tmp_path: Path, restrictions: str, noted: bool
) -> None:
    """It had been named beside a restriction that says just that."""
    notes = convert(write(tmp_path, SCRIPT.replace("RESTRICTIONS", restrictions))).notes
    assert ("block_size_x * block_size_y <= 1024" in " ".join(notes)) is noted


def test_the_limit_is_of_all_sides_of_the_block(tmp_path: Path) -> None:
    text = SCRIPT.replace('"pad"', '"block_size_z"')
    notes = convert(
        write(tmp_path, text.replace("RESTRICTIONS", '["block_size_x * block_size_y <= 64"]'))
    ).notes
    assert "block_size_x * block_size_y * block_size_z <= 1024" in " ".join(notes)


@pytest.mark.parametrize(("goal", "noted"), [("'time'", False), ("'GFLOP/s'", True), ("GOAL", True)])
def test_another_goal_than_the_time_is_noted(tmp_path: Path, goal: str, noted: bool) -> None:
    script = SCRIPT.replace("restrictions=restrictions", f"objective={goal}")
    notes = " ".join(convert(write(tmp_path, script)).notes)
    assert (f"it is tuned for {goal}, and this space is for time" in notes) is noted


def test_a_function_is_a_restriction_where_it_returns_one_expression(tmp_path: Path) -> None:
    function = (
        'def small(p):\n    """What fits."""\n    return p["block_size_x"] * p["block_size_y"] <= LIMIT\n'
    )
    text = SCRIPT.replace("RESTRICTIONS", "small").replace("def tune", f"{function}\ndef tune")
    assert len(convert(write(tmp_path, text)).checked().feasible) == len(SMALL)
    for more in ("x = 1", "print(p)"):
        longer = text.replace('    return p["block', f'    {more}\n    return p["block')
        with pytest.raises(InputError, match="a restriction is one expression"):
            convert(write(tmp_path, longer))


def test_a_parameter_goes_before_a_name_of_the_script(tmp_path: Path) -> None:
    text = SCRIPT.replace("LIMIT = 64", "block_size_x = 1").replace(
        "RESTRICTIONS", "[lambda block_size_x: block_size_x > 8]"
    )
    space = convert(write(tmp_path, text)).checked()
    assert {c["block_size_x"] for c in space.feasible} == {16, 32, 64}


LONG = {one for one in ALL if one[0] > 16}


@pytest.mark.parametrize(
    ("before", "restriction", "left"),
    [
        ("def above(least): return lambda p: p['block_size_x'] > least", "above(LIMIT / 4)", LONG),
        ("max = 16", "lambda p: p['block_size_x'] > max", LONG),
        ("def above(max): return lambda p: p['block_size_x'] > max", "above(16)", LONG),
        ("", "lambda p: max(p['block_size_x'], 16) > 16", LONG),
        ("import math", "lambda p: math.ceil(p['block_size_x'] / (LIMIT / 4)) > 1", LONG),
        ("kind = 'row'", "lambda p: p['layout'] == kind", {one for one in ALL if one[2] == "row"}),
        ("all_of_it = True", "lambda p: p['pad'] == 0 or all_of_it", {*ALL}),
    ],
)
def test_other_names_stand_for_what_they_are_in_the_script(
    tmp_path: Path, before: str, restriction: str, left: set[tuple[object, ...]]
) -> None:
    text = SCRIPT.replace("LIMIT = 64", f"LIMIT = 64\n{before}").replace("RESTRICTIONS", f"[{restriction}]")
    space = convert(write(tmp_path, text)).checked()
    assert {tuple(c[name] for name in NAMES) for c in space.feasible} == left


@pytest.mark.parametrize("value", ["-8", "-8.0"])
def test_a_name_below_zero_is_a_number_of_its_own(tmp_path: Path, value: str) -> None:
    """``LIMIT ** 2`` had become ``-8 ** 2``, which is -64."""
    text = SCRIPT.replace("LIMIT = 64", f"LIMIT = {value}").replace(
        "RESTRICTIONS", "[lambda p: p['block_size_x'] * p['block_size_y'] <= LIMIT ** 2]"
    )
    assert len(convert(write(tmp_path, text)).checked().feasible) == len(SMALL)


@pytest.mark.parametrize(
    "restriction", ["3", "lambda p, q: p['pad']", "lambda p: unknown(p['pad'])", "lambda p: p['pad'] < sizes"]
)
def test_of_a_restriction_it_is_said_what_one_may_be(tmp_path: Path, restriction: str) -> None:
    text = SCRIPT.replace("LIMIT = 64", "LIMIT = 64\nsizes = [1]").replace("RESTRICTIONS", f"[{restriction}]")
    with pytest.raises(
        InputError, match=r"not understood.*\n  expected: a text such as 'x [*] y <= 64', or a fun"
    ):
        convert(write(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("RESTRICTIONS", "[lambda q: q['blok'] > 1]", "script.py:16:.*there is no parameter 'blok'"),
        ("RESTRICTIONS", "[lambda p: p['pad'] > unknown]", "assigns nothing to unknown"),
        ("RESTRICTIONS", "[lambda p: unknown(p['pad'])]", r"unknown\(p\['pad'\]\)\" is not understood"),
        ("RESTRICTIONS", "[lambda p, q: p['pad']]", "a restriction is one expression"),
        ("RESTRICTIONS", "[lambda p, limit=LIMIT: p['pad'] < limit]", "a restriction is one expression"),
        ("RESTRICTIONS", "[lambda *all: True]", "a restriction is one expression"),
        ("RESTRICTIONS", "[lambda **all: True]", "a restriction is one expression"),
        ("RESTRICTIONS", "[lambda pad=0: pad == 0]", "a restriction is one expression"),
        ("LIMIT = 64", "def under(most): return lambda p: p['pad'] < most", r"unknown\(\) does is not known"),
        ("OrderedDict()", "OrderedDict(3)", r"script.py:11:\d+: .*'int' object is not iterable"),
        ("OrderedDict()", "OrderedDict('ab')", r"script.py:11:\d+: .*dictionary update sequence"),
        ("RESTRICTIONS", "[(lambda a: a > 1, ['pad', 'layout'])]", "a restriction is one expression"),
        ("RESTRICTIONS", "[(lambda a: a > 1, ['path'])]", "beside a restriction 'path' is no parameter"),
        ("RESTRICTIONS", "[(lambda a: a > 1, [['pad']])]", r"beside a restriction \['pad'\] is no parameter"),
        ("RESTRICTIONS", "[(lambda a: a > 1, 'pad')]", "beside a restriction no list of parameters"),
        ("RESTRICTIONS", "[(lambda a: all(a > pad for pad in (1, 2)), ['pad'])]", "pad is a parameter, and"),
        ("RESTRICTIONS", "unknown()", r"what unknown\(\) does is not known here"),
        ("RESTRICTIONS", "[3]", "a restriction is a text"),
        ("[1, 2, 4]", "numpy.arange(4)", r"script.py:13:35: .*numpy.arange"),
        ("[1, 2, 4]", "[]", "block_size_y has no list of values"),
        ("[1, 2, 4]", "[None]", "block_size_y can be None"),
        ('"pad"', '"pad x"', r"script.py:17:\d+: 'pad x' cannot name a knob: expected letters"),
        ("[1, 2, 4]", "range(100_001)", "tune_params.*has more than 100,000 items"),
        ("restrictions=restrictions", "**more", "arguments are read where they are written out"),
        ("arguments, tune_params,", "arguments,", "it has no tune_params"),
        ("def tune():", "def tune(tune_params):", "."),
    ],
)
def test_what_is_not_understood_is_said_with_its_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = SCRIPT.replace(old, new)
    text = text.replace("RESTRICTIONS", "under(unknown())" if "under" in new else "[]")
    if "tune(tune_params)" in text:
        text = text.replace("    tune_params = OrderedDict()\n", "")
    with pytest.raises(InputError, match=says) as raised:
        convert(write(tmp_path, text))
    assert f"{tmp_path / 'script.py'}:" in str(raised.value)


def test_a_parameter_that_no_knob_can_be_called_is_refused(tmp_path: Path) -> None:
    """Beside a restriction it ended in a traceback."""
    text = SCRIPT.replace('"pad"', '"for"').replace("RESTRICTIONS", '["block_size_x > 8"]')
    with pytest.raises(InputError, match=r"script.py:17:\d+: 'for' cannot name a knob: it is a reserved"):
        convert(write(tmp_path, text))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import kernel_tuner\nkernel_tuner.tune_kernel('add')", 1),
        ("import kernel_tuner as kt\nkt.tune_kernel('add')", 1),
        ("from kernel_tuner import tune_kernel\ntune_kernel('add')\ntune_kernel('mul')", 2),
        ("from kernel_tuner.interface import tune_kernel as tune\nfrom . import other\ntune('add')", 1),
        ("import kernel_tuner\nkernel_tuner.run_kernel('add')", 0),
        ("def tune_kernel(name): ...\ntune_kernel('add')", 0),
    ],
)
def test_it_is_found_however_it_is_imported(source: str, found: int) -> None:
    assert len(tuned_in(ast.parse(source))) == found


def test_arguments_may_be_given_by_their_places(tmp_path: Path) -> None:
    text = SCRIPT.replace("restrictions=restrictions", "None, None, None, restrictions")
    space = convert(write(tmp_path, text.replace("RESTRICTIONS", '["block_size_x < 16"]'))).checked()
    assert {c["block_size_x"] for c in space.feasible} == {8}
    assert space.workload == {"problem_size": (4096, 4096)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("*given", "arguments are read where they are written out"),
        ("'add', 'add.cu', 1, [], [1]", "tune_params is a dictionary of lists"),
        ("'add', 'add.cu', 1, [], {}", "tune_params is a dictionary of lists"),
        ("'add', 'add.cu', 1, [], {1: [2]}", "1 is no text"),
        ("'add', 'add.cu', 1, [], {'x': 2}", "x has no list of values"),
        ("'add', 'add.cu', 1, [], {'x': [2, 1e999, None]}", "x can be inf"),
    ],
)
def test_arguments_that_say_nothing_of_a_space(tmp_path: Path, arguments: str, says: str) -> None:
    with pytest.raises(InputError, match=rf"script.py:2:\d+: .*{says}"):
        convert(write(tmp_path, f"from kernel_tuner import tune_kernel\ntune_kernel({arguments})\n"))


def test_values_are_of_any_plain_kind_and_each_is_there_once(tmp_path: Path) -> None:
    values = "{'a': (1, 2, 1.0), 'b': range(2), 'c': [0.5, 'half'], 'd': [True, False, 1]}"
    call = f"import kernel_tuner\nkernel_tuner.tune_kernel('add', 'add.cu', 1, [], {values})\n"
    found = convert(write(tmp_path, call))
    assert not any("thread blocks" in note for note in found.notes), "none of them is the side of one"
    assert found.knobs == {"a": (1, 2), "b": (0, 1), "c": (0.5, "half"), "d": (True, False, 1)}


@pytest.mark.parametrize("name", ["unknown()", "3", "'\\udc80'"])
def test_where_the_name_of_the_kernel_is_not_understood_the_script_names_the_space(
    tmp_path: Path, name: str
) -> None:
    text = SCRIPT.replace("RESTRICTIONS", "[]").replace('"add", "add.cu"', f'{name}, "add.cu"')
    assert convert(write(tmp_path, text)).name == "script"


@pytest.mark.parametrize(
    ("size", "workload"),
    [
        ("4096", {"problem_size": (4096,)}),
        ("[64, 2 * 32]", {"problem_size": (64, 64)}),
        ("'n'", {}),
        ("(64, unknown())", {}),
        ("(64, 0.5)", {}),
        ("(64, 10**400)", {}),
        ("()", {}),
    ],
)
def test_the_workload_is_the_problem_where_that_is_understood(
    tmp_path: Path, size: str, workload: dict[str, object]
) -> None:
    text = SCRIPT.replace("(4096, 4096)", size).replace("RESTRICTIONS", "[]")
    assert convert(write(tmp_path, text)).workload == workload


def test_what_is_nested_too_deep_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nested too deep"):
        convert(write(tmp_path, SCRIPT.replace("RESTRICTIONS", "[]").replace("[0, 1]", f"[0{' + 1' * 900}]")))


def test_one_of_several_kernels_must_be_named(tmp_path: Path) -> None:
    second = '    tune_kernel("reduce", "add.cu", 1, [], dict(block_size_x=[32, 64]))\n'
    file = write(
        tmp_path, SCRIPT.replace("RESTRICTIONS", "[]").replace("\nif __name", f"{second}\nif __name")
    )
    with pytest.raises(InputError, match="called for add on line 17, reduce on line 18"):
        convert(file)
    assert len(convert(file, "reduce").checked().feasible) == 2
    with pytest.raises(InputError, match="did you mean 'reduce'"):
        convert(file, "reduc")


@pytest.mark.parametrize("called", ["tune_kernel", "kernel_tuner.tune_kernel"])
def test_kernels_may_be_tuned_with_the_same_parameters(tmp_path: Path, called: str) -> None:
    """Those of the second were not understood: the first call might have changed them."""
    text = f"""import kernel_tuner
from kernel_tuner import tune_kernel
params = dict(x=[1, 2, 4], y=[1, 2])
limits = ["x <= 2"]
{called}("add", "add.cu", 1, [], params, restrictions=limits)
params["x"].append(8)
{called}("reduce", "add.cu", 1, [], params, restrictions=[*limits, "y == 1"])
"""
    file = write(tmp_path, text)
    assert convert(file, "add").knobs == {"x": (1, 2, 4), "y": (1, 2)}
    assert convert(file, "reduce").knobs == {"x": (1, 2, 4, 8), "y": (1, 2)}
    assert len(convert(file, "reduce").checked().feasible) == 2


def test_what_a_script_may_change_unseen_is_said(tmp_path: Path) -> None:
    notes = convert(write(tmp_path, SCRIPT.replace("RESTRICTIONS", "[]") + "exec('LIMIT = 3')\n")).notes
    assert "what exec on line 21 may change is not followed." in notes


def test_parameters_may_come_from_another_file_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text("def limits(most):\n    return [f'block_size_x <= {most}']\n")
    text = SCRIPT.replace("import numpy", "import numpy\nfrom common import limits")
    space = convert(write(tmp_path, text.replace("RESTRICTIONS", "limits(16)"))).checked()
    assert {c["block_size_x"] for c in space.feasible} == {8, 16}
    (tmp_path / "common.py").write_text("def limits(most):\n    return unknown(most)\n")
    with pytest.raises(InputError, match=r"common.py:2:12: 'unknown\(most\)' is not understood"):
        convert(tmp_path / "script.py")


def test_a_restriction_that_always_holds_is_left_out_even_where_rules_have_no_words_for_it(
    tmp_path: Path,
) -> None:
    """It was said to have become a list of values as well, which nobody found in the space."""
    found = convert(write(tmp_path, SCRIPT.replace("RESTRICTIONS", "[lambda p: (p['pad'] | 4) > 0]")))
    assert not found.constraints
    assert any("holds for all values" in note for note in found.notes)
    assert not any("became a list" in note for note in found.notes)
