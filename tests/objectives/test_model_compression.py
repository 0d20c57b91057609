"""model-compression answers as its pruned weights do, and says of no other model how accurate it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune.measure.objective import Context, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

pytestmark = [pytest.mark.torch, needs_torch]

WIDTH = 16


@pytest.fixture(scope="module")
def compression(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    importable()
    import torch
    from model_compression import ModelCompression

    threads = torch.get_num_threads()
    workload = {"width": WIDTH, "epochs": 2}
    yield ModelCompression(Context(workload, {"cores": 2}, tmp_path_factory.mktemp("compressed")))
    torch.set_num_threads(threads)


def knobs(**own: Any) -> dict[str, Any]:
    """Half of the first layer and a tenth of the second, in sparse rows; or as ``own`` says."""
    sparse = {"first_density": 0.5, "first_layout": "csr", "second_density": 0.1, "second_layout": "csr"}
    return {**sparse, "fine_tune": 1, "numbers": "float32", **own}


def compressed(compression: Any, **own: Any) -> Any:
    return compression.load(compression.prepare(knobs(**own)))


def test_the_default_of_the_space_leaves_nothing_out() -> None:
    importable()
    from model_compression import DEFAULT

    assert dict(read_spec(SPACES / "model-compression.yaml").space.default()) == DEFAULT


@pytest.mark.parametrize("numbers", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_every_way_of_keeping_weights_is_right(compression: Any, layout: str, numbers: str) -> None:
    from model_compression import TOLERANCES

    loaded = compressed(compression, first_layout=layout, numbers=numbers)
    for seed in range(3):
        found = compression.check(loaded, np.random.default_rng(seed))
        assert found["error"] <= TOLERANCES[numbers] and set(found) == {"error", "bytes", "drop"}
    assert compression.measure(loaded, np.random.default_rng(0))["time"] > 0


def test_its_default_and_its_baseline_are_right(compression: Any) -> None:
    from model_compression import DEFAULT

    dense = compression.load(compression.prepare(DEFAULT))
    found = compression.check(dense, np.random.default_rng(0))
    assert found["drop"] == 0 and found["bytes"] == 4 * (
        64 * WIDTH + WIDTH * WIDTH + 10 * WIDTH + 2 * WIDTH + 10
    )
    (baseline,) = compression.baselines()
    assert (
        compression.check(compression.load_baseline(baseline), np.random.default_rng(0))["bytes"]
        < found["bytes"]
    )


def test_a_knob_changes_the_bytes_that_it_should(compression: Any) -> None:
    def size(**own: Any) -> int:
        return int(compressed(compression, **own).answer.bytes)

    sparse = size()
    kept = 64 * WIDTH // 2 + round(WIDTH * WIDTH / 10)
    assert sparse == kept * 8 + 2 * (WIDTH + 1) * 4 + 2 * WIDTH * 4 + 4 * 10 * (WIDTH + 1)
    assert size(first_density=0.1) < sparse < size(second_density=0.5)
    assert size(numbers="bfloat16") == sparse - 2 * 10 * (WIDTH + 1)
    assert (
        size(second_layout="dense") == sparse - 8 * round(WIDTH * WIDTH / 10) - 4 * (WIDTH + 1) + 4 * WIDTH**2
    )


def test_training_goes_on_with_what_was_kept_alone(compression: Any) -> None:
    dense, at_once, later = (
        compression.prepare(knobs(**own)).weights
        for own in ({"first_density": 1.0, "second_density": 1.0}, {"fine_tune": 0}, {"fine_tune": 3})
    )
    for number, count in ((0, 64 * WIDTH // 2), (1, round(WIDTH * WIDTH / 10))):
        name = f"weight{number}"
        there = at_once[name] != 0
        assert there.sum() == count and (at_once[name][there] == dense[name][there]).all()
        assert np.abs(dense[name][there]).min() >= np.abs(dense[name][~there]).max()
        assert (later[name][~there] == 0).all() and (later[name] != at_once[name]).any()
    assert (compression.prepare(knobs(fine_tune=3)).weights["weight1"] == later["weight1"]).all()


def test_the_test_part_is_looked_at_in_the_end_alone(compression: Any) -> None:
    rng = np.random.default_rng(0)
    assert "test_drop" not in compression.measure(compressed(compression), rng)
    compression.final = True
    try:
        assert -1 <= compression.measure(compressed(compression), rng)["test_drop"] <= 1
    finally:
        compression.final = False


def other_weights(right: Any) -> Any:
    """The accuracy of one perceptron, the time of another."""
    return lambda x: right(x) * 1.001


def first_answer(right: Any) -> Any:
    kept: list[Any] = []

    def answer(x: Any) -> Any:
        kept.append(right(x))
        return kept[0].expand(len(x), -1) if len(kept[0]) == 1 else kept[0][: len(x)]

    return answer


def coarse(right: Any) -> Any:
    import torch

    return lambda x: right(x.to(torch.bfloat16).float())


def wrong_together(right: Any) -> Any:
    return lambda x: right(x) if len(x) == 1 else right(x.flip(0))


def no_number(right: Any) -> Any:
    return lambda x: right(x) * float("nan")


def in_place(right: Any) -> Any:
    def answer(x: Any) -> Any:
        logits = right(x)
        x.clamp_(max=0.5)
        return logits

    return answer


FAULTS: list[Callable[[Any], Any]] = [
    other_weights,
    first_answer,
    coarse,
    wrong_together,
    no_number,
    in_place,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_what_answers_otherwise_is_always_caught(compression: Any, fault: Any) -> None:
    right = compressed(compression)
    wrong = replace(right, answer=fault(right.answer))
    wrong.answer.__dict__["bytes"] = right.answer.bytes
    for seed in range(5):
        with pytest.raises(WrongAnswer):
            compression.check(wrong, np.random.default_rng(seed))


def test_who_keeps_more_than_the_density_says_is_wrong(compression: Any) -> None:
    prepared = replace(compression.prepare(knobs()), densities=(0.5, 0.05, 1.0))
    with pytest.raises(WrongAnswer, match="layer 1 keeps 26 weights, where its density allows 13"):
        compression.check(compression.load(prepared), np.random.default_rng(0))
