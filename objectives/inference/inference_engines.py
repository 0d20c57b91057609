"""Ways in which PyTorch can run a model on the CPU, each with what has to be made before the first answer.

What a compiler makes lies in a folder of the configuration, so that what one process made another loads.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from autotune.measure.objective import Infeasible

Call = Callable[[Tensor], Tensor]
Knobs = Mapping[str, Any]

DEFAULT: Knobs = {"engine": "eager", "channels_last": False, "onednn": True, "threads": 1}
"""What PyTorch does that is told nothing, with one thread."""
WITH_COMPILER = ("compiled", "exported")
PACKAGE = "model.pt2"
CACHE = "TORCHINDUCTOR_CACHE_DIR"


def stand_by(knobs: Knobs, folder: Path) -> None:
    """Do what takes a compiler seconds once and is no configuration's own: load it, and let it find out, by
    compiling for each kind, which vectors the CPU has. ``folder`` is the session's."""
    if knobs["engine"] in WITH_COMPILER:
        from torch._inductor import compile_fx, cpu_vec_isa  # noqa: F401 - compile_fx loads the rest
        from torch._inductor.exc import InvalidCxxCompiler

        os.environ[CACHE] = str(folder / "inductor")
        try:
            cpu_vec_isa.pick_vec_isa()
        except InvalidCxxCompiler as error:
            raise Infeasible(f"PyTorch compiles with g++, or what CXX names: {error}") from error


@dataclass(frozen=True)
class Served:
    """A model as it answers, and the module whose weights it answers with."""

    network: nn.Module
    answer: Call


def serve(network: nn.Module, examples: list[Tensor], knobs: Knobs, folder: Path) -> Served:
    """Have ``network`` answer as the knobs say, once for each of ``examples``, which differ in their batch:
    whatever is compiled for them is compiled then, or found in the folder.

    Changes what all of the process have: its threads, and whether oneDNN is used.
    """
    torch.set_num_threads(int(knobs.get("threads", 1)))
    torch.backends.mkldnn.enabled = bool(knobs.get("onednn", True))
    layout = torch.channels_last if knobs.get("channels_last") else torch.contiguous_format
    if knobs.get("channels_last"):
        network = network.to(memory_format=layout)  # type: ignore[call-overload]

    def laid_out(x: Tensor) -> Tensor:
        return x.contiguous(memory_format=layout)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing is said to be deprecated, and each time
        run = ENGINES[str(knobs["engine"])](network, laid_out(examples[0]), knobs, folder)
        answer = (lambda x: run(laid_out(x))) if knobs.get("channels_last") else run
        with _compiling(knobs, folder), torch.inference_mode():
            for example in examples:
                answer(example)
    if knobs["engine"] == "compiled":
        torch.compiler.set_stance("fail_on_recompile")  # from now on: it would be in a reading
    return Served(network, answer)


@contextmanager
def _compiling(knobs: Knobs, folder: Path) -> Iterator[None]:
    """What Inductor is told and where it keeps what it makes; nothing that it made for others counts.

    Freezing is asked for here, of the whole process: as an option of ``torch.compile`` it does nothing, since
    the graph has been taken by then, with weights that are inputs.
    """
    if knobs["engine"] not in WITH_COMPILER:
        yield
        return
    from torch._inductor import config
    from torch._inductor.utils import clear_inductor_caches

    os.environ[CACHE] = str(folder)
    told = {
        "freezing": bool(knobs.get("freeze")),
        "max_autotune": bool(knobs.get("max_autotune")),
        "cpp_wrapper": bool(knobs.get("cpp_wrapper")),
        "compile_threads": 1,  # in this process: no others are left behind
    }
    clear_inductor_caches()
    with config.patch(told):
        yield


def _eager(network: nn.Module, example: Tensor, knobs: Knobs, folder: Path) -> Call:
    return network


def _traced(network: nn.Module, example: Tensor, knobs: Knobs, folder: Path) -> Call:
    with torch.no_grad():
        traced = torch.jit.trace(network, example, check_trace=False)
        return torch.jit.optimize_for_inference(traced) if knobs.get("freeze") else traced


def _compiled(network: nn.Module, example: Tensor, knobs: Knobs, folder: Path) -> Call:
    """With code for each batch that comes, unless one is to do for all."""
    torch.compiler.reset()
    torch.compiler.set_stance("default")
    return torch.compile(network, dynamic=bool(knobs.get("dynamic")))


def _exported(network: nn.Module, example: Tensor, knobs: Knobs, folder: Path) -> Call:
    """Compiled ahead of time to a library that needs no Python, for batches of any size."""
    package = folder / PACKAGE
    if not package.exists():
        two = torch.cat([example, example])  # a batch of one would be taken for a constant
        batch = torch.export.Dim("batch", min=1, max=1 << 20)
        with torch.no_grad(), _compiling(knobs, folder):
            graph = torch.export.export(network, (two,), dynamic_shapes=({0: batch},))
            torch._inductor.aoti_compile_and_package(graph, package_path=str(package))
    return torch._inductor.aoti_load_package(str(package))


ENGINES: Mapping[str, Callable[[nn.Module, Tensor, Knobs, Path], Call]] = {
    "eager": _eager,
    "traced": _traced,
    "compiled": _compiled,
    "exported": _exported,
}
