"""``autotune convert`` writes a space that ``autotune check`` reads, and says what it left out."""

from __future__ import annotations

import json
from pathlib import Path

from autotune.space.reading.reader import read_spec
from tests.cli.conftest import autotune

KERNELS = """
import triton

@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (64, 128) for w in (2, 4) if b < 128 or w > 2],
    key=["n"],
    prune_configs_by={"top_k": 2},
)
@triton.jit
def add(x, n, BLOCK):
    pass
"""


def test_a_source_becomes_a_space(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    done = autotune(tmp_path, "convert", "kernels.py", "-o", "space.yaml")
    assert done.returncode == 0, done.stderr
    assert "space.yaml: 3 knobs, 3 configurations of 4 combinations" in done.stdout
    assert "note: prune_configs_by on line 7 is not translated" in done.stdout
    checked = autotune(tmp_path, "check", "space.yaml", "--json")
    assert checked.returncode == 0, checked.stderr
    again = autotune(tmp_path, "convert", "kernels.py", "-o", "space.yaml")
    assert again.returncode == 2
    assert "space.yaml exists" in again.stderr
    forced = autotune(tmp_path, "convert", "kernels.py", "-o", "space.yaml", "--force", "--json")
    document = json.loads(forced.stdout)
    assert (document["kernel"], document["configurations"], document["combinations"]) == ("add", 3, 4)


def test_all_combinations_can_be_searched_with_the_list_first(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    done = autotune(tmp_path, "convert", "kernels.py", "--all")
    assert "kernels.yaml: 3 knobs, 4 configurations of 4 combinations" in done.stdout, done.stderr
    spec = read_spec(tmp_path / "kernels.yaml")
    assert spec.space.default() == {"BLOCK": 64, "num_warps": 2, "num_stages": 3}
    assert [dict(one) for one in spec.search.first] == [
        {"BLOCK": 64, "num_warps": 4, "num_stages": 3},
        {"BLOCK": 128, "num_warps": 4, "num_stages": 3},
    ]


def test_of_a_long_list_a_few_are_tried_first(tmp_path: Path) -> None:
    text = KERNELS.replace("(64, 128)", "[2**i for i in range(3, 30)]").replace("if b < 128 or w > 2", "")
    (tmp_path / "kernels.py").write_text(text)
    done = autotune(tmp_path, "convert", "kernels.py", "--all")
    assert done.returncode == 0, done.stderr
    blocks = [one["BLOCK"] for one in read_spec(tmp_path / "kernels.yaml").search.first]
    assert len(blocks) == 20 and blocks[0] == 8 and blocks[-1] == 2**28
    assert "20 of its configurations, evenly drawn" in " ".join(
        (tmp_path / "kernels.yaml").read_text().split()
    )


def test_the_space_of_a_t1_file_can_be_counted_before_its_objective_is_written(tmp_path: Path) -> None:
    knobs = [{"Name": "tile", "Type": "int", "Values": "[1, 2, 4]"}]
    document = {"ConfigurationSpace": {"TuningParameters": knobs, "Conditions": [{"Expression": "tile > 1"}]}}
    (tmp_path / "T1.json").write_text(json.dumps(document))
    assert autotune(tmp_path, "convert", "T1.json", "-o", "space.yaml").returncode == 0
    checked = autotune(tmp_path, "check", "space.yaml")
    assert "T1: 1 knob, 3 combinations, 2 feasible\n  removes " in checked.stdout
    assert checked.returncode == 2 and "there is no objective file" in checked.stderr
    documented = autotune(tmp_path, "check", "space.yaml", "--json")
    assert (documented.returncode, documented.stdout) == (2, "")


def test_a_script_for_kernel_tuner_becomes_a_space(tmp_path: Path) -> None:
    script = """
import kernel_tuner
kernel_tuner.tune_kernel("add", "add.cu", 1000, [], {"x": [1, 2, 4]}, restrictions=["x > 1"])
"""
    (tmp_path / "script.py").write_text(script)
    done = autotune(tmp_path, "convert", "script.py")
    assert done.returncode == 0, done.stderr
    assert "script.yaml: 1 knob, 2 configurations of 3 combinations" in done.stdout
    refused = autotune(tmp_path, "convert", "script.py", "--all", "--force")
    assert refused.returncode == 2 and "--all are for triton.autotune" in refused.stderr


def test_what_cannot_be_converted_is_said(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "space.yaml").write_text("autotune: 1\n")
    (tmp_path / "T1.json").write_text("{}")
    for arguments, says in (
        (["kernels.py"], "nothing here is decorated with triton.autotune"),
        (["kernels.py"], "the tune_params of a tune_kernel(...)"),
        (["notes.txt"], "notes.txt is of no known kind"),
        (["space.yaml"], "space.yaml is of no known kind"),
        (["T1.json"], "this is no T1 file"),
        (["T1.json", "--kernel", "add"], "--kernel, --configs, --run and --all are for Python sources"),
        (["missing.py"], "there is no such file"),
    ):
        done = autotune(tmp_path, "convert", *arguments)
        assert done.returncode == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr


def test_more_configurations_than_a_length_can_hold(tmp_path: Path) -> None:
    values = str(list(range(1, 11)))
    knobs = [{"Name": f"p{n}", "Type": "int", "Values": values, "Default": 1} for n in range(30)]
    document = {
        "General": {"BenchmarkName": "large"},
        "ConfigurationSpace": {"TuningParameters": knobs, "Conditions": []},
        "KernelSpecification": {"KernelName": "large", "Language": "CUDA"},
    }
    (tmp_path / "large.json").write_text(json.dumps(document))
    done = autotune(tmp_path, "convert", "large.json", "-o", "space.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["configurations"] == 10**30
