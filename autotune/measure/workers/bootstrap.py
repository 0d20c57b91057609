"""How a Python process of ours is started, and given what it must know before it loads anything."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any


def python_command(birth: Any) -> list[str]:
    """The command of a process that calls ``main(birth)`` of the module that defines ``type(birth)``.

    It has our import path, though not in an environment variable, which the programs that it starts would
    inherit.
    """
    module, kind = type(birth).__module__, type(birth).__name__
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
    code = (
        f"import json, sys; sys.path[:] = {path!a}; from {module} import {kind}, main;"
        f" main({kind}(**json.loads(sys.argv[1])))"
    )
    return [sys.executable, "-c", code, json.dumps(asdict(birth))]
