"""What the tests of the hook run in a process of its own: Triton decides on import if it interprets."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.hook.kernel import kernel
from autotune.hook.kernels.source import source_hash
from autotune.hook.tuning import tuning


def _grid(n: int) -> Any:
    return lambda meta: ((n + meta["BLOCK"] - 1) // meta["BLOCK"],)


def _tensors(n: int) -> Any:
    import torch

    return torch.randn(n), torch.randn(n), torch.full((n,), float("nan"))


def _add(folder: Path, **more: Any) -> Any:
    from tests.hook.kernel_samples import add

    settings = {
        "space": {"BLOCK": [16, 32], "num_warps": [4, 8]},
        "key": ["n"],
        "recipes": folder / "recipes.json",
        "store": str(folder / "store.db"),
        "trials": 3,
        **more,
    }
    return kernel(**settings)(add)


def launch(folder: Path, n: int = 20, **more: Any) -> dict[str, Any]:
    """One launch: whether its answer is right, and what was chosen."""
    import torch

    tuned = _add(folder, **more)
    x, y, out = _tensors(n)
    tuned[_grid(n)](x, y, out, n)
    chosen = tuned.choice(x, y, out, n)
    by_name = torch.full_like(out, 0)
    tuned[_grid(n)](x=x, y=y, out=by_name, n=n)
    return {
        "right": bool(torch.equal(out, x + y) and torch.equal(by_name, x + y)),
        "configuration": dict(chosen.configuration),
        "how": chosen.how,
        "distance": chosen.distance,
        "stale": chosen.stale,
        "recipes": (folder / "recipes.json").exists(),
    }


def source_of(folder: Path, number: int, text: str) -> str:
    """The hash of the kernel ``scale`` in a file of its own with such a text."""
    file = folder / f"kernels{number}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("kernels", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return source_hash(module.scale)


def shown(folder: Path) -> str:
    """A tuned kernel as Python shows it."""
    return repr(_add(folder))


def error_of(folder: Path, **more: Any) -> str:
    """What decorating and launching says is wrong."""
    try:
        launch(folder, **more)
    except InputError as error:
        return str(error)
    return ""


def errors_of_calls(folder: Path, *placed: Any, **named: Any) -> list[str]:
    """What a launch, a choice and tuning say is wrong with a call that is given more."""
    tuned = _add(folder)
    n = 20
    found = []
    for call in (tuned[_grid(n)], tuned.choice, lambda *a, **k: tuned.tune(*a, grid=_grid(n), **k)):
        try:
            call(*_tensors(n), n, *placed, **named)
        except InputError as error:
            found.append(str(error))
    return found


def tune(folder: Path, n: int) -> dict[str, Any]:
    """Tune a case; the caller's tensors stay as they are."""
    import torch

    tuned = _add(folder)
    x, y, out = _tensors(n)
    result = tuned.tune(x, y, out, n, grid=_grid(n))
    assert bool(torch.isnan(out).all())
    tuned[_grid(n)](x, y, out, n)
    assert bool(torch.equal(out, x + y))
    return {
        "best": dict(result.best),
        "tried": [dict(trial.configuration) for trial in result.trials],
        "how": tuned.choice(x, y, out, n).how,
    }


def launch_asked(folder: Path, **more: Any) -> tuple[str, bool]:
    """A launch inside ``with tuning()``: how it was chosen then, and whether a recipe is there."""
    tuned = _add(folder, **more)
    x, y, out = _tensors(12)
    tuned[_grid(12)](x, y, out, 12)
    with tuning(trials=2):
        tuned[_grid(12)](x, y, out, 12)
    return tuned.choice(x, y, out, 12).how, (folder / "recipes.json").exists()


def launch_tuned_too_shortly(folder: Path, n: int) -> tuple[str, dict[str, Any], list[str]]:
    """A launch where tuning has room for the default alone: how and what it took, and what was said."""
    tuned = _add(folder)
    x, y, out = _tensors(n)
    with warnings.catch_warnings(record=True) as said, tuning(trials=1):
        warnings.simplefilter("always")
        tuned[_grid(n)](x, y, out, n)
    choice = tuned.choice(x, y, out, n)
    return choice.how, dict(choice.configuration), [str(warning.message) for warning in said]


def launch_asked_in_vain(folder: Path, **fails: str) -> tuple[str, bool, list[str]]:
    """The same, twice, where tuning ``fails``: how it was chosen, whether by a recipe, and what was said."""
    tuned = _add(folder, **({"recipes": fails["recipes"]} if "recipes" in fails else {}))
    x, y, out = _tensors(12)
    with warnings.catch_warnings(record=True) as said, tuning(trials=2, store=fails.get("store")):
        warnings.simplefilter("always")
        for _ in range(2):
            tuned[_grid(12)](x, y, out, 12)
    choice = tuned.choice(x, y, out, 12)
    return choice.how, choice.recipe is not None, [str(warning.message).splitlines()[0] for warning in said]


