"""A peer in a process of its own, under whatever interpreter has its packages.

    python -m benchmarks.peers.worker NAME              # serves requests, one JSON document a line
    python -m benchmarks.peers.worker --versions NAME   # what it runs on, or why it cannot

Requests, each answered by one line on standard output that also says how many ``seconds`` of processor
time it took::

    {"start": {"knobs": [...], "seed": 0, "tries": 60}}
    {"ask": true}
    {"tell": [[configuration, loss or null], ...]}
    {"search": {"recorded": {...}, "seed": 0, "tries": 60}}

The first is answered by ``{"conditional"}``, the second by ``{"configuration"}``, the last, for a tuner that
runs by itself, by ``{"configurations"}``. What a peer prints goes to standard error. The end of standard
input ends the process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

CLASSES = {
    "optuna-tpe": ("optuna_peer", "Tpe"),
    "optuna-mtpe": ("optuna_peer", "MultivariateTpe"),
    "optuna-gp": ("optuna_peer", "Gp"),
    "skopt-gp": ("skopt_peer", "SkoptGp"),
    "skopt-et": ("skopt_peer", "SkoptEt"),
    "skopt-rf": ("skopt_peer", "SkoptRf"),
    "hebo": ("hebo_peer", "Hebo"),
    "smac": ("smac_peer", "Smac"),
}
"""The peers that are asked and told, by name. ``kt-STRATEGY`` is Kernel Tuner's."""


def made(name: str) -> Any:
    """The class of a peer."""
    file, title = CLASSES[name]
    return getattr(importlib.import_module(f"benchmarks.peers.{file}"), title)


def versions(name: str) -> str:
    """The versions of what a peer runs on; :class:`ImportError` where it is missing or broken."""
    from importlib.metadata import version

    if name.startswith("kt-"):
        from benchmarks.peers import kernel_tuner_peer as peer

        packages, modules = peer.PACKAGES, peer.MODULES
    else:
        packages, modules = made(name).packages, made(name).modules
    for module in modules:
        importlib.import_module(module)
    return ", ".join(f"{package} {version(package)}" for package in packages)


class Server:
    """Answers requests about one peer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.peer: Any = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        (verb,) = request
        began = time.process_time()
        answer: dict[str, Any] = getattr(self, f"_{verb}")(request[verb])
        return {"seconds": time.process_time() - began, **answer}

    def _start(self, what: Mapping[str, Any]) -> dict[str, Any]:
        from benchmarks.peers.contract import Knob

        knobs = [Knob.from_json(document) for document in what["knobs"]]
        self.peer = made(self.name)(knobs, what["seed"], what["tries"])
        return {"conditional": self.peer.conditional}

    def _ask(self, _: bool) -> dict[str, Any]:
        return {"configuration": self.peer.ask()}

    def _tell(self, told: list[Any]) -> dict[str, Any]:
        self.peer.tell([(configuration, loss) for configuration, loss in told])
        return {}

    def _search(self, what: Mapping[str, Any]) -> dict[str, Any]:
        from benchmarks.peers import kernel_tuner_peer

        strategy = self.name.removeprefix("kt-")
        tried, seconds = kernel_tuner_peer.search(strategy, what["recorded"], what["seed"], what["tries"])
        return {"configurations": tried, "seconds": seconds}


def serve(name: str, requests: TextIO, answers: TextIO) -> None:
    server = Server(name)
    for line in requests:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 (the benchmark says so and goes on with others)
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer, default=_plain) + "\n")
        answers.flush()


def _plain(value: Any) -> Any:
    """A numpy scalar as what Python knows."""
    return value.item()


def main(arguments: list[str]) -> None:
    if arguments[0] == "--versions":
        try:
            print(versions(arguments[1]))
        except Exception as error:  # noqa: BLE001 (a broken package may raise anything when imported)
            raise SystemExit(f"{type(error).__name__}: {error}") from None
        return
    # Tuners print; what they print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(arguments[0], sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
