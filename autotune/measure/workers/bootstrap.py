"""How a Python process of ours is started, with all that it knows before it has loaded anything."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any


def python_command(birth: Any) -> list[str]:
    """The command of a process that calls ``main(birth)`` of the module where the data class ``birth`` is.

    Its import path is ours. An environment variable would reach the programs that it starts as well.
    """
    module, kind = type(birth).__module__, type(birth).__name__
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
    code = (
        f"import json, sys; sys.path[:] = {path!a}; from {module} import {kind}, main;"
        f" main({kind}(**json.loads(sys.argv[1])))"
    )
    return [sys.executable, "-c", code, json.dumps(asdict(birth))]
