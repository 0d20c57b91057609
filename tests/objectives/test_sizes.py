"""What is of no size, of a size and a half, or has a misspelt name is refused before anything is measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.loading.importing import load_target
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.provenance.device import device_facts
from autotune.space.reading.reader import read_spec
from autotune.space.spec import PythonObjective
from tests.objectives.ready import SPACES, ready
from tests.objectives.training import needs_torch


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("gemm-c", "k"),
        ("stencil-c", "steps"),
        ("convolution-c", "filter_width"),
        ("nms-c", "boxes"),
        ("index-c", "keys"),
    ],
)
@pytest.mark.parametrize("value", [0, -3, 1.5, "x"])
def test_what_is_no_size_is_refused(tmp_path: Path, name: str, size: str, value: object) -> None:
    with pytest.raises(InputError, match=f"refuses this workload: {size} should be a whole number"):
        ready(name, tmp_path).objective(**{size: value})


TORCH = [pytest.mark.torch, needs_torch]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param("distributed-matmul", "n", marks=TORCH),
        pytest.param("async-sgd", "workers", marks=TORCH),
        pytest.param("comm-allreduce", "world", marks=TORCH),
        pytest.param("comm-ddp", "samples", marks=TORCH),
        pytest.param("placement-pipeline", "steps", marks=TORCH),
        pytest.param("digits-mlp", "width", marks=TORCH),
        pytest.param("digits-cnn", "channels", marks=TORCH),
        pytest.param("language-model", "heads", marks=TORCH),
        pytest.param("model-inference", "batch", marks=TORCH),
        pytest.param("model-compression", "width", marks=TORCH),
    ],
)
def test_nor_is_it_cut_to_a_whole_number(tmp_path: Path, name: str, size: str) -> None:
    """``int`` had taken 1.5 for 1, and measured another workload than the one that is recorded."""
    spec = ready(name, tmp_path).spec
    context = Context({**spec.workload, size: 4.5}, {}, tmp_path)
    with pytest.raises(InputError, match=rf"refuses this workload: {size} .*whole number.* and is 4\.5"):
        load_objective(spec.objective, context)


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("comm-allreduce", "megabytes"),
        ("comm-copies", "megabytes"),
        ("async-sgd", "target"),
        ("async-sgd", "seconds"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, "x", True])
def test_an_amount_of_nothing_is_refused(tmp_path: Path, name: str, amount: str, value: object) -> None:
    """Each trial of it had crashed in the middle, or was never to come to its end."""
    spec = ready(name, tmp_path).spec
    device = {"device": "cpu"} if "device" in spec.workload else {}  # else a GPU is missing first
    context = Context({**spec.workload, **device, amount: value}, {}, tmp_path)
    with pytest.raises(InputError, match=f"refuses this workload: {amount} should be a number above"):
        load_objective(spec.objective, context)


READY = sorted(file.stem for file in SPACES.glob("*.yaml"))


@pytest.mark.parametrize("name", [name for name in READY if name.endswith("-c")])
def test_a_misspelt_fact_is_refused(tmp_path: Path, name: str) -> None:
    _require_refusal(tmp_path, name)


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("name", [name for name in READY if not name.endswith(("-c", "-c-shapes"))])
def test_and_so_it_is_where_pytorch_is_needed(tmp_path: Path, name: str) -> None:
    if name.startswith("triton"):
        pytest.importorskip("triton")
    _require_refusal(tmp_path, name)


def _require_refusal(folder: Path, name: str) -> None:
    """Each fact of the ready space is known to its objective, and none that is a letter longer."""
    gpu = name.startswith(("triton", "cuda"))
    spec = read_spec(SPACES / f"{name}.yaml", device=device_facts("h100" if gpu else None))
    assert isinstance(spec.objective, PythonObjective)
    kind = load_target(spec.objective)
    assert set(spec.workload) <= {*kind.workload_facts}
    for fact in spec.workload:
        context = Context({**spec.workload, f"{fact}x": 1}, {}, folder)
        with pytest.raises(InputError, match=f"unknown fact '{fact}x' in workload") as refused:
            load_objective(spec.objective, context)
        assert f"did you mean {fact!r}" in str(refused.value) or len(fact) == 1


@pytest.mark.torch
@needs_torch
def test_sizes_of_another_model_are_none_of_this_one(tmp_path: Path) -> None:
    spec = ready("placement-graph", tmp_path).spec
    with pytest.raises(InputError, match="unknown fact 'blocks' in the workload of a graph"):
        load_objective(spec.objective, Context({**spec.workload, "blocks": 3}, {}, tmp_path))


@pytest.mark.torch
@needs_torch
def test_nor_are_facts_that_change_nothing(tmp_path: Path) -> None:
    """The largest batch is that of two updates: it knows no epochs, and had passed over them."""
    spec = ready("largest-batch", tmp_path).spec
    with pytest.raises(InputError, match="unknown fact 'epochs' in workload"):
        load_objective(spec.objective, Context({**spec.workload, "epochs": 3}, {}, tmp_path))


@pytest.mark.torch
@needs_torch
def test_nor_is_a_misspelt_part_of_a_plan_or_a_device_passed_over(tmp_path: Path) -> None:
    for name, fact, misspelt in (
        ("largest-batch", "plan", {"dtpe": "bfloat16"}),
        ("placement-graph", "devices", {"fast": {"cpus": 0.5}}),
        ("comm-ddp", "devices", [{"cpus": 0.5}]),
    ):
        spec = ready(name, tmp_path).spec
        with pytest.raises(InputError, match=f"unknown fact '[a-z]+' in workload.{fact}") as refused:
            load_objective(spec.objective, Context({**spec.workload, fact: misspelt}, {}, tmp_path))
        assert "did you mean" in str(refused.value)


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize(
    ("name", "fact", "value", "said"),
    [
        ("cuda-gemm", "device", "gpu", "device should be cpu, cuda or"),
        ("cuda-nms", "threshold", "half", "threshold should be a number above 0"),
        ("triton-gemm", "m", -4, "m should be a whole number"),
        ("triton-gemm", "k", True, "k should be a whole number"),
        ("triton-gemm", "b_order", "rows", "b_order should be one of row, column"),
        ("triton-attention", "length", 1.5, "length should be a whole number"),
        ("triton-attention", "causal", "no", "causal should be true or false"),
        ("triton-softmax", "dtype", "half", "dtype should be one of float32"),
        ("nms-c", "threads", "all", "threads should be a whole number"),
        ("digits-mlp", "epochs", "x", "epochs should be a whole number"),
        ("digits-mlp", "device", "gpu", "refuses this workload: device should be auto, cpu, cuda or"),
        (
            "digits-mlp",
            "device",
            "cuda:99",
            "refuses this workload: there is no GPU for the device 'cuda:99'",
        ),
        ("comm-copies", "device", "gpu", "refuses this workload: device should be one of cuda, cpu"),
        ("digits-mlp", "step_samples", -1, "step_samples should be a whole number, 0 or more"),
        ("digits-cnn", "target", "low", "target should be a number above 0"),
        ("language-model", "heads", 5, "a width of 64 has no 5 equal parts"),
        ("model-inference", "model", "lstm", "model should be one of convolutional, transformer"),
        ("model-inference", "weights", "frozen", "weights should be one of fixed, change"),
        ("placement-pipeline", "heads", 5, "a width of 64 has no 5 equal parts"),
        ("placement-graph", "runtime_mib", -1, "runtime_mib should be a number above 0"),
        ("placement-graph", "devices", {}, "refuses this workload: workload.devices has cpu"),
        ("placement-graph", "model", "tree", "refuses this workload: workload.model is 'tree'"),
        ("digits-mlp-time", "target", None, "refuses this workload: workload.until is 'target', but"),
        ("language-model", "sha256", "0", "refuses this workload: the help texts of this Python"),
        ("comm-ddp", "link", 3, "refuses this workload: a link is"),
        ("distributed-matmul", "limit", -1, "limit should be a number above 0"),
        ("comm-allreduce", "world", 10**12, "more than one machine starts; 64 at most"),
        ("comm-ddp", "devices", 3, "devices should be a list like"),
        ("comm-ddp", "devices", [{"memory": "4GiB"}], "memory should be a number, and is '4GiB'"),
        ("comm-ddp", "devices", [{"memory": math.inf}], r"workload.devices\[0\].memory should be a number"),
        (
            "comm-ddp", "link", {"bandwidth": "1Gb", "latency": 0},
            "workload.link.bandwidth should be a number, and is '1Gb'",
        ),
        ("distributed-matmul", "latency", "low", "workload.latency should be a number, and is 'low'"),
        ("distributed-matmul", "cpu", "half", "workload.cpu should be a number, and is 'half'"),
        ("placement-graph", "devices", {"a": 3}, "workload.devices.a should be {}, or some of cpu"),
        ("placement-graph", "devices", {"a": {"cpu": "half"}}, "workload.devices.a.cpu should be a number"),
        ("placement-graph", "devices", {"a": {"memory_mib": -3}}, "memory_mib should be a number above 0"),
    ],
)  # fmt: skip
def test_a_fact_that_means_nothing_is_refused_before_the_first_trial(
    tmp_path: Path, name: str, fact: str, value: object, said: str
) -> None:
    """Some had been taken for their default, others had failed in every trial; a million ranks were begun."""
    if name.startswith("triton"):
        pytest.importorskip("triton")
    gpu = name.startswith(("triton", "cuda"))
    device = device_facts("h100" if gpu else None)
    spec = read_spec(SPACES / f"{name}.yaml", device=device)
    with pytest.raises(InputError, match=said):
        load_objective(spec.objective, Context({**spec.workload, fact: value}, device, tmp_path))


@pytest.mark.torch
@needs_torch
def test_the_emulator_has_to_be_asked_for(tmp_path: Path) -> None:
    """On a machine without a GPU its times had been a winner's speed-up."""
    workload = read_spec(SPACES / "cuda-gemm.yaml", device=device_facts("h100")).workload
    spec = PythonObjective("cuda_gemm.py:Gemm", SPACES.parent / "objectives" / "kernels")
    with pytest.raises(InputError, match="there is no GPU here; an emulator can try the kernels out"):
        load_objective(spec, Context(workload, {"kind": "cpu"}, tmp_path))
    load_objective(spec, Context({**workload, "device": "cpu"}, {"kind": "cpu"}, tmp_path))