def verdict(fault: int, stride: int, in_place: bool, answered: bool) -> str:
    """What a check says of a configuration of the faulty kernel; empty where it is right."""
    import numpy as np
    import torch

    from autotune.hook.kernels.call import KernelCall
    from autotune.hook.kernels.call_objective import CallObjective
    from autotune.measure.objective import Context, WrongAnswer
    from tests.hook.kernel_samples import faulty

    n = 21
    x = torch.randn(stride * n)[::stride]
    out = x if in_place else torch.full((stride * n,), 7.0)[::stride]
    if answered:  # an earlier call has left the answer there
        out.copy_(2 * x)
    before = x.clone()
    call = KernelCall(faulty, _grid(n), (x, out, n, stride), {}, tuple(faulty.arg_names))
    right = {"BLOCK": 16, "FAULT": 0}
    objective = CallObjective(call, right, Context({}, {}, Path()))
    try:
        objective.check({**right, "BLOCK": 32, "FAULT": fault}, np.random.default_rng(0))
    except WrongAnswer as wrong:
        return str(wrong)
    finally:
        assert torch.equal(before, x)
    return ""


def _verdicts(objective: Any) -> list[str]:
    """What a check says of three sizes of a block; empty: right."""
    import numpy as np

    from autotune.measure.objective import WrongAnswer

    said = []
    for block in (8, 32, 64):
        try:
            objective.check({"BLOCK": block}, np.random.default_rng(0))
            said.append("")
        except WrongAnswer as wrong:
            said.append(str(wrong))
    return said


def verdict_past_the_end(dtype: str) -> list[str]:
    """What a check says of sums in blocks that divide the number of elements, and in others; empty: right."""
    import torch

    from autotune.hook.kernels.call import KernelCall
    from autotune.hook.kernels.call_objective import CallObjective
    from autotune.measure.objective import Context
    from tests.hook.kernel_samples import total

    x, out = torch.ones(48, dtype=getattr(torch, dtype)), torch.zeros(1)
    objective = CallObjective(
        KernelCall(total, (1,), (x, out, 48), {}, tuple(total.arg_names)),
        {"BLOCK": 16},
        Context({}, {}, Path()),
    )
    return _verdicts(objective)


def verdict_of_copies(dtype: str) -> list[str]:
    """What a check says of copies in blocks that divide their length, and in others; empty: right."""
    import torch

    from autotune.hook.kernels.call import KernelCall
    from autotune.hook.kernels.call_objective import CallObjective
    from autotune.measure.objective import Context
    from tests.hook.kernel_samples import copy

    x = torch.arange(1, 49).to(getattr(torch, dtype))
    call = KernelCall(copy, _grid(48), (x, torch.zeros_like(x)), {}, tuple(copy.arg_names))
    objective = CallObjective(call, {"BLOCK": 16}, Context({}, {}, Path()))
    return _verdicts(objective)


def unwritten() -> str:
    """What is said where nothing seems to be written."""
    import torch

    from autotune.hook.kernels.call import KernelCall
    from autotune.hook.kernels.call_objective import CallObjective
    from autotune.measure.objective import Context
    from tests.hook.kernel_samples import add

    x, y, out = (torch.zeros(9, dtype=torch.int32) for _ in range(3))
    call = KernelCall(add, (1,), (x, y, out, 9), {}, tuple(add.arg_names))
    try:
        CallObjective(call, {"BLOCK": 16}, Context({}, {}, Path()))
    except InputError as error:
        CallObjective(call, {"BLOCK": 16}, Context({}, {}, Path()), ["out"])
        return str(error)
    return ""


def overwritten(dtype: str, expanded: bool) -> list[str]:
    """Which tensors are poisoned before a right configuration is checked: one of floats, one that may be
    ``expanded``, and the output of that ``dtype``."""
    import numpy as np
    import torch

    from autotune.hook.kernels.call import KernelCall
    from autotune.hook.kernels.call_objective import CallObjective
    from autotune.measure.objective import Context
    from tests.hook.kernel_samples import strided_add

    n = 21
    x, out = torch.full((n,), 2.0), torch.zeros(n, dtype=getattr(torch, dtype))
    y = torch.ones(1).expand(n) if expanded else torch.ones(n)
    call = KernelCall(strided_add, _grid(n), (x, y, y.stride(0), out, n), {}, tuple(strided_add.arg_names))
    objective = CallObjective(call, {"BLOCK": 16}, Context({}, {}, Path()), ["out"])
    assert objective.check({"BLOCK": 32}, np.random.default_rng(0)) == {"error": 0.0}
    return list(objective.poison)


def copied(offset: int) -> bool:
    """Whether a copy has the values, strides and alignment of a strided view, and shares nothing with it."""
    import torch

    from autotune.hook.kernels.call import Copy

    whole = torch.arange(400, dtype=torch.float16).reshape(20, 20)
    view = whole[2:9:3, offset:15:2].t()
    made = Copy(view).tensor
    same = torch.equal(made, view) and made.stride() == view.stride()
    aligned = made.data_ptr() % 16 == view.data_ptr() % 16
    made.zero_()
    return bool(same and aligned and view.abs().sum() > 0)


def rank(number: int, of: int, folder: str) -> dict[str, Any]:
    """One rank of a job under gloo; rank 1 has a recipe that the others do not see."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=number, world_size=of)
    try:
        own = Path(folder) / f"rank{number}"
        own.mkdir()
        if number == 1:
            dist.barrier()  # the other one was first
        found = launch(own, space={"BLOCK": [16, 32][:: 1 if number == 0 else -1]})
        if number == 0:
            dist.barrier()
        return found
    finally:
        dist.destroy_process_group()
