"""Whether ``prepare`` left in place what was built with other knobs, since its tool saw nothing to do.

``make TILE=8`` compares the times of files, so what was built with ``TILE=4`` is "up to date". The program of
another configuration would be measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from autotune.measure.commands.placeholders import named_in
from autotune.measure.program import Finished
from autotune.space.spec import CommandObjective

_TOOL = r"(g?make|ninja)(\[\d+\])?: "
_IDLE = re.compile(rf"{_TOOL}(.* is up to date\.|Nothing to be done for .*|no work to do\.)$")
_ON_ITS_WAY = re.compile(rf"{_TOOL}(Entering|Leaving) directory |(\S*/)?g?make ")
"""What is printed around that where one makefile calls another."""


def built_with(spec: CommandObjective, values: Mapping[str, str]) -> str:
    """The knobs that only ``prepare`` is given, and their values: they act through what it builds or not at
    all. A knob that the program gets as well may say which of several builds it is to take.
    """
    if spec.config_file and not spec.config_text:
        return ""
    elsewhere = named_in(*spec.arguments, *spec.check, *spec.environment.values(), spec.config_text)
    return "\n".join(f"{name}={values.get(name, '')}" for name in sorted(named_in(*spec.prepare) - elsewhere))


def say_nothing_built(ended: Finished) -> str:
    """What is wrong with a configuration for which ``prepare`` had nothing to do; empty where it did
    something, or may have."""
    lines = [line for line in ended.stdout.splitlines() if not _ON_ITS_WAY.match(line)]
    if not lines or not all(map(_IDLE.match, lines)):
        return ""
    return (
        f"the prepare command built nothing ({lines[-1]}), so what was built with other knobs would be"
        " measured: let it build each time, as make -B does"
    )
