"""model-inference answers as the model does, whatever runs it; and what answers otherwise is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from autotune.measure.objective import Context, Infeasible, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

pytestmark = [pytest.mark.torch, needs_torch]

SMALL = {"width": 4, "layers": 1, "batch": 2}
MODELS = ("convolutional", "transformer")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What all of a process have is as it was."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.backends.mkldnn.enabled = True
    torch.compiler.set_stance("default")


@pytest.fixture(scope="module")
def inference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    importable("inference")
    from model_inference import ModelInference

    folder = tmp_path_factory.mktemp("compiled")

    def of(**workload: Any) -> Any:
        workload = {**SMALL, "model": "convolutional", **workload}
        own = folder / "-".join(str(fact) for fact in workload.values())
        own.mkdir(exist_ok=True)
        return ModelInference(Context(workload, {"cores": 2}, own))

    return of


def loaded(objective: Any, **knobs: Any) -> Any:
    from inference_engines import DEFAULT

    return objective.load(objective.prepare({**DEFAULT, **knobs}))


def require_right(objective: Any, **knobs: Any) -> None:
    served = loaded(objective, **knobs)
    for seed in range(2):
        assert objective.check(served, np.random.default_rng(seed))["error"] < 2e-6
    read = objective.measure(served, np.random.default_rng(0))
    assert read["time"] > 0 and read["compile_seconds"] > 0


def test_the_default_of_the_space_is_that_of_pytorch() -> None:
    importable("inference")
    from inference_engines import DEFAULT

    spec = read_spec(SPACES / "model-inference.yaml")
    assert {**DEFAULT, **spec.space.default()} == DEFAULT


def test_where_weights_change_nothing_that_keeps_them_is_in_the_space() -> None:
    fixed = read_spec(SPACES / "model-inference.yaml")
    change = read_spec(SPACES / "model-inference.yaml", workload={"weights": "change"})
    assert {one["engine"] for one in fixed.space.feasible} == {"eager", "traced", "compiled", "exported"}
    assert {one["engine"] for one in change.space.feasible} == {"eager", "traced", "compiled"}
    assert not any("freeze" in one for one in change.space.feasible)


@pytest.mark.parametrize("weights", ["fixed", "change"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_what_needs_no_compiler_is_right(inference: Any, model: str, weights: str, engine: str) -> None:
    objective = inference(model=model, weights=weights, threads=2)
    require_right(objective, engine=engine, threads=2)
    if model == "convolutional":
        require_right(objective, engine=engine, onednn=False, channels_last=True)
    if engine == "traced" and weights == "fixed":
        require_right(objective, engine=engine, freeze=True)


@pytest.mark.parametrize("model", MODELS)
def test_who_keeps_weights_that_change_is_wrong(inference: Any, model: str) -> None:
    objective = inference(model=model, weights="change")
    frozen = loaded(objective, engine="traced", freeze=True)
    for seed in range(5):
        with pytest.raises(WrongAnswer, match=r"where the workload has batch .*, seed"):
            objective.check(frozen, np.random.default_rng(seed))


def test_where_there_is_no_compiler_it_says_so(inference: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", (None, "no-such-compiler"))
    with pytest.raises(Infeasible, match=r"compiles with g\+\+, or what CXX names"):
        inference(batch=5).prepare({"engine": "exported"})


def first_answer(network: Any) -> Any:
    kept: list[Any] = []

    def answer(x: Any) -> Any:
        kept.append(network(x))
        return kept[0].repeat(len(x), 1)[: len(x)]

    return answer


def first_samples(network: Any) -> Any:
    def answer(x: Any) -> Any:
        logits = network(x)
        logits[SMALL["batch"] :] = 0
        return logits

    return answer


def by_half(network: Any) -> Any:
    import torch

    half = deepcopy(network).to(torch.bfloat16)
    return lambda x: half(x.to(torch.bfloat16)).float()


def as_in_training(network: Any) -> Any:
    return deepcopy(network).train()


def in_place(network: Any) -> Any:
    def answer(x: Any) -> Any:
        logits = network(x)
        x.relu_()
        return logits

    return answer


@pytest.mark.parametrize("fault", [first_answer, first_samples, by_half, as_in_training, in_place])
def test_a_model_that_answers_otherwise_is_always_caught(inference: Any, fault: Any) -> None:
    objective = inference()
    right = loaded(objective)
    wrong = replace(right, served=replace(right.served, answer=fault(right.served.network)))
    for seed in range(10):
        with pytest.raises(WrongAnswer):
            objective.check(wrong, np.random.default_rng(seed))


def test_what_a_killed_one_has_half_compiled_is_compiled_anew(inference: Any) -> None:
    """A package that was half written had been loaded, and half of a cache had made the time shorter."""
    from inference_engines import DEFAULT

    objective = inference(batch=5)
    folder = objective.prepare({**DEFAULT}).folder
    (folder / "compiled.json").unlink()
    (folder / "half").write_text("")
    again = objective.prepare({**DEFAULT})
    assert again.folder == folder and not (folder / "half").exists() and again.compile_seconds > 0


def test_of_several_that_prepare_the_same_one_compiles_it(inference: Any) -> None:
    """A finalist may be what a baseline is: each had removed what the other was compiling."""
    from inference_engines import DEFAULT

    together = Barrier(4)

    def prepare(objective: Any) -> Any:
        together.wait()
        return objective.prepare({**DEFAULT})

    for batch in range(15, 20):
        objective = inference(batch=batch)
        with ThreadPoolExecutor(4) as threads:
            first, *others = threads.map(prepare, [objective] * 4)
        assert others == [first] * 3


def test_what_was_compiled_once_took_as_long_as_it_took_then(inference: Any) -> None:
    objective = inference(batch=4)
    first, again = (objective.prepare({"engine": "traced", "freeze": True}) for _ in range(2))
    assert first == again and first.compile_seconds > 0
    assert objective.prepare({"engine": "traced"}).folder != first.folder


COMPILED: list[dict[str, Any]] = [
    {"engine": "compiled", "channels_last": True},
    {"engine": "compiled", "freeze": True, "max_autotune": True},
    {"engine": "compiled", "dynamic": True, "cpp_wrapper": True, "freeze": True},
    {"engine": "exported", "onednn": False},
    {"engine": "exported", "freeze": True, "max_autotune": True},
]


@pytest.mark.slow
@pytest.mark.parametrize("knobs", COMPILED, ids=str)
def test_what_is_compiled_is_right(inference: Any, knobs: dict[str, Any]) -> None:
    require_right(inference(), **knobs)


@pytest.mark.slow
def test_freezing_and_exporting_do_keep_the_weights(inference: Any) -> None:
    """Else these knobs were without effect: as an option of torch.compile freezing is."""
    objective = inference(weights="change")
    require_right(objective, engine="compiled")
    for knobs in ({"engine": "compiled", "freeze": True}, {"engine": "exported"}):
        with pytest.raises(WrongAnswer, match="seed"):
            objective.check(loaded(objective, **knobs), np.random.default_rng(0))


@pytest.mark.slow
def test_nothing_is_compiled_in_a_reading(inference: Any) -> None:
    import torch

    objective = inference(batch=3)
    served = loaded(objective, engine="compiled").served
    with pytest.raises(RuntimeError, match="recompile"), torch.inference_mode():
        served.answer(torch.zeros(5, 3, 32, 32))


@pytest.mark.slow
def test_its_baselines_are_right(inference: Any) -> None:
    objective = inference()
    for baseline in objective.baselines():
        served = objective.load_baseline(baseline)
        assert objective.check(served, np.random.default_rng(0))["error"] < 2e-6
