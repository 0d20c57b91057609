"""Run as a program: tries what needs PyTorch and Triton, and prints the result of each step as JSON.

``python probing.py device`` tries PyTorch, a CUDA graph and Triton on the first GPU. ``python probing.py
interpreter`` runs a kernel in Triton's interpreter on the CPU. Each step prints ``{"step", "works",
"detail"}`` on a line of its own as soon as it is done, so that a crash in one does not hide those before it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

tl: Any = None
"""Triton's language, once it is loaded: a kernel finds it among its module's globals only."""


def say(step: str, works: bool, detail: str) -> None:
    print(json.dumps({"step": step, "works": works, "detail": detail}), flush=True)


def attempt(step: str, run: Callable[[], str]) -> bool:
    """Whether ``run`` came to its end; it returns a text, or raises to say that it does not work."""
    try:
        say(step, True, run())
    except Exception as error:  # noqa: BLE001 - why it does not work is the answer
        text = str(error).strip().splitlines()
        say(step, False, f"{type(error).__name__}: {text[0] if text else ''}"[:300])
        return False
    return True


def torch_on_device() -> str:
    import torch

    if torch.version.cuda is None:
        raise RuntimeError(f"PyTorch {torch.__version__} was built without CUDA")
    if not torch.cuda.is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} for CUDA {torch.version.cuda} finds no GPU")
    ones = torch.ones(1024, device="cuda:0")
    if float(ones.sum()) != 1024.0:
        raise RuntimeError("a sum on the GPU is wrong")
    return f"{torch.__version__} for CUDA {torch.version.cuda}, {torch.cuda.get_device_name(0)}"


def graph_capture() -> str:
    import torch

    values = torch.zeros(1024, device="cuda:0")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        values += 1
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    if float(values[0]) != 2.0:
        raise RuntimeError("replaying a captured graph does not do its work")
    return "a graph was captured and replayed"


def interpreter() -> str:
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is loaded
    import numpy

    return f"{doubled('cpu')} with numpy {numpy.__version__}"


def triton_on_device() -> str:
    # It also needs a C compiler and Python's headers here, for what launches kernels.
    return f"{doubled('cuda:0')} compiled, launched and answered on the GPU"


def double(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803 - it is Triton's
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def doubled(device: str) -> str:
    """Triton's version, if a kernel doubles numbers there."""
    import torch

    triton: Any = importlib.import_module("triton")
    globals()["tl"] = importlib.import_module("triton.language")

    x = torch.arange(10, dtype=torch.float32, device=device)
    y = torch.zeros_like(x)
    triton.jit(double)[(3,)](x, y, 10, BLOCK=4)
    if y.tolist() != (2 * x).tolist():
        raise RuntimeError(f"wrong answers of triton {triton.__version__}")
    return f"triton {triton.__version__}"


def main() -> None:
    if sys.argv[1:] == ["interpreter"]:
        attempt("interpreter", interpreter)
    elif attempt("torch", torch_on_device):
        attempt("graph", graph_capture)
        attempt("triton", triton_on_device)


if __name__ == "__main__":
    main()
